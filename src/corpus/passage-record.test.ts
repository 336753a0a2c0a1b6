/** How a record that is no passage is named in messages. */
import { expect, test } from "vitest";
import type { DataFormatError } from "../errors.ts";
import { passageOf } from "./passage-record.ts";

const messageOf = (record: Readonly<Record<string, unknown>>): string =>
  (passageOf(record, "f", 1) as DataFormatError).message;

test("keys of a record come in quotes, without anything that steers a terminal", () => {
  const message = messageOf({ id: 1, "\u001b[2Jred": 1, "\u009b31m": 2 });
  expect(message).toContain(String.raw`(keys: "id", "\u001b[2Jred", "\u009b31m")`);
});

test("long keys are cut, and ten are shown", () => {
  const long = Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`${i} ${"k".repeat(500)}`, i]));
  const message = messageOf({ id: 1, ...long });
  expect(message).toMatch(/kkk…", …\)$/);
  expect(message.length).toBeLessThan(700);
});
