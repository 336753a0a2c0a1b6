/** One record of a file of records, read or refused, and how its values are named in messages. */
import type { DataFormatError } from "../../errors.ts";

export type JsonRecord = Readonly<Record<string, unknown>>;

/** A record that is not blank with the line where it starts, counted from 1: its object, or why it has none. */
export type RecordLine = { readonly line: number | undefined } & (
  | { readonly record: JsonRecord }
  | { readonly error: DataFormatError }
);

/** A value of a record for an error message, such as `the number 7` or `an empty text`. */
export function describeValue(value: unknown): string {
  if (value === undefined) return "nothing";
  if (value === null) return "null";
  if (Array.isArray(value)) return value.length === 0 ? "an empty list" : `a list of ${value.length}`;
  if (typeof value === "string") return value.trim() === "" ? "an empty text" : excerpt(value);
  return typeof value === "object" ? "an object" : `the ${typeof value} ${String(value)}`;
}

/** The start of a text in quotes, at most 40 characters. */
export function excerpt(text: string): string {
  const whole = text.trim();
  return JSON.stringify(whole.length <= 40 ? whole : `${whole.slice(0, 40)}…`);
}
