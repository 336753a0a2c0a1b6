/** What every benchmark is to `main.ts`, and how it reads its options. */
import { parseArgs } from "node:util";

export interface Bench {
  readonly name: string;
  /** One line for the list of benchmarks. */
  readonly about: string;
  readonly options: string;
  run(args: readonly string[]): Promise<{ readonly markdown: string; readonly data: object }>;
}

/** Integer options `--name N` with defaults, shared by the benches. */
export function integerOptions<K extends string>(
  args: readonly string[],
  defaults: Readonly<Record<K, number>>,
): Record<K, number> & { cases: string | undefined } {
  const names = Object.keys(defaults) as K[];
  const options = Object.fromEntries([...names, "cases"].map((name) => [name, { type: "string" as const }]));
  const { values } = parseArgs({ args: [...args], options });
  const parsed = names.map((name) => {
    const value = values[name] === undefined ? defaults[name] : Number(values[name]);
    if (!Number.isInteger(value) || value < 1)
      throw new Error(`--${name} must be a whole number of at least 1`);
    return [name, value];
  });
  return { ...Object.fromEntries(parsed), cases: values.cases };
}
