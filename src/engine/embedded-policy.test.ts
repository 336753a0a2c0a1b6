// Decoding with a cache against the same engine's log-probabilities of whole sequences, which know no cache.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { PolicyError } from "../errors.ts";
import { policySuite } from "../rollout/policy.suite.ts";
import type { Completion, Context, Policy, SamplingOptions } from "../rollout/policy.ts";
import { random } from "../shared/random.ts";
import { defaultCacheMemory, tokenBytes } from "./cache-budget.ts";
import { DecodingModel, type Extension } from "./decoding-model.ts";
import type { EmbeddedEngine } from "./embedded-engine.ts";
import { EmbeddedPolicy } from "./embedded-policy.ts";
import { randomDatum, randomTokens, tinyEngine, tinyModel, tinyTokenizer } from "./engine.fixture.ts";
import type { KeyValueCache } from "./key-value-cache.ts";
import { initializeParameters } from "./parameters.ts";

const greedy: SamplingOptions = { maxTokens: 8, temperature: 0, topP: 1, topK: 0, stop: [] };
const sampled: SamplingOptions = { ...greedy, temperature: 1 };
/** Seen: 1e-6. */
const tolerance = 1e-4;
/** Of weights and activations in 8 bits; a wrong rotation or position is ten times as far off. */
const roundingTolerance = 0.05;
const { contextLength } = tinyModel;

const opened: EmbeddedEngine[] = [];
const open = async (...setting: Parameters<typeof tinyEngine>): Promise<EmbeddedEngine> => {
  const engine = await tinyEngine(...setting);
  opened.push(engine);
  return engine;
};
afterAll(async () => {
  for (const engine of opened) await engine.close();
});

policySuite("the embedded engine", {
  create: async () => ({
    policy: (await open()).policy(),
    tokenizer: tinyTokenizer,
    prompts: ["Which river flows", "The capital of the country", "north"],
  }),
});

/** A context of random tokens. */
function randomContext(length: number, seed: number, episode = `episode ${seed}`): Context {
  return contextOf(randomTokens(length, random(seed, "context")), seed, episode);
}

function contextOf(tokens: readonly number[], seed: number, episode: string): Context {
  return { text: tinyTokenizer.decode(tokens), tokens, seed, episode };
}

/** The context after a completion and an observation of `length` random tokens. */
function nextTurn(context: Context, completion: Completion, length: number): Context {
  const observation = randomTokens(length, random(context.seed, "observation", length));
  const tokens = [...(context.tokens ?? []), ...(completion.tokens ?? []), ...observation];
  return contextOf(tokens, context.seed + 1, context.episode as string);
}

/** Log-probabilities of a completion's tokens, from the whole sequence at once. */
async function wholeLogprobs(engine: EmbeddedEngine, context: Context, tokens: readonly number[]) {
  const all = [...(context.tokens ?? []), ...tokens];
  const [row] = await engine.logprobs([
    {
      inputs: Int32Array.from(all.slice(0, -1)),
      targets: Int32Array.from(all.slice(1)),
      weights: new Float32Array(all.length - 1).fill(1),
    },
  ]);
  return [...(row as Float32Array).slice(-tokens.length)];
}

async function expectUncached(
  engine: EmbeddedEngine,
  contexts: readonly Context[],
  completions: readonly Completion[],
): Promise<void> {
  expect(completions).toHaveLength(contexts.length);
  for (const [i, { tokens = [], logprobs = [] }] of completions.entries()) {
    expect(tokens.length).toBeGreaterThan(0);
    expectClose(logprobs, await wholeLogprobs(engine, contexts[i] as Context, tokens));
  }
}

function expectClose(actual: readonly number[], expected: readonly number[], limit = tolerance): void {
  expect(actual).toHaveLength(expected.length);
  const distances = actual.map((value, i) => Math.abs(value - (expected[i] as number)));
  expect(Math.max(...distances)).toBeLessThan(limit);
}

/** The most likely next token by the log-probability of every token in turn. */
async function mostLikelyNext(engine: EmbeddedEngine, tokens: readonly number[]): Promise<number> {
  const inputs = Int32Array.from(tokens);
  const probes = Array.from({ length: tinyModel.vocabularySize }, (_, id) => ({
    inputs,
    targets: new Int32Array(tokens.length).fill(id),
    weights: new Float32Array(tokens.length).fill(1),
  }));
  const last = (await engine.logprobs(probes)).map((row) => row.at(-1) as number);
  return last.indexOf(Math.max(...last));
}

