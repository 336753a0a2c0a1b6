import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { coverExactMatch } from "./cover-exact-match.ts";
import { exactMatch } from "./exact-match.ts";
import { normalizeAnswer } from "./normalize-answer.ts";
import { tokenF1 } from "./token-f1.ts";

interface Golden {
  readonly normal: readonly { readonly answer: string; readonly normal: string }[];
  readonly pairs: readonly {
    readonly prediction: string;
    readonly gold: string;
    readonly exactMatch: 0 | 1;
    readonly cover: 0 | 1;
    readonly f1: number;
  }[];
}

const path = new URL("../../test/golden/reward/answers.json", import.meta.url);
const golden = JSON.parse(readFileSync(path, "utf8")) as Golden;

describe("against Python", () => {
  test.each(golden.normal)("$answer has the same normal form", ({ answer, normal }) => {
    expect(normalizeAnswer(answer)).toBe(normal);
  });

  test("pairs have the same exact match, cover exact match and F1", () => {
    for (const { prediction, gold, ...expected } of golden.pairs) {
      const cover = normalizeAnswer(gold) === "" ? 0 : expected.cover;
      const context = JSON.stringify([prediction, gold]);
      expect(exactMatch(prediction, [gold]), context).toBe(expected.exactMatch);
      expect(coverExactMatch(prediction, [gold]), context).toBe(cover);
      expect(tokenF1(prediction, [gold]), context).toBeCloseTo(expected.f1, 12);
    }
  });
});

test("case, ASCII punctuation and white space around words do not matter", () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom("cat", "dog", "théâtre", "日本"), { minLength: 1 }), (words) => {
      const decorated = ` The ${words.map((word) => `"${word.toUpperCase()}",`).join("\n ")} a `;
      expect(normalizeAnswer(decorated)).toBe(words.join(" "));
      expect(exactMatch(decorated, ["something", words.join(" ")])).toBe(1);
    }),
  );
});

test("the best gold answer counts, and no answer scores nothing", () => {
  expect(tokenF1("New York City", ["Paris", "York", "New York"])).toBeCloseTo(0.8, 12);
  expect(exactMatch("paris", ["London", "Paris"])).toBe(1);
  expect(coverExactMatch("it is in Paris, France", ["paris"])).toBe(1);
  for (const score of [exactMatch, coverExactMatch, tokenF1]) expect(score(undefined, ["", "Paris"])).toBe(0);
});

test("an F1 counts each common word as often as both have it", () => {
  expect(tokenF1("x x x", ["x x y"])).toBeCloseTo(2 / 3, 12);
});
