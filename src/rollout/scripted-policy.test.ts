import { expect, test } from "vitest";
import { PolicyError } from "../errors.ts";
import { trainBytePair } from "../tokenizer/byte-pair-training.ts";
import { policySuite } from "./policy.suite.ts";
import type { Context } from "./policy.ts";
import { scriptedPolicy } from "./scripted-policy.ts";

const tokenizer = trainBytePair([], { vocabularySize: 258, specialTokens: [] });
const options = { maxTokens: 100, temperature: 1, topP: 1, topK: 0, stop: [] };
const context = (episode?: string): Context => ({
  text: "q",
  seed: 1,
  ...(episode === undefined ? {} : { episode }),
});

policySuite("a scripted policy", {
  create: async () => ({
    policy: scriptedPolicy(({ text }) => `${text} was asked in earnest`, tokenizer),
    tokenizer,
    prompts: ["one", "two", "three"],
  }),
  skip: {
    stopStrings: "a script is said to its end",
    abortWhileWorking: "it answers at once",
    seeds: "it does not sample",
  },
});

test("a list is played anew for each episode, and calls are recorded", async () => {
  const policy = scriptedPolicy(["first", "second"]);
  const say = async (episode?: string) => (await policy.complete([context(episode)], options))[0]?.text;
  expect([await say("a"), await say("b"), await say("a"), await say(), await say()]).toEqual([
    "first",
    "first",
    "second",
    "first",
    "second",
  ]);
  expect(policy.calls.map((call) => call.episode)).toEqual(["a", "b", "a", undefined, undefined]);
});

test("a script that has run out is a policy error", async () => {
  const policy = scriptedPolicy(["only"]);
  await policy.complete([context("a")], options);
  await expect(policy.complete([context("a")], options)).rejects.toThrow(PolicyError);
  await expect(policy.complete([context("a")], options)).rejects.toThrow(/episode "a" has no turn 2/);
});

test("without a tokenizer there are no ids; with one they are those of the text, cut at maxTokens", async () => {
  const [bare] = await scriptedPolicy(["abc"]).complete([context()], options);
  expect(bare).toEqual({
    text: "abc",
    finishReason: "stop",
    usage: { promptTokens: 0, completionTokens: 0 },
  });
  const [cut] = await scriptedPolicy(["abc"], tokenizer).complete([context()], { ...options, maxTokens: 2 });
  expect(cut).toEqual({
    text: "ab",
    tokens: tokenizer.encode("ab"),
    logprobs: [0, 0],
    finishReason: "length",
    usage: { promptTokens: 0, completionTokens: 2 },
  });
});