describe("decoding with a cache", () => {
  let engine: EmbeddedEngine;
  let policy: Policy;
  beforeAll(async () => {
    engine = await open();
    policy = engine.policy();
  });

  test("greedy tokens of two turns are the most likely ones without a cache", async () => {
    let context = randomContext(9, 1, "greedy");
    for (let turn = 0; turn < 2; turn++) {
      const [completion] = (await policy.complete([context], { ...greedy, maxTokens: 4 })) as [Completion];
      const tokens = [...(context.tokens ?? [])];
      for (const token of completion.tokens ?? []) {
        expect(token).toBe(await mostLikelyNext(engine, tokens));
        tokens.push(token);
      }
      context = nextTurn(context, completion, 5);
    }
  });

  test("episodes of different lengths that come back continue as if computed anew", async () => {
    let contexts = [3, 40, 90, 7].map((length, i) => randomContext(length, 10 + i));
    for (let turn = 0; turn < 3; turn++) {
      const completions = await policy.complete(contexts, sampled);
      await expectUncached(engine, contexts, completions);
      contexts = contexts.map((context, i) => nextTurn(context, completions[i] as Completion, 1 + 11 * i));
    }
  });

  test("more episodes than slots wait for their turn and evict each other without harm", async () => {
    let contexts = Array.from({ length: 11 }, (_, i) => randomContext(5 + 3 * i, 30 + i));
    for (let turn = 0; turn < 2; turn++) {
      const completions = await policy.complete(contexts, sampled);
      await expectUncached(engine, contexts, completions);
      contexts = contexts.map((context, i) => nextTurn(context, completions[i] as Completion, 4));
    }
  });

  test("a context that departs from what its slot holds is computed from there", async () => {
    const context = randomContext(50, 60, "departing");
    await policy.complete([context], sampled);
    const tokens = context.tokens as readonly number[];
    const departures = [tokens.with(20, (tokens[20] as number) ^ 1), tokens.slice(0, 10), tokens, [7]];
    for (const [i, departure] of departures.entries()) {
      const changed = contextOf(departure, 61 + i, "departing");
      await expectUncached(engine, [changed], await policy.complete([changed], sampled));
    }
  });

  test("heads of some sixteens, which the operator rotates itself, are attended to as others are", async () => {
    const wide = await open({ model: { width: 64 }, options: { samplingWeights: "int8" } });
    let contexts = [3, 40, 290].map((length, i) => randomContext(length, 160 + i));
    for (let turn = 0; turn < 2; turn++) {
      const completions = await wide.policy().complete(contexts, sampled);
      for (const [i, { tokens = [], logprobs = [] }] of completions.entries()) {
        expectClose(logprobs, await wholeLogprobs(wide, contexts[i] as Context, tokens), roundingTolerance);
      }
      contexts = contexts.map((context, i) => nextTurn(context, completions[i] as Completion, 1 + 20 * i));
    }
  });

  test("an episode asked twice at once gets both answers", async () => {
    const context = randomContext(12, 70, "twice");
    await policy.complete([context], sampled);
    const contexts = [context, { ...context, seed: 71 }];
    await expectUncached(engine, contexts, await policy.complete(contexts, sampled));
  });

  test("contexts beyond one chunk and beyond one prefill call are computed whole", async () => {
    const large = await open({ options: { maxSlots: 12 } });
    let contexts = Array.from({ length: 12 }, (_, i) => randomContext(520 + i, 80 + i));
    contexts.push(randomContext(257, 95), randomContext(256, 96), randomContext(contextLength - 1, 97));
    const options = { ...sampled, maxTokens: 3 };
    const completions = await large.policy().complete(contexts, options);
    await expectUncached(large, contexts, completions);
    contexts = contexts.slice(0, 12).map((context, i) => nextTurn(context, completions[i] as Completion, 90));
    await expectUncached(large, contexts, await large.policy().complete(contexts, options));
  });

  test("calls that overlap are answered as they would be alone", async () => {
    const contexts = [4, 30, 300, 12, 70].map((length, i) => randomContext(length, 110 + i));
    const calls: Promise<Completion[]>[] = [];
    for (const [i, context] of contexts.entries()) {
      calls.push(policy.complete([context], { ...sampled, maxTokens: 3 + 4 * i }));
      await turns(i);
    }
    const completions = (await Promise.all(calls)).flat();
    await expectUncached(engine, contexts, completions);
    const alone = await open({ options: { maxSlots: 1 } });
    for (const [i, context] of contexts.entries()) {
      const options = { ...sampled, maxTokens: 3 + 4 * i };
      const [expected] = (await alone.policy().complete([context], options)) as [Completion];
      expect(completions[i]?.tokens).toEqual(expected.tokens);
      expectClose(completions[i]?.logprobs ?? [], expected.logprobs ?? []);
    }
  });

  test("a call aborted in the middle leaves the others and its own slots in order", async () => {
    const reason = new Error("enough");
    const long = { ...sampled, maxTokens: 60 };
    const contexts = [20, 30, 280, 9].map((length, i) => randomContext(length, 130 + i));
    for (const pause of [1, 2, 4, 8]) {
      const controller = new AbortController();
      const aborted = policy.complete(contexts.slice(0, 3), long, controller.signal);
      const kept = policy.complete(contexts.slice(3), sampled);
      const isAborted = expect(aborted).rejects.toBe(reason);
      await turns(pause);
      controller.abort(reason);
      await isAborted;
      await expectUncached(engine, contexts.slice(3), await kept);
    }
    await expectUncached(engine, contexts, await policy.complete(contexts, sampled));
  });

  test.each([1, 2, 3])("any mixture of all that is computed as if anew (%i)", async (seed) => {
    const chance = random(seed, "mixture");
    const mixed = await open({ options: { maxSlots: 5 } });
    const episodes = Array.from({ length: 9 }, (_, i) => randomContext(1 + chance.below(60), 200 + i));
    for (let round = 0; round < 12; round++) {
      const members = chance
        .shuffle([...episodes.keys()])
        .slice(0, 1 + chance.below(round % 3 === 0 ? 9 : 2));
      await Promise.all(
        members.map(async (index) => {
          await turns(chance.below(6));
          const context = episodes[index] as Context;
          const controller = new AbortController();
          const options = { ...sampled, maxTokens: 1 + chance.below(9) };
          const call = mixed.policy().complete([context], options, controller.signal);
          if (chance.below(6) === 0) return await abortLater(call, controller, chance.below(4));
          const completions = await call;
          await expectUncached(mixed, [context], completions);
          episodes[index] =
            chance.below(5) === 0
              ? {
                  ...randomContext(1 + chance.below(60), chance.below(1000)),
                  episode: `episode ${200 + index}`,
                }
              : nextTurn(context, completions[0] as Completion, chance.below(9));
        }),
      );
    }
  });

  test("after a step nothing of the old weights is used", async () => {
    const trained = await open();
    const context = randomContext(30, 150);
    const [before] = (await trained.policy().complete([context], sampled)) as [Completion];
    await trained.forwardBackward([randomDatum(40, 1)], { type: "crossEntropy" });
    const adam = { learningRate: 0.05, beta1: 0.9, beta2: 0.95, epsilon: 1e-8 };
    await trained.step({ ...adam, weightDecay: 0, maxGradientNorm: 0 });
    const later = nextTurn(context, before, 3);
    await expectUncached(trained, [later], await trained.policy().complete([later], sampled));
    const old = await wholeLogprobs(trained, context, before.tokens ?? []);
    expect(old).not.toEqual(before.logprobs);
  });
});

