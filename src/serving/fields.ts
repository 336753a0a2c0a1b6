/**
 * Reading the fields of a request body. As lenient as the Python servers that clients were written for: a number
 * may come as text ("3"), a flag as 0 or 1, null is as good as absent, and keys that nobody knows are ignored.
 * Whatever else is wrong is told with the name of the field (422).
 */
import { describe, HttpError } from "./http-error.ts";
import type { ServerLimits } from "./limits.ts";

export type Body = Readonly<Record<string, unknown>>;

export function has(body: Body, key: string): boolean {
  return Object.hasOwn(body, key) && body[key] !== null;
}

function field(body: Body, key: string): unknown {
  return has(body, key) ? body[key] : undefined;
}

/** A list of texts, such as `queries`. */
export function textList(body: Body, key: string, most: number, advice: string): readonly string[] {
  const value = field(body, key);
  if (!Array.isArray(value))
    throw invalid(`"${key}", a list of texts`, describe(value), `send {"${key}": ["…"]}`);
  if (value.length > most)
    throw invalid(`at most ${most} entries in "${key}"`, `${value.length}`, `${advice}, or raise the limit`);
  const wrong = value.findIndex((entry) => typeof entry !== "string");
  if (wrong >= 0)
    throw invalid(`only texts in "${key}"`, `${describe(value[wrong])} at ${key}[${wrong}]`, "send texts");
  return value as readonly string[];
}

/** One text, such as `query`. */
export function text(body: Body, key: string): string {
  const value = field(body, key);
  if (typeof value === "string") return value;
  throw invalid(`"${key}", a text`, describe(value), `send {"${key}": "…"}`);
}

export interface NumberSpec {
  /** The names under which clients send it. */
  readonly keys: readonly string[];
  /** Where none is given. */
  readonly default: number;
  readonly most: number;
}

/** A whole number from 1 to `most` under one of its names. Two names with different numbers are refused. */
export function wholeNumber(body: Body, { keys, default: absent, most }: NumberSpec): number {
  const given = keys.filter((key) => has(body, key));
  const values = given.map((key) => {
    const value = field(body, key);
    const number = typeof value === "string" && /^\d{1,15}$/.test(value.trim()) ? Number(value) : value;
    if (typeof number !== "number" || !Number.isInteger(number) || number < 1)
      throw invalid(
        `"${key}", a whole number from 1 to ${most}`,
        describe(value),
        "correct it or leave it out",
      );
    if (number > most)
      throw invalid(`"${key}" of at most ${most}`, `${number}`, "ask for fewer, or raise the server's limit");
    return number;
  });
  if (new Set(values).size > 1)
    throw invalid(
      `one of ${keys.map((key) => `"${key}"`).join(", ")}`,
      given.map((key, i) => `"${key}": ${values[i]}`).join(" and "),
      "send one of them",
    );
  return values[0] ?? absent;
}

/** A flag; absent is `absent`. */
export function flag(body: Body, key: string, absent: boolean): boolean {
  const value = field(body, key);
  if (value === undefined) return absent;
  const known = flags.get(typeof value === "string" ? value.toLowerCase() : value);
  if (known !== undefined) return known;
  throw invalid(`"${key}", true or false`, describe(value), "correct it or leave it out");
}

const flags: ReadonlyMap<unknown, boolean> = new Map<unknown, boolean>([
  ...[true, 1, "true", "1", "yes", "on"].map((value) => [value, true] as const),
  ...[false, 0, "false", "0", "no", "off"].map((value) => [value, false] as const),
]);

/** Refuses queries that are too long, and a call that asks for more passages than the server gives at once. */
export function checkQueries(queries: readonly string[], k: number, limits: ServerLimits): void {
  const long = queries.findIndex(({ length }) => length > limits.queryCharacters);
  if (long >= 0)
    throw invalid(
      `queries of at most ${limits.queryCharacters} characters`,
      `${queries[long]?.length} characters in query ${long}`,
      "shorten it",
    );
  if (queries.length * k > limits.passages)
    throw invalid(
      `at most ${limits.passages} passages in one call`,
      `${queries.length} queries × ${k} passages = ${queries.length * k}`,
      "ask for fewer passages or send several calls",
    );
}

/** A request that is understood and cannot be served (422). */
export function invalid(expected: string, got: string, advice: string): HttpError {
  return new HttpError(422, { expected, got, advice });
}
