import { describe, expect, test } from "vitest";
import { plannerCodec } from "../../environment/planner-codec.ts";
import { ConfigError, PolicyError } from "../../errors.ts";
import { isBudgetSpent } from "../../shared/budget.ts";
import { type Answer, cutOff, deadUrl, silence, testWorld } from "../../shared/server.fixture.ts";
import { trainBytePair } from "../../tokenizer/byte-pair-training.ts";
import { policySuite } from "../policy.suite.ts";
import type { Context, SamplingOptions } from "../policy.ts";
import { createEndpointPolicy } from "./endpoint-policy.ts";
import { endpointOptions, startModelServer } from "./model-server.fixture.ts";
import type { ProfileName } from "./profiles.ts";

const tokenizer = trainBytePair([], { vocabularySize: 258, specialTokens: [] });
const prompts = ["Which river flows through Prague?", "Who wrote Faust?", "Where is Heathrow?"];
const sampling: SamplingOptions = { maxTokens: 12, temperature: 0, topP: 1, topK: 0, stop: [] };
const context: Context = { text: "Who wrote Faust?", seed: 7, episode: "q/1#0" };

interface Given {
  readonly profile?: ProfileName;
  readonly instead?: (count: number) => Answer | undefined;
  readonly cachedTokens?: number;
  readonly keys?: Readonly<Record<string, string>>;
  readonly withTokenizer?: boolean;
  readonly [option: string]: unknown;
}

async function opened({ instead, cachedTokens, keys, withTokenizer = false, ...given }: Given = {}) {
  const { profile = "openai" } = given;
  const server = await startModelServer({
    tokenizer,
    profile,
    instead: instead && ((_request, count) => instead(count)),
    ...(cachedTokens !== undefined && { cachedTokens }),
  });
  const world = testWorld(keys);
  const options = endpointOptions(server.url, { ...given, ...(withTokenizer && { tokenizer: "tiny" }) });
  return {
    server,
    world,
    policy: createEndpointPolicy(options, world, withTokenizer ? tokenizer : undefined),
  };
}

const withoutIds = "the server does not tell the ids it sampled";
describe.each([
  ["vllm", "completions", true],
  ["vllm", "chat", true],
  ["sglang", "completions", true],
  ["openai", "completions", false],
  ["openai", "chat", false],
  ["sglang", "chat", false],
  ["llamacpp", "completions", false],
  ["ollama", "chat", false],
] as const)("%s with %s", (profile, api, hasIds) => {
  policySuite(`an endpoint of ${profile} with ${api}`, {
    create: async () => {
      const { policy } = await opened({ profile, api, logprobs: hasIds, withTokenizer: hasIds });
      return { policy, tokenizer, prompts };
    },
    skip: hasIds ? {} : { tokens: withoutIds, stopStrings: "whether such a stop string was met is not told" },
  });
});