/** A model that notes how many tokens it was given, those of idle slots left out. */
class CountingModel extends DecodingModel {
  tokens = 0;

  override async extend(cache: KeyValueCache, extensions: readonly Extension[]): Promise<Float32Array> {
    for (const { tokens, isIdle } of extensions) if (!isIdle) this.tokens += tokens.length;
    return await super.extend(cache, extensions);
  }
}

describe("contexts that begin alike", () => {
  const models: CountingModel[] = [];
  const openCounting = (): { model: CountingModel; policy: EmbeddedPolicy } => {
    const model = new CountingModel(tinyModel, async () => initializeParameters(tinyModel, 1), {
      threads: 1,
    });
    models.push(model);
    const identity = { type: "embedded", model: "counting" };
    const setting = { maxSlots: 32, cacheMemory: defaultCacheMemory };
    return { model, policy: new EmbeddedPolicy({ identity, model, tokenizer: tinyTokenizer, ...setting }) };
  };
  afterAll(async () => {
    for (const model of models) await model.close();
  });

  /** Eight rollouts for each of three questions, which share their first 60 tokens. */
  const groups = Array.from({ length: 24 }, (_, i) => {
    const instructions = randomTokens(60, random(1, "instructions"));
    const number = Math.floor(i / 8);
    const question = randomTokens(299, random(number, "question"));
    return contextOf([...instructions, number, ...question], i, `rollout ${i}`);
  });

  test("are answered as each would be alone, and their beginnings are computed once", async () => {
    const { model, policy } = openCounting();
    const completions = await policy.complete(groups, sampled);
    const sampledTokens = completions.reduce((sum, { usage }) => sum + usage.completionTokens, 0);
    // Instructions, three questions, and the last token of the others; the last token sampled is not run.
    expect(model.tokens).toBe(60 + 3 * 300 + 21 + sampledTokens - 24);
    for (const [i, context] of groups.entries()) {
      const [alone] = (await openCounting().policy.complete([context], sampled)) as [Completion];
      expect(completions[i]?.tokens).toEqual(alone.tokens);
      expectClose(completions[i]?.logprobs ?? [], alone.logprobs ?? []);
    }
  });

  test("are computed by another when the call of the first is aborted", async () => {
    const { policy } = openCounting();
    const controller = new AbortController();
    const reason = new Error("enough");
    const aborted = expect(policy.complete(groups.slice(0, 1), sampled, controller.signal)).rejects.toBe(
      reason,
    );
    const kept = policy.complete(groups.slice(1, 4), sampled);
    await turns(3);
    controller.abort(reason);
    await aborted;
    const expected = await openCounting().policy.complete(groups.slice(1, 4), sampled);
    expect((await kept).map(({ tokens }) => tokens)).toEqual(expected.map(({ tokens }) => tokens));
  });
});

