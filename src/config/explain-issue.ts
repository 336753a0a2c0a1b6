/**
 * What zod found wrong with a recipe, said in one line: which key, what was expected, what came, and the nearest
 * known key or value. The place (file and line, or the override) is added by the caller.
 */
import type { z } from "zod";
import { suggestion } from "./nearest.ts";
import { knownKeys, nodeAt, type SchemaNode } from "./schema-tree.ts";

type Issue = z.core.$ZodIssue;

/** The path an issue is about; for an unknown key that key itself. */
export function issuePath(issue: Issue): readonly PropertyKey[] {
  return issue.code === "unrecognized_keys" ? [...issue.path, issue.keys[0] as string] : issue.path;
}

/** One sentence without place. `value` is the whole recipe as the user wrote it, overrides included. */
export function explainIssue(issue: Issue, root: SchemaNode, value: unknown): string {
  const path = issuePath(issue);
  const name = path.length === 0 ? "the recipe" : `"${shownPath(path, value)}"`;
  const found = valueAt(value, path);
  if (issue.code === "unrecognized_keys") {
    const key = issue.keys[0] as string;
    const stage = path.length === 1 ? stageThatKnows(key, root, value) : undefined;
    const advice =
      stage === undefined
        ? suggestion(key, knownKeys(root, issue.path, value))
        : `; it is a key of a stage: stages.${stage}.${key}`;
    return `unknown key ${name}${advice}`;
  }
  if (issue.code === "custom") return path.length === 0 ? issue.message : `${name}: ${issue.message}`;
  const expected = expectation(issue);
  if (found === undefined) {
    const meaning = nodeAt(root, path, value)?.description;
    return `${name} is missing; expected ${expected}${meaning === undefined ? "" : ` (${meaning})`}`;
  }
  return `${name}: expected ${expected}, got ${shown(found)}${nearestValue(issue, found)}`;
}

function expectation(issue: Issue): string {
  switch (issue.code) {
    case "invalid_type":
      return typeNames[issue.expected] ?? issue.expected;
    case "invalid_value":
      return oneOf(issue.values);
    case "invalid_union":
      return unionExpectation(issue);
    case "too_small":
      return sized(issue.origin, `${issue.inclusive ? "at least" : "more than"} ${issue.minimum}`);
    case "too_big":
      return sized(issue.origin, `${issue.inclusive ? "at most" : "less than"} ${issue.maximum}`);
    case "not_multiple_of":
      return `a multiple of ${issue.divisor}`;
    default:
      return issue.message;
  }
}

function unionExpectation(issue: Extract<Issue, { code: "invalid_union" }>): string {
  const { options } = issue as { options?: readonly unknown[] };
  if (options !== undefined) return oneOf(options.filter((option) => option !== undefined));
  const forms = issue.errors.flatMap((errors) => (errors[0] ? [expectation(errors[0])] : []));
  return [...new Set(forms)].join(" or ");
}

const typeNames: Readonly<Record<string, string>> = {
  int: "a whole number",
  number: "a number",
  string: "text",
  boolean: "true or false",
  array: "a list",
  object: "a mapping of keys to values",
  record: "a mapping of names to values",
};

function sized(origin: string, bound: string): string {
  if (origin === "array") return `a list of ${bound} entries`;
  return origin === "string" ? `text of ${bound} characters` : `a number of ${bound}`;
}

function oneOf(values: readonly unknown[]): string {
  const list = values.map((value) => JSON.stringify(value));
  return list.length === 1 ? (list[0] as string) : `one of ${list.join(", ")}`;
}

function nearestValue(issue: Issue, found: unknown): string {
  if (typeof found !== "string") return "";
  const { values, options } = issue as { values?: readonly unknown[]; options?: readonly unknown[] };
  const known = (values ?? options ?? []).filter((entry) => typeof entry === "string");
  return known.length < 2 ? "" : suggestion(found, known).replace(/^; known: .*/, "");
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}

export function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>((here, key) => (here as Record<PropertyKey, unknown> | null)?.[key], value);
}

/** The name of the last stage that has a key of this name. */
function stageThatKnows(key: string, root: SchemaNode, value: unknown): string | undefined {
  const stages = valueAt(value, ["stages"]);
  if (!Array.isArray(stages)) return undefined;
  const index = stages.findLastIndex((_, i) => knownKeys(root, ["stages", i], value).includes(key));
  return index < 0 ? undefined : String(withStageName(["stages", index, key], value)[1]);
}

/** A stage by its name, as an override calls it, where it has one. */
function withStageName(path: readonly PropertyKey[], value: unknown): readonly PropertyKey[] {
  if (path[0] !== "stages" || path.length < 3 || path[2] === "name") return path;
  const name = valueAt(value, [...path.slice(0, 2), "name"]);
  return typeof name === "string" && name !== "" ? ["stages", name, ...path.slice(2)] : path;
}

/** A path for people, with stages by their names. */
export function shownPath(path: readonly PropertyKey[], value: unknown): string {
  return dotted(withStageName(path, value));
}

export function dotted(path: readonly PropertyKey[]): string {
  return path.map(String).join(".");
}
