import { expect, it } from "vitest";
import { answerMatcher, isVerdict, matchTokens } from "./answer-match.ts";

it("cuts text into runs of letters, numbers and marks, and single symbols", () => {
  expect(matchTokens("O'Neil, 3rd café—x_y")).toEqual([
    "o",
    "'",
    "neil",
    ",",
    "3rd",
    "café".normalize("NFD"),
    "—",
    "x",
    "_",
    "y",
  ]);
});

it.each([
  ["in the text", ["Bo Lee"], "T", "It was bo lee.", true],
  ["in the title", ["the Beatles"], "The Beatles", "", true],
  ["composed and decomposed alike", ["Café"], "T", "cafe\u0301", true],
  ["with symbols as tokens", ["U.S."], "T", "in the U.S. today", true],
  ["not within a word", ["art"], "T", "a party", false],
  ["not across other words", ["Bo Lee"], "T", "bo the lee", false],
  ["not across title and text", ["one two"], "one", "two", false],
  ["any alias", ["no such", "lee"], "T", "lee", true],
  ["after a false start", ["a a b"], "T", "a a a b", true],
  ["an answer without tokens nowhere", [" "], "T", "x", false],
])("finds an answer %s", (_, answers, title, text, expected) => {
  expect(answerMatcher(answers)({ title, text })).toBe(expected);
});

it("knows verdicts", () => {
  expect(isVerdict(["Yes", "true"])).toBe(true);
  expect(isVerdict(["yes", "Paris"])).toBe(false);
  expect(isVerdict([])).toBe(false);
});
