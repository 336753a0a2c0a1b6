import { expect, test } from "vitest";
import { madeUpTable } from "../../../test/made-up-methods.ts";
import { methodPage } from "./page.ts";
import { selectiveMarkdown } from "./selective.ts";
import { methodMarkdown } from "./texts.ts";

test("methods that tell how sure they are get their curve, the others no place in it", () => {
  const [, table = ""] = selectiveMarkdown(madeUpTable());
  const names = table.split("\n").flatMap((row) => /^\| (\w[\w-]*) \|/.exec(row)?.[1] ?? []);
  expect(names).toEqual(["method", "ircot", "search-o1", "rejection-sampling", "search-r1"]);
  const page = methodPage(madeUpTable());
  expect(page).toMatch(/aria-label="Risk against coverage\. ircot: from 0/);
  expect(methodMarkdown(madeUpTable())).toContain("## Selective answering");
});

test("without abstentions and confidence there is nothing to say", () => {
  const { rows, ...table } = madeUpTable();
  const plain = { ...table, rows: rows.filter(({ name }) => name === "direct") };
  expect(selectiveMarkdown(plain)).toEqual([]);
  expect(methodPage(plain)).not.toContain("Selective answering");
});
