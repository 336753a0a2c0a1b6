/**
 * Dotted overrides: `--set stages.grpo.steps=3`. A path names keys of mappings; entries of a list are named by
 * their index or, where they have one, by their `name`. The result goes through the same schema as the file,
 * which finds unknown keys; only what has no meaning as a path is refused here.
 */
import { ConfigError } from "../errors.ts";
import { suggestion } from "./nearest.ts";
import { parseYamlValue } from "./yaml-source.ts";

export interface AppliedOverride {
  /** As the user wrote it, for messages. */
  readonly text: string;
  /** Where it went: keys and list indexes. */
  readonly path: readonly (string | number)[];
}

type Tree = Readonly<Record<string, unknown>> | readonly unknown[];

/** Returns `tree` with every `path=value` of `overrides` put in, in order; later ones win. Throws `ConfigError`. */
export function applyOverrides(
  tree: unknown,
  overrides: readonly string[],
): { readonly value: unknown; readonly applied: readonly AppliedOverride[] } {
  let value = tree;
  const applied: AppliedOverride[] = [];
  for (const text of overrides) {
    const equals = text.indexOf("=");
    const keys = text.slice(0, equals).split(".");
    if (equals < 1 || keys.some((key) => key.trim() === ""))
      throw new ConfigError(`--set ${text}: expected key.key=value, for example --set seed=2`);
    const place = `--set ${text}`;
    const path: (string | number)[] = [];
    value = put(value, { keys, path, place, value: parseYamlValue(text.slice(equals + 1), place) });
    applied.push({ text, path });
  }
  return { value, applied };
}

interface Goal {
  readonly keys: readonly string[];
  /** Filled on the way down. */
  readonly path: (string | number)[];
  readonly place: string;
  readonly value: unknown;
}

/** A copy of `node` with the value at `goal.keys`, counted from `goal.path.length`. */
function put(node: unknown, goal: Goal): unknown {
  const key = goal.keys[goal.path.length];
  if (key === undefined) return goal.value;
  if (Array.isArray(node)) {
    const index = listIndex(node, key.trim(), goal);
    goal.path.push(index);
    return node.with(index, put(node[index], goal));
  }
  if (node !== undefined && node !== null && typeof node !== "object")
    throw new ConfigError(
      `${goal.place}: ${goal.path.join(".")} is ${JSON.stringify(node)} and has no key "${key}"`,
      { path: goal.path.join(".") },
    );
  const mapping = (node ?? {}) as Exclude<Tree, readonly unknown[]>;
  goal.path.push(key.trim());
  return { ...mapping, [key.trim()]: put(mapping[key.trim()], goal) };
}

function listIndex(list: readonly unknown[], key: string, { path, place }: Goal): number {
  const index = /^\d+$/.test(key) ? Number(key) : list.findIndex((entry) => nameOf(entry) === key);
  if (index >= 0 && index < list.length) return index;
  const names = list.map(nameOf).filter((name) => name !== undefined);
  throw new ConfigError(
    `${place}: ${path.join(".")} has ${list.length} entries (0 to ${list.length - 1}) and none named "${key}"${suggestion(key, names)}`,
    { path: [...path, key].join(".") },
  );
}

function nameOf(entry: unknown): string | undefined {
  const name = (entry as { name?: unknown } | null)?.name;
  return typeof name === "string" ? name : undefined;
}
