import { expect, test } from "vitest";
import type { Question } from "../corpus/question.ts";
import { environmentOptionsSchema } from "../environment/environment-options.ts";
import { ConfigError } from "../errors.ts";
import { byteCharacters } from "../tokenizer/byte-alphabet.ts";
import { createBytePair, endOfText, padding } from "../tokenizer/byte-pair.ts";
import { longestPrompt, requirePromptsFit } from "./prompt-fit.ts";

const tokenizer = createBytePair({
  vocabulary: [endOfText, padding, ...byteCharacters],
  merges: [],
  specialTokens: [endOfText, padding],
});
const environment = environmentOptionsSchema.parse({ prompt: "bare", maxTurnTokens: 10 });
const questions = ["Who?", "Who wrote this long book?", "Where?"].map(
  (text, id): Question => ({ id: String(id), dataset: "made", text, goldAnswers: ["x"], goldPassages: [] }),
);
const longest = "Question: Who wrote this long book?\n".length;

test("the longest prompt is counted in tokens, template included", () => {
  expect(longestPrompt(questions, { environment, tokenizer })).toEqual({
    question: questions[1],
    tokens: longest,
  });
  expect(longestPrompt([], { environment, tokenizer })).toBeUndefined();
});

test("prompt and one turn may fill the context exactly, one token more is refused by name", () => {
  const model = { tokenizer, contextLength: longest + 10 };
  expect(() => requirePromptsFit(questions, environment, model)).not.toThrow();
  const tight = { tokenizer, contextLength: longest + 9 };
  expect(() => requirePromptsFit(questions, environment, tight)).toThrow(ConfigError);
  expect(() => requirePromptsFit(questions, environment, tight)).toThrow(
    /question made\/1 is too long: its prompt has 36 tokens/,
  );
});
