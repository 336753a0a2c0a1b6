/** Replies in the shapes that the servers' source and documentation have, read into one form. */
import { expect, test } from "vitest";
import { type ProfileName, profiles } from "./profiles.ts";
import { Misfit, type Reading, readReply } from "./reply.ts";

const reading = (profile: ProfileName, api: Reading["api"], wantsTokens = false): Reading => ({
  api,
  profile: profiles[profile],
  wantsTokens,
});
const head = { id: "cmpl-1", object: "text_completion", created: 1764500000, model: "m" };
const usage = { prompt_tokens: 120, completion_tokens: 2, total_tokens: 122 };
const read = { promptTokens: 120, completionTokens: 2 };

test("a chat of vLLM: ids beside the message, log-probabilities with ids for names, the stop string that was met", () => {
  const logprobs = {
    content: [
      { token: "token_id:11", logprob: -0.25, bytes: null, top_logprobs: [] },
      { token: "token_id:12", logprob: -0.5, bytes: null, top_logprobs: [] },
    ],
  };
  const message = { role: "assistant", content: "hi</answer>", reasoning_content: null, tool_calls: [] };
  const choice = {
    index: 0,
    message,
    logprobs,
    finish_reason: "stop",
    stop_reason: "</answer>",
    token_ids: [11, 12],
  };
  const details = { prompt_tokens_details: { cached_tokens: 96 } };
  expect(
    readReply(
      { ...head, choices: [choice], usage: { ...usage, ...details }, prompt_logprobs: null },
      reading("vllm", "chat", true),
    ),
  ).toEqual({
    text: "hi</answer>",
    finish: "stop",
    met: "</answer>",
    tokens: [11, 12],
    logprobs: [-0.25, -0.5],
    usage: { ...read, cachedTokens: 96 },
  });
  const { token_ids: _, ...older } = choice;
  expect(readReply({ ...head, choices: [older], usage }, reading("vllm", "chat", true))).toMatchObject({
    tokens: [11, 12],
  });
});

test("completions of SGLang: ids of their own, and the matched stop, which may be a token", () => {
  const logprobs = {
    text_offset: [0, 0],
    tokens: ["h", "i"],
    token_logprobs: [-0.1, -0.2],
    top_logprobs: null,
  };
  const choice = {
    index: 0,
    text: "hi",
    logprobs,
    finish_reason: "stop",
    matched_stop: 2,
    token_ids: [7, 2],
  };
  expect(
    readReply(
      { ...head, choices: [choice], usage: { ...usage, prompt_tokens_details: null } },
      reading("sglang", "completions", true),
    ),
  ).toEqual({ text: "hi", finish: "stop", met: 2, tokens: [7, 2], logprobs: [-0.1, -0.2], usage: read });
});

test("llama.cpp: a list of tokens with ids in both dialects, cached tokens without being asked", () => {
  const logprobs = { content: [{ id: 5, token: "hi", bytes: [104, 105], logprob: -0.3, top_logprobs: [] }] };
  const reply = {
    ...head,
    choices: [{ index: 0, text: "hi", logprobs, finish_reason: "length" }],
    usage: { ...usage, completion_tokens: 1, prompt_tokens_details: { cached_tokens: 119 } },
    timings: { prompt_n: 1, predicted_n: 1 },
  };
  expect(readReply(reply, reading("llamacpp", "completions", true))).toEqual({
    text: "hi",
    finish: "length",
    tokens: [5],
    logprobs: [-0.3],
    usage: { promptTokens: 120, completionTokens: 1, cachedTokens: 119 },
  });
});

test("Ollama: a message, with log-probabilities but no ids where they are asked for", () => {
  const logprobs = { content: [{ token: "hi", logprob: -0.3, bytes: [104, 105], top_logprobs: [] }] };
  const message = { role: "assistant", content: "hi" };
  const reply = { ...head, choices: [{ index: 0, message, logprobs, finish_reason: "stop" }], usage };
  expect(readReply(reply, reading("ollama", "chat"))).toEqual({ text: "hi", finish: "stop", usage: read });
  expect(readReply(reply, reading("ollama", "chat", true))).toBeInstanceOf(Misfit);
});

test.each([
  ["OpenAI and most others", { prompt_tokens_details: { cached_tokens: 100, audio_tokens: 0 } }, 100],
  ["DeepSeek", { prompt_cache_hit_tokens: 64, prompt_cache_miss_tokens: 56 }, 64],
  ["Moonshot", { cached_tokens: 32 }, 32],
  ["a server that counts more than the prompt", { prompt_tokens_details: { cached_tokens: 200 } }, 120],
  ["a server that tells nothing", {}, undefined],
  ["a server that tells null", { prompt_tokens_details: { cached_tokens: null } }, undefined],
])("cached tokens as told by %s", (_, told, cached) => {
  const choices = [{ index: 0, message: { role: "assistant", content: "hi" }, finish_reason: "stop" }];
  const reply = readReply({ ...head, choices, usage: { ...usage, ...told } }, reading("openai", "chat"));
  expect(reply).not.toBeInstanceOf(Misfit);
  expect((reply as { readonly usage: { readonly cachedTokens?: number } }).usage.cachedTokens).toBe(cached);
});

test.each([
  ["a filter", { finish_reason: "content_filter" }],
  ["an abort", { finish_reason: "abort" }],
  ["a call of a tool", { finish_reason: "tool_calls" }],
])("%s is no answer", (_, end) => {
  const choices = [{ index: 0, message: { role: "assistant", content: null }, ...end }];
  expect(readReply({ ...head, choices, usage }, reading("openai", "chat"))).toBeInstanceOf(Misfit);
});