describe("little memory for keys and values", () => {
  test("makes episodes wait and forgets idle ones, and changes no answer", async () => {
    const engine = await open({ options: { maxSlots: 8, cacheMemory: 300 * tokenBytes(tinyModel) } });
    let contexts = Array.from({ length: 7 }, (_, i) => randomContext(20 + 11 * i, 300 + i));
    for (let turn = 0; turn < 3; turn++) {
      const completions = await engine.policy().complete(contexts, sampled);
      await expectUncached(engine, contexts, completions);
      contexts = contexts.map((context, i) => nextTurn(context, completions[i] as Completion, 20));
    }
  });

  test("that cannot hold one sequence is an error that says what to change, before anything is sampled", async () => {
    const engine = await open({ options: { cacheMemory: 100 * tokenBytes(tinyModel) } });
    const call = engine.policy().complete([randomContext(30, 1), randomContext(93, 2)], sampled);
    await expect(call).rejects.toThrow(PolicyError);
    await expect(call).rejects.toThrow(/come to 101 tokens.*engine\.cacheMemory allows 100 tokens/);
    expect(await engine.policy().complete([randomContext(92, 3)], sampled)).toHaveLength(1);
  });
});

describe("the limits of a completion", () => {
  let policy: Policy;
  beforeAll(async () => {
    policy = (await open()).policy();
  });

  test("a context that fills the model is refused, one token less gives one token", async () => {
    const call = policy.complete([randomContext(contextLength, 1)], greedy);
    await expect(call).rejects.toThrow(PolicyError);
    await expect(call).rejects.toThrow(`a context of ${contextLength} tokens leaves no room`);
    const [last] = await policy.complete([randomContext(contextLength - 1, 1)], greedy);
    expect(last).toMatchObject({ finishReason: "length", usage: { completionTokens: 1 } });
  });

  test("an empty context is refused without harm to a call under way", async () => {
    const good = policy.complete([randomContext(5, 2)], greedy);
    await expect(policy.complete([{ text: "", seed: 1 }], greedy)).rejects.toThrow(PolicyError);
    expect(await good).toHaveLength(1);
  });
});

async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve));
}

/** Aborts a call after some turns of the event loop; it may have finished by then. */
async function abortLater(call: Promise<Completion[]>, controller: AbortController, pause: number) {
  const reason = new Error("enough");
  const end = call.then(
    () => undefined,
    (error: unknown) => error,
  );
  await turns(pause);
  controller.abort(reason);
  expect([undefined, reason]).toContain(await end);
}