describe("a request", () => {
  test("of completions sends the ids of a context, else its text, and all that shapes the sampling", async () => {
    const { server, policy } = await opened({
      profile: "vllm",
      api: "completions",
      logprobs: true,
      withTokenizer: true,
    });
    const tokens = tokenizer.encode(context.text);
    await policy.complete([{ ...context, tokens }], { ...sampling, topK: 5, stop: ["</answer>"] });
    await policy.complete([context], sampling);
    expect(server.requests[0]?.path).toBe("/v1/completions");
    expect(server.bodies[0]).toEqual({
      model: "tiny",
      prompt: tokens,
      max_tokens: 12,
      temperature: 0,
      top_p: 1,
      top_k: 5,
      min_p: 0,
      repetition_penalty: 1,
      seed: 7,
      stop: ["</answer>"],
      include_stop_str_in_output: true,
      logprobs: 1,
      return_token_ids: true,
      return_tokens_as_token_ids: true,
    });
    expect(server.bodies[1]).toMatchObject({ prompt: context.text, top_k: 0 });
    expect(server.bodies[1]).not.toHaveProperty("stop");
  });

  const later: Context = {
    text: "Q?\n<search> x </search>\n<information> y </information>\n",
    parts: [
      { source: "prompt", text: "Q?\n" },
      { source: "policy", text: "<search> x </search>" },
      { source: "environment", text: "\n<information> y </information>\n" },
    ],
    seed: 1,
  };
  test.each([
    ["vllm", { add_generation_prompt: false, continue_final_message: true, max_tokens: 12 }],
    ["sglang", { continue_final_message: true, max_tokens: 12 }],
    ["llamacpp", { max_tokens: 12 }],
    ["ollama", { max_tokens: 12 }],
  ] as const)("of a chat of %s goes on with the assistant's message", async (profile, fields) => {
    const { server, policy } = await opened({ profile });
    await policy.complete([later], sampling);
    expect(server.requests[0]?.path).toBe("/v1/chat/completions");
    expect(server.bodies[0]).toMatchObject({
      ...fields,
      messages: [
        { role: "user", content: "Q?\n" },
        { role: "assistant", content: "<search> x </search>\n<information> y </information>\n" },
      ],
    });
    await policy.complete([context], sampling);
    expect(server.bodies[1]).toMatchObject({ messages: [{ role: "user", content: context.text }] });
    expect(server.bodies[1]).not.toHaveProperty("continue_final_message");
  });

  test.each(["vllm", "sglang", "llamacpp"] as const)(
    "of a chat of %s can switch thinking off",
    async (profile) => {
      const { server, policy } = await opened({ profile, thinking: false });
      await policy.complete([context], sampling);
      expect(server.bodies[0]).toMatchObject({ chat_template_kwargs: { enable_thinking: false } });
      const silent = await opened({ profile });
      await silent.policy.complete([context], sampling);
      expect(silent.server.bodies[0]).not.toHaveProperty("chat_template_kwargs");
    },
  );

  test("of a chat elsewhere takes turns", async () => {
    const { server, policy } = await opened();
    await policy.complete([later], sampling);
    expect(server.bodies[0]).toEqual({
      model: "tiny",
      messages: [
        { role: "user", content: "Q?\n" },
        { role: "assistant", content: "<search> x </search>" },
        { role: "user", content: "\n<information> y </information>\n" },
      ],
      max_completion_tokens: 12,
      temperature: 0,
      top_p: 1,
      seed: 1,
    });
  });

  test("with top k is refused where the server has none", async () => {
    const { policy } = await opened();
    await expect(policy.complete([context], { ...sampling, topK: 3 })).rejects.toThrow(ConfigError);
  });

  test("goes below the URL, to which the version is added where it has no path", async () => {
    for (const path of ["", "/", "/v1", "/v1/", "/v1/chat/completions"]) {
      const server = await startModelServer({ tokenizer, profile: "openai" });
      await createEndpointPolicy(endpointOptions(server.url + path), testWorld()).complete(
        [context],
        sampling,
      );
      expect(server.requests[0]?.path).toBe("/v1/chat/completions");
    }
  });
});

