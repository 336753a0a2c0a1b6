import fc from "fast-check";
import { expect, test } from "vitest";
import { termOf, wordsOf } from "./analyze.ts";
import { STOP_WORDS } from "./stop-words.ts";

test.each([
  ["São Tomé's 2nd", ["sao", "tome", "s", "2nd"]],
  ["İstanbul ﬁnds ½ Ångström", ["istanbul", "finds", "1", "2", "angstrom"]],
  ["U.S.A. co-op x_y", ["u", "s", "a", "co", "op", "x", "y"]],
  ["Москва, Ёлка", ["москва", "елка"]],
  ["हिन्दी भाषा", ["हिन्दी", "भाषा"]],
  ["東京タワー", ["東京タワー"]],
  ["", []],
  ["—…“”", []],
])("%j has the words %j", (text, words) => {
  expect(wordsOf(text)).toEqual(words);
});

test("folding twice changes nothing", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), (text) => {
      const words = wordsOf(text);
      expect(wordsOf(words.join(" "))).toEqual(words);
    }),
  );
});

test("there are 179 stop words, all in folded form but for apostrophes", () => {
  expect(STOP_WORDS.size).toBe(179);
  for (const word of STOP_WORDS) expect(word).toMatch(/^[a-z']+$/);
});

test("stemming and stop words can be switched off", () => {
  expect(termOf("being", { stopWords: true, stemming: true })).toEqual({ text: "be", isStopWord: true });
  expect(termOf("being", { stopWords: false, stemming: false })).toEqual({
    text: "being",
    isStopWord: false,
  });
  expect(termOf("rivers", { stopWords: true, stemming: true })).toEqual({ text: "river", isStopWord: false });
});
