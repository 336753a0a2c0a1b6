import fc from "fast-check";
import { expect, test } from "vitest";
import { wordsOf } from "./analyze.ts";
import { WordTable } from "./word-table.ts";

test("finds the words that the analysis finds, in any text and order", () => {
  const table = new WordTable(wordsOf);
  const text = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.string({ unit: "grapheme" }),
    fc
      .array(fc.constantFrom("Ada", "ada", "élan", "½", "ﬁn", "a\u{1f642}b", "𝛼", "x".repeat(41), "™"))
      .map((list) => list.join(" ")),
  );
  fc.assert(
    fc.property(text, (value) => {
      expect(table.valuesOf(value).flat()).toEqual(wordsOf(value));
    }),
    { numRuns: 500 },
  );
});

test("asks once about each word, however many there are, and again only about very long ones", () => {
  const asked: string[] = [];
  const table = new WordTable((word) => {
    asked.push(word);
    return word;
  });
  const words = Array.from({ length: 20_000 }, (_, i) => `w${i}`);
  const text = `${words.join(" ")} W1`;
  expect(table.valuesOf(text)).toEqual([...words, "w1"]);
  expect(table.valuesOf(text)).toEqual([...words, "w1"]);
  expect(asked).toEqual(words);
  const long = "y".repeat(41);
  expect(table.valuesOf(`${long} ${long}`)).toEqual([long, long]);
  expect(asked.slice(words.length)).toEqual([long, long]);
});

test("forgets everything when it has seen too many words, and goes on", () => {
  let asked = 0;
  const table = new WordTable((word) => {
    asked++;
    return word;
  }, 3);
  const words = ["a", "b", "c", "d", "a", "b", "c", "a"];
  for (let round = 0; round < 3; round++) expect(table.valuesOf(words.join(" "))).toEqual(words);
  expect(asked).toBeGreaterThan(4);
});
