import fc from "fast-check";
import { expect, test } from "vitest";
import { wordsOf } from "./analyze.ts";
import { WordTable } from "./word-table.ts";

/** A table whose codes are the numbers of words in a list, and the words that it finds in a text. */
function numbered(mostWords?: number) {
  const asked: string[] = [];
  const numbers: string[] = [];
  const codesOf = (run: string): number[] => {
    asked.push(run);
    return wordsOf(run).map((word) => {
      const known = numbers.indexOf(word);
      return known >= 0 ? known : numbers.push(word) - 1;
    });
  };
  const table = mostWords === undefined ? new WordTable(codesOf) : new WordTable(codesOf, mostWords);
  const wordsIn = (text: string): string[] =>
    Array.from(table.codesOf(text), (code) => numbers[code] as string);
  return { asked, wordsIn, table };
}

test("finds the words that the analysis finds, in any text and order", () => {
  const { wordsIn } = numbered();
  const text = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.string({ unit: "grapheme" }),
    fc
      .array(
        fc.constantFrom(
          "Ada",
          "ada",
          "élan",
          "½",
          "ﬁn",
          "a\u{1f642}b",
          "𝛼",
          "x".repeat(41),
          "™",
          "東京タワー",
        ),
      )
      .map((list) => list.join(" ")),
  );
  fc.assert(
    fc.property(text, (value) => {
      expect(wordsIn(value)).toEqual(wordsOf(value));
    }),
    { numRuns: 500 },
  );
});

test("asks once about each word, however many there are, and again only about very long ones", () => {
  let asked: string[] = [];
  const table = new WordTable((word) => {
    asked.push(word);
    return [Number(word.slice(1))];
  });
  const words = Array.from({ length: 20_000 }, (_, i) => `w${i}`);
  const text = `${words.join(" ")} W1`;
  const codes = [...words.keys(), 1];
  expect(Array.from(table.codesOf(text))).toEqual(codes);
  expect(Array.from(table.codesOf(text))).toEqual(codes);
  expect(asked).toEqual(words);
  asked = [];
  const long = `y${"0".repeat(40)}7`;
  expect(Array.from(table.codesOf(`${long} ${long}`))).toEqual([7, 7]);
  expect(asked).toEqual([long, long]);
});

test("forgets everything when it has seen too many words, and when told to, and goes on", () => {
  const { asked, wordsIn, table } = numbered(3);
  const words = ["a", "b", "c", "d", "a", "b", "c", "a"];
  for (let round = 0; round < 3; round++) expect(wordsIn(words.join(" "))).toEqual(words);
  expect(asked.length).toBeGreaterThan(4);
  const before = asked.length;
  table.clear();
  expect(wordsIn("a")).toEqual(["a"]);
  expect(asked).toHaveLength(before + 1);
});
