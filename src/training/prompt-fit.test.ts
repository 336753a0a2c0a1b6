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

test("the longest prompt is counted in tokens, template included", async () => {
  expect(await longestPrompt(questions, { environment, tokenizer })).toEqual({
    question: questions[1],
    tokens: longest,
  });
  expect(await longestPrompt([], { environment, tokenizer })).toBeUndefined();
  const rag = environmentOptionsSchema.parse({ prompt: "bare", mode: "rag", maxObservationTokens: 50 });
  const tags = "\n".length;
  expect((await longestPrompt(questions, { environment: rag, tokenizer }))?.tokens).toBe(longest + tags + 50);
});

test("prompt and one turn may fill the context exactly, one token more is refused by name", async () => {
  const model = { tokenizer, contextLength: longest + 10 };
  await requirePromptsFit(questions, environment, model);
  const tight = { tokenizer, contextLength: longest + 9 };
  await expect(requirePromptsFit(questions, environment, tight)).rejects.toThrow(ConfigError);
  await expect(requirePromptsFit(questions, environment, tight)).rejects.toThrow(
    /question made\/1 is too long: its prompt has 36 tokens/,
  );
});
