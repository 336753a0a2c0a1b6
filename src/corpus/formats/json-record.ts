/** One record of a file of records, read or refused, and how its values are named in messages. */
import type { DataFormatError } from "../../errors.ts";

export type JsonRecord = Readonly<Record<string, unknown>>;

/** A record that is not blank with the line where it starts, counted from 1: its object, or why it has none. */
export type RecordLine = { readonly line: number | undefined } & (
  | { readonly record: JsonRecord }
  | { readonly error: DataFormatError }
);

/** Levels of the keys that are kept: what is written and hashed level by level must not use up the stack. */
const MOST_LEVELS = 200;

/** What is wrong with values that lie within each other too deep; undefined when nothing is. */
export function nestedTooDeep(value: unknown): string | undefined {
  if (!isDeeperThan(value, MOST_LEVELS)) return undefined;
  return `expected values of at most ${MOST_LEVELS} levels, got more brackets within brackets`;
}

function isDeeperThan(value: unknown, levels: number): boolean {
  if (value === null || typeof value !== "object") return false;
  return levels === 0 || Object.values(value).some((inner) => isDeeperThan(inner, levels - 1));
}

/** A value of a record for an error message, such as `the number 7` or `an empty text`. */
export function describeValue(value: unknown): string {
  if (value === undefined) return "nothing";
  if (value === null) return "null";
  if (Array.isArray(value)) return value.length === 0 ? "an empty list" : `a list of ${value.length}`;
  if (typeof value === "string") return value.trim() === "" ? "an empty text" : excerpt(value);
  return typeof value === "object" ? "an object" : `the ${typeof value} ${String(value)}`;
}

/** The keys of a record for an error message, at most ten. */
export function describeKeys(record: JsonRecord): string {
  const keys = Object.keys(record);
  const shown = keys.slice(0, 10).map(excerpt).join(", ");
  return keys.length > 10 ? `${shown}, …` : shown;
}

/** The start of a text in quotes, at most 40 characters; what would steer a terminal is escaped. */
export function excerpt(text: string): string {
  const whole = text.trim();
  // JSON leaves DEL and the C1 controls as they are.
  return escaped(JSON.stringify(whole.length <= 40 ? whole : `${whole.slice(0, 40)}…`));
}

/** A text with the controls that would steer a terminal as `\u001b` and the like. */
export function escaped(text: string): string {
  return text.replace(/\p{Cc}/gu, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