describe("an answer", () => {
  const say = (text: string, more: Readonly<Record<string, unknown>> = {}, usage = {}) => ({
    json: {
      choices: [{ message: { content: text }, finish_reason: "stop", ...more }],
      usage: { prompt_tokens: 10, completion_tokens: 5, ...usage },
    },
  });
  const stop = ["</search>", "</answer>"];

  test.each([
    ["openai", "<think>a</think><search> x ", {}, "<think>a</think><search> x </search>", "stop"],
    ["openai", "<answer> Goethe ", {}, "<answer> Goethe </answer>", "stop"],
    ["openai", "I do not know.", {}, "I do not know.", "endOfText"],
    ["openai", "<answer> Goethe", { finish_reason: "length" }, "<answer> Goethe", "length"],
    ["vllm", "<answer> Goethe ", { stop_reason: "</answer>" }, "<answer> Goethe </answer>", "stop"],
    ["vllm", "<answer> Goethe </answer>", { stop_reason: "</answer>" }, "<answer> Goethe </answer>", "stop"],
    ["vllm", "<answer> Goethe ", { stop_reason: null }, "<answer> Goethe ", "endOfText"],
    ["sglang", "<answer> Goethe ", { matched_stop: 2 }, "<answer> Goethe ", "endOfText"],
    ["openai", "<answer> a </answer> and <search> b </search>", {}, "<answer> a </answer>", "stop"],
  ] as const)(
    "of %s %j %j ends as the contract says",
    async (profile, text, more, expected, finishReason) => {
      const { policy } = await opened({ profile, instead: () => say(text, more) });
      const [completion] = await policy.complete([context], { ...sampling, stop });
      expect(completion).toMatchObject({ text: expected, finishReason });
    },
  );

  test.each([
    ["openai", ["</search>"]],
    ["ollama", ["</search>"]],
    ["vllm", ["</search>", "<call_answer_llm>"]],
  ] as const)(
    "of %s keeps a planner's call of the generator, which is no closing tag",
    async (profile, sent) => {
      const { policy, server } = await opened({
        profile,
        instead: () => say("<think> enough </think><call_answer_llm>\nand more"),
      });
      const [completion] = await policy.complete([context], { ...sampling, stop: plannerCodec.stopStrings });
      expect(server.requests[0]?.body).toMatchObject({ stop: sent });
      expect(completion).toMatchObject({
        text: "<think> enough </think><call_answer_llm>",
        finishReason: "stop",
      });
    },
  );

  test("without content is empty", async () => {
    const { policy } = await opened({ instead: () => say(null as unknown as string) });
    expect((await policy.complete([context], sampling))[0]).toMatchObject({
      text: "",
      finishReason: "endOfText",
    });
  });

  test("costs what the price list says, cached tokens at their own price", async () => {
    const usage = {
      prompt_tokens: 1000,
      completion_tokens: 100,
      prompt_tokens_details: { cached_tokens: 800 },
    };
    const price = { input: 2, cached: 0.5, output: 8 };
    const { policy } = await opened({ price, instead: () => say("x", {}, usage) });
    const [completion] = await policy.complete([context], sampling);
    // 200 at $2, 800 at $0.5 and 100 at $8 a million.
    const dollars = 0.0016;
    expect(completion?.usage).toEqual({
      promptTokens: 1000,
      completionTokens: 100,
      cachedTokens: 800,
      dollars,
    });
    expect(policy.spent()).toEqual({ calls: 1, tokens: 1100, dollars });
  });

  test("has log-probabilities after the temperature only where they are those at temperature 1", async () => {
    const { policy } = await opened({ profile: "sglang", api: "completions", logprobs: true });
    const [[greedy], [warm]] = [
      await policy.complete([context], sampling),
      await policy.complete([context], { ...sampling, temperature: 0.7 }),
    ];
    expect(greedy?.logprobs).toHaveLength(greedy?.tokens?.length ?? -1);
    expect(warm?.tokens).toBeDefined();
    expect(warm?.logprobs).toBeUndefined();
  });
});

