/**
 * `npm run reproduce -- NAME [options]`: what a paper claims, in miniature. Trains every variant with every seed, compares
 * them pairwise and writes the tables into `docs/reproductions/NAME.md`, between its marks. Finished runs are kept and
 * unfinished ones resumed; a run that fails is listed and stops no other.
 */
import { readFile } from "node:fs/promises";
import { cpus } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { exists, writeFileAtomic } from "../src/shared/files.ts";
import { runVariant } from "./reproduce/run-variant.ts";
import { studies } from "./reproduce/studies.ts";
import type { Study } from "./reproduce/study.ts";
import { type Failure, type Results, studyMarkdown, withResults } from "./reproduce/tables.ts";

const usage = `Usage: npm run reproduce -- NAME [options]

  NAME                 ${studies.map(({ name }) => name).join(", ")}
  --seeds 1,2,3,4,5    seeds of every variant
  --variants A,B       beginnings of names; default: all
  --out FOLDER         where the runs lie; default: runs/reproduce/NAME
  --set KEY=VALUE      an override of every variant, such as engine.threads=2; may be repeated
  --small              a minute's worth of every variant, to try the command; writes no page
  --print              prints the tables and writes no page
`;

function options(argv: readonly string[]) {
  return parseArgs({
    args: [...argv],
    allowPositionals: true,
    options: {
      seeds: { type: "string", default: "1,2,3,4,5" },
      variants: { type: "string", default: "" },
      out: { type: "string" },
      set: { type: "string", multiple: true, default: [] },
      small: { type: "boolean", default: false },
      print: { type: "boolean", default: false },
    },
  });
}

async function main(argv: readonly string[]): Promise<number> {
  const { values, positionals } = options(argv);
  const study = studies.find(({ name }) => name === positionals[0]);
  const seeds = values.seeds.split(",").map(Number);
  if (!study || positionals.length > 1 || seeds.some((seed) => !Number.isInteger(seed) || seed < 0)) {
    process.stderr.write(usage);
    return 2;
  }
  const starts = values.variants.split(",");
  const variants = study.variants.filter(({ name }) => starts.some((start) => name.startsWith(start)));
  const out = values.out ?? join("runs", "reproduce", values.small ? `${study.name}-small` : study.name);
  const overrides = [...values.set, ...(values.small ? study.small : [])];
  const { results, failures } = await runAll(
    { ...study, variants },
    { seeds, out, overrides, isSmall: values.small },
  );
  const markdown = studyMarkdown({ ...study, variants }, results, failures);
  if (values.small || values.print) process.stdout.write(`${markdown}\n`);
  else
    await writePage(
      study,
      `${markdown}\n\nMade by \`npm run reproduce -- ${argv.join(" ")}\` on ${machine()}.`,
    );
  return failures.length > 0 ? 1 : 0;
}

interface Plan {
  readonly seeds: readonly number[];
  readonly out: string;
  readonly overrides: readonly string[];
  readonly isSmall: boolean;
}

/** Seed by seed, so that an early look at the tables compares whole seeds. */
async function runAll(
  study: Study,
  { seeds, ...plan }: Plan,
): Promise<{ readonly results: Results; readonly failures: readonly Failure[] }> {
  const results = new Map(study.variants.map(({ name }) => [name, new Map()]));
  const failures: Failure[] = [];
  const note = (text: string): boolean => process.stderr.write(`${text}\n`);
  for (const seed of seeds)
    for (const variant of study.variants) {
      try {
        const result = await runVariant(study, variant, { ...plan, seed, note });
        results.get(variant.name)?.set(seed, result);
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error);
        failures.push({ variant: variant.name, seed, message });
        note(`${variant.name}, seed ${seed} failed: ${message}`);
      }
    }
  return { results, failures };
}

async function writePage({ name, title }: Study, results: string): Promise<void> {
  const path = join("docs", "reproductions", `${name}.md`);
  const page = (await exists(path)) ? await readFile(path, "utf8") : `# ${title}\n`;
  await writeFileAtomic(path, withResults(page, results));
  process.stdout.write(`${path}\n`);
}

function machine(): string {
  const processors = cpus();
  return `${processors.length} × ${processors[0]?.model.trim() ?? "unknown processor"}, Node ${process.versions.node}, ${new Date().toISOString().slice(0, 10)}`;
}

main(process.argv.slice(2)).then(
  (code) => {
    process.exitCode = code;
  },
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  },
);
