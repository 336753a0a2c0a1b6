import fc from "fast-check";
import { expect, test } from "vitest";
import { termOf, wordsOf } from "./analyze.ts";
import { STOP_WORDS } from "./stop-words.ts";

test.each([
  ["São Tomé's 2nd", ["sao", "tome", "s", "2nd"]],
  ["İstanbul ﬁnds ½ Ångström", ["istanbul", "finds", "1", "2", "angstrom"]],
  ["U.S.A. co-op x_y", ["u", "s", "a", "co", "op", "x", "y"]],
  ["Straße GROẞ Ærø Œuvre", ["strasse", "gross", "aero", "oeuvre"]],
  ["Łódź Đà Þingvellir Ísafjarðar", ["lodz", "da", "thingvellir", "isafjardar"]],
  ["Diyarbakır Ħamrun Əliyev Hawaiʻi", ["diyarbakir", "hamrun", "aliyev", "hawaii"]],
  ["Москва, Ёлка", ["москва", "елка"]],
  ["हिन्दी भाषा", ["हिन्दी", "भाषा"]],
  ["東京タワー", ["東京", "京タ", "タワ", "ワー"]],
  ["東京2020年の夏", ["東京", "2020", "年の", "の夏"]],
  ["木", ["木"]],
  ["ﾄﾞｲﾂ が", ["ドイ", "イツ", "が"]],
  ["대한민국 서울", ["대한", "한민", "민국", "서울"]],
  ["ภาษาไทยง่าย", ["ภาษา", "ไทย", "ง่าย"]],
  ["Tokyo東京Tower", ["tokyo", "東京", "tower"]],
  ["", []],
  ["—…“”", []],
])("%j has the words %j", (text, words) => {
  expect(wordsOf(text)).toEqual(words);
});

test("folding marks only leaves letters whole that are no plain letter with a mark", () => {
  expect(wordsOf("Straße Ærø Łódź São", "marks")).toEqual(["straße", "ærø", "łodz", "sao"]);
});

test("folding twice changes nothing", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), (text) => {
      // The dictionary may cut a word that stands alone in another way.
      fc.pre(!/[\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u.test(text));
      const words = wordsOf(text);
      expect(wordsOf(words.join(" "))).toEqual(words);
    }),
  );
});

test("there are 179 stop words, all in folded form but for apostrophes", () => {
  expect(STOP_WORDS.size).toBe(179);
  for (const word of STOP_WORDS) expect(word).toMatch(/^[a-z']+$/);
});

test("a run of 100,000 characters without spaces becomes many short terms", () => {
  for (const character of ["東", "ก", "ខ"]) {
    const words = wordsOf(character.repeat(100_000));
    expect(words.length).toBeGreaterThan(40);
    expect(Math.max(...words.map((word) => word.length))).toBeLessThanOrEqual(2000);
  }
  expect(wordsOf("東".repeat(100_000))).toHaveLength(99_999);
});

test("stemming and stop words can be switched off, one by one or by the language", () => {
  const english = { language: "english", stopWords: true, stemming: true, folding: "letters" } as const;
  expect(termOf("being", english)).toEqual({ text: "BEING", isStopWord: true });
  expect(termOf("being", { ...english, stopWords: false })).toEqual({ text: "be", isStopWord: false });
  expect(termOf("being", { ...english, stemming: false })).toEqual({ text: "BEING", isStopWord: true });
  expect(termOf("being", { ...english, folding: "marks" })).toEqual({ text: "be", isStopWord: true });
  expect(termOf("being", { ...english, language: "none" })).toEqual({ text: "being", isStopWord: false });
  expect(termOf("rivers", english)).toEqual({ text: "river", isStopWord: false });
});