describe("a server that fails", () => {
  const passing: Readonly<Record<string, Answer>> = {
    "too many requests": { status: 429, text: "slow down", headers: { "retry-after": "3" } },
    "a server error": { status: 500, text: "" },
    "a connection that breaks": (response) => response.destroy(),
    "cut-off JSON": cutOff('{"choices": ['),
  };
  test.each(Object.entries(passing))("%s is tried again", async (name, answer) => {
    const { policy, world, server } = await opened({ instead: (count) => (count < 3 ? answer : undefined) });
    expect(await policy.complete([context], sampling)).toHaveLength(1);
    expect(server.requests).toHaveLength(3);
    expect(world.waits).toEqual(name === "too many requests" ? [3000, 3000] : [500, 1000]);
  });

  test("for ever ends as a policy error", async () => {
    const { policy } = await opened({ retries: 1, instead: () => ({ status: 503, text: "loading" }) });
    const error = await policy.complete([context], sampling).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(PolicyError);
    expect((error as Error).message).toMatch(
      /\/v1\/chat\/completions: got 503: "loading" \(attempt 2 of 2\)/,
    );
  });

  test("by saying nothing, or by not being there", async () => {
    const { policy } = await opened({ timeoutMs: 30, retries: 0, instead: () => silence });
    await expect(policy.complete([context], sampling)).rejects.toThrow("no answer within 0.03 s");
    const nowhere = createEndpointPolicy(endpointOptions(await deadUrl(), { retries: 0 }), testWorld());
    await expect(nowhere.complete([context], sampling)).rejects.toThrow("nothing listens there");
  });

  const choice = { message: { content: "x" }, finish_reason: "stop" };
  const usage = { prompt_tokens: 1, completion_tokens: 1 };
  test.each([
    [{ text: "" }, "expected JSON, got nothing"],
    [{ text: "<html>busy</html>" }, 'expected JSON, got "<html>busy</html>"'],
    [{ text: '{"choices": [{"mess' }, "expected JSON"],
    [
      { json: { error: { message: "no such model" } } },
      "expected one choice with message.content, and usage (choices",
    ],
    [{ json: { choices: [], usage } }, "expected one choice"],
    [{ json: { choices: [choice, choice], usage } }, "expected one choice"],
    [{ json: { choices: [choice] } }, "and usage (usage"],
    [
      { json: { choices: [{ ...choice, finish_reason: "content_filter" }], usage } },
      "expected finish_reason stop or length",
    ],
    [{ status: 400, text: "maximum context length is 10" }, 'got 400: "maximum context length is 10"'],
    [{ status: 401, text: "" }, "the key is missing, wrong or without rights"],
  ])("%j is a policy error at once", async (answer: Answer, message) => {
    const { policy, server } = await opened({ instead: () => answer });
    const error = await policy.complete([context], sampling).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(PolicyError);
    expect((error as Error).message).toContain(message);
    expect(server.requests).toHaveLength(1);
  });

  const served = { text: "ab", finish_reason: "length", stop_reason: null };
  test.each([
    [{ ...served, logprobs: null }, "expected logprobs, which were asked for"],
    [
      { ...served, logprobs: { tokens: ["a", "b"], token_logprobs: [-1, -1] } },
      "expected the id of each sampled token",
    ],
    [
      { ...served, logprobs: { tokens: ["a"], token_logprobs: [-1, -1] } },
      "as many log-probabilities as tokens",
    ],
    [
      { ...served, token_ids: [1, 2], logprobs: { tokens: ["token_id:1"], token_logprobs: [-1] } },
      "a log-probability for each of 2 sampled ids, got 1",
    ],
  ])("%j lacks what was asked for", async (only, message) => {
    const { policy } = await opened({
      profile: "vllm",
      api: "completions",
      logprobs: true,
      instead: () => ({ json: { choices: [only], usage } }),
    });
    await expect(policy.complete([context], sampling)).rejects.toThrow(message);
  });

  test("does not show the key, which is sent and must be there", async () => {
    const keys = { A_KEY: "s3cr3t" };
    const { policy, server } = await opened({
      apiKeyEnv: "A_KEY",
      keys,
      instead: () => ({ status: 403, text: "bad key s3cr3t" }),
    });
    const error = (await policy.complete([context], sampling).catch((e: unknown) => e)) as Error;
    expect(server.requests[0]?.headers.authorization).toBe("Bearer s3cr3t");
    expect(JSON.stringify([error.message, error.stack, policy.identity])).not.toContain("s3cr3t");
    await expect(opened({ apiKeyEnv: "A_KEY" })).rejects.toThrow(
      "in the environment variable A_KEY, got nothing",
    );
  });
});

test("never more calls are in flight than allowed", async () => {
  const { policy, server } = await opened({ concurrency: 3 });
  const contexts = Array.from({ length: 20 }, (_, seed) => ({ ...context, seed }));
  await Promise.all([policy.complete(contexts, sampling), policy.complete(contexts, sampling)]);
  expect(server.mostOpen()).toBeLessThanOrEqual(3);
});

describe("the budget", () => {
  const contexts = (n: number) => Array.from({ length: n }, (_, seed) => ({ ...context, seed }));

  test("in calls ends with an error of its own, before a call too many", async () => {
    const { policy, server } = await opened({ budget: { maxCalls: 5 } });
    const settled = await Promise.allSettled(contexts(12).map((one) => policy.complete([one], sampling)));
    expect(settled.filter(({ status }) => status === "fulfilled")).toHaveLength(5);
    expect(settled.every((one) => one.status === "fulfilled" || isBudgetSpent(one.reason))).toBe(true);
    expect(server.requests).toHaveLength(5);
    await expect(policy.complete([context], sampling)).rejects.toThrow(
      "the model budget of 5 calls is spent: 5 calls",
    );
  });

  test("in tokens lets calls wait for what others give back, and is never exceeded", async () => {
    // Each call may cost its 16 bytes, a template's 256 tokens and 12 sampled ones, and costs 16 and at most 12.
    const { policy, server } = await opened({ budget: { maxTokens: 600 } });
    const settled = await Promise.allSettled(contexts(40).map((one) => policy.complete([one], sampling)));
    const answered = settled.filter(({ status }) => status === "fulfilled").length;
    expect(answered).toBeGreaterThan(10);
    expect(answered).toBeLessThan(40);
    expect(server.requests).toHaveLength(answered);
    expect(policy.spent().tokens).toBeLessThanOrEqual(600);
    expect(policy.spent().tokens).toBeGreaterThan(600 - 16 - 256 - 12);
  });

  test("in dollars counts prices; a lost call stays counted, a refused one does not", async () => {
    const price = { input: 1000, output: 1000 };
    const most = (16 + 256 + 12) / 1000;
    const lost = await opened({
      price,
      timeoutMs: 30,
      retries: 0,
      budget: { maxDollars: 1 },
      instead: () => silence,
    });
    await expect(lost.policy.complete([context], sampling)).rejects.toThrow("no answer");
    expect(lost.policy.spent().dollars).toBeCloseTo(most, 9);
    const refused = await opened({
      price,
      budget: { maxDollars: 1 },
      instead: () => ({ status: 400, text: "" }),
    });
    await expect(refused.policy.complete([context], sampling)).rejects.toThrow("400");
    expect(refused.policy.spent()).toEqual({ calls: 0, tokens: 0, dollars: 0 });
    const small = await opened({ price, budget: { maxDollars: 0.2 } });
    await expect(small.policy.complete([context], sampling)).rejects.toThrow(
      "the model budget of $0.2 is spent",
    );
    expect(small.server.requests).toHaveLength(0);
  });
});

test.each([
  [{ budget: { maxDollars: 1 } }, "a budget in dollars needs model.price"],
  [{ profile: "ollama", api: "completions" }, "use api: chat"],
  [{ continuation: "prefix" }, "cannot go on with a message of the assistant"],
  [{ api: "completions", continuation: "messages" }, "only api chat"],
  [{ logprobs: true }, "does not tell the ids"],
  [{ thinking: false }, "cannot be told whether to think"],
  [{ profile: "vllm", api: "completions", thinking: false }, "cannot be told whether to think"],
  [{ contextLength: 100 }, "only counted with model.tokenizer"],
  [{ url: "localhost:8000" }, "must be a URL"],
  [{ apiKeyEnv: "sk-123" }, "name of an environment variable"],
])("options %j are refused", (given, message) => {
  expect(() => endpointOptions("http://127.0.0.1:8000", given)).toThrow(message);
});
