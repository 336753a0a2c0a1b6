// The models of one embedded base against engines of their own, and over the protocol.
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import type { Datum } from "../../algorithm/datum.ts";
import { EmbeddedEngine } from "../../engine/embedded-engine.ts";
import { adam, randomDatum, randomTokens, tinyEngine } from "../../engine/engine.fixture.ts";
import { loraTargets } from "../../engine/lora-options.ts";
import { EngineError } from "../../errors.ts";
import { random } from "../../shared/random.ts";
import type { ModelShape, SampledSequence } from "./backend.ts";
import { type EmbeddedBackend, openEmbeddedBackend } from "./embedded-backend.ts";
import { crossEntropy, testServer, wireDatum, withModel } from "./engine-server.fixture.ts";

const batch = [12, 30, 7].map((length, seed) => randomDatum(length, seed));
const shape: ModelShape = { rank: 3, alpha: 6, trainsAttention: true, trainsFeedForward: true, seed: 5 };
const options = { threads: 1, tokenBudget: 64, maxSlots: 4 };

let scratch: string;
let base: string;
let backend: EmbeddedBackend;
beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), "forager-backend-"));
  base = join(scratch, "base");
  const engine = await tinyEngine();
  await engine.save(base);
  await engine.close();
  backend = await openEmbeddedBackend(base, { ...options, cacheMemory: 1e8 });
});
afterAll(async () => {
  await backend.close();
  await rm(scratch, { recursive: true, force: true });
});

test("a base that the machine cannot hold is refused before its weights are read", async () => {
  const opening = openEmbeddedBackend(base, { ...options, cacheMemory: 1e8, machineMemory: 1e8 });
  await expect(opening).rejects.toThrow(EngineError);
  await expect(opening).rejects.toThrow(
    /base needs at least 0\.11 GB .*this machine has 0\.10 GB; use a smaller model$/,
  );
});

test.each([3, 0])("a model of rank %i learns what an engine of its own learns", async (rank) => {
  const engine =
    rank === 0
      ? await EmbeddedEngine.open(base, options)
      : await EmbeddedEngine.adapt(
          base,
          { lora: { rank, alpha: shape.alpha, targets: [...loraTargets] }, seed: shape.seed },
          options,
        );
  const model = await backend.create({ ...shape, rank });
  onTestFinished(async () => {
    await engine.close();
    await model.close();
  });
  for (let step = 0; step < 2; step++) {
    const ours = await model.forwardBackward(batch, { type: "crossEntropy" });
    const theirs = await engine.forwardBackward(batch, { type: "crossEntropy" });
    expect(ours.loss).toBeCloseTo(theirs.loss, 4);
    const norm = (await engine.step(adam)).gradientNorm;
    expect((await model.step(adam)).gradientNorm).toBeCloseTo(norm, 4);
  }
  const [ours, theirs] = [await model.logprobs(batch), await engine.logprobs(batch)];
  for (const [index, values] of ours.entries())
    for (const [t, value] of values.entries()) expect(value).toBeCloseTo(theirs[index]?.[t] as number, 4);
});

test("log-probabilities are given of weightless targets too, which teach nothing", async () => {
  const model = await backend.create(shape);
  onTestFinished(() => model.close());
  const weightless: Datum = { ...(batch[0] as Datum), weights: new Float32Array(12) };
  const { loss, logprobs } = await model.forwardBackward([weightless], { type: "crossEntropy" });
  expect(loss).toBeCloseTo(0, 12);
  const [expected] = await model.logprobs([weightless]);
  for (const [t, value] of (logprobs[0] as Float32Array).entries())
    expect(value).toBeCloseTo(expected?.[t] as number, 4);
  expect((await model.step(adam)).gradientNorm).toBe(0);
});

test("weights handed out stay as they were, and the base too", async () => {
  const model = await backend.create(shape);
  onTestFinished(() => model.close());
  const prompt = randomTokens(9, random(1, "prompt"));
  const sampling = {
    seeds: [1, 2],
    maxTokens: 5,
    temperature: 1,
    topP: 1,
    topK: 0,
    stopTexts: [],
    stopTokens: [],
  };
  const before = await model.snapshot();
  const untrained = await before.sample(prompt, sampling);
  expectSame(await backend.base.sample(prompt, sampling), untrained);
  for (let step = 0; step < 3; step++) {
    await model.forwardBackward(batch, { type: "crossEntropy" });
    await model.step(adam);
  }
  const after = await model.snapshot();
  const trained = await after.sample(prompt, sampling);
  expect(trained[0]?.logprobs[0]).not.toBeCloseTo(untrained[0]?.logprobs[0] as number, 2);
  await before.rest();
  expectSame(await before.sample(prompt, sampling), untrained);
  expectSame(await backend.base.sample(prompt, sampling), untrained);

  const folder = join(scratch, "adapters");
  await mkdir(folder);
  await after.save(folder);
  const opened = await backend.open(folder, shape);
  expectSame(await opened.sample(prompt, sampling), trained);
  for (const sampler of [before, after, opened]) await sampler.close();
});

test("with weights of few bits it samples with those, and trains and reads prompts with all", async () => {
  const rounded = await openEmbeddedBackend(base, { ...options, cacheMemory: 1e8, samplingWeights: "int8" });
  onTestFinished(() => rounded.close());
  const prompt = randomTokens(9, random(1, "prompt"));
  const sampling = {
    seeds: [1],
    maxTokens: 1,
    temperature: 1,
    topP: 1,
    topK: 0,
    stopTexts: [],
    stopTokens: [],
  };
  const [[ours], [theirs]] = [
    await rounded.base.sample(prompt, sampling),
    await backend.base.sample(prompt, sampling),
  ];
  expect(ours?.logprobs[0]).not.toBe(theirs?.logprobs[0]);
  expect(ours?.logprobs[0]).toBeCloseTo(theirs?.logprobs[0] as number, 1);
  expect(await rounded.base.promptLogprobs(prompt)).toEqual(await backend.base.promptLogprobs(prompt));
  const [few, all] = [
    await rounded.base.topPromptLogprobs(prompt, 2),
    await backend.base.topPromptLogprobs(prompt, 2),
  ];
  expect(few).toEqual(all);
});

/** Equal but for the last bits, in which what a cache already holds shows. */
function expectSame(ours: readonly SampledSequence[], theirs: readonly SampledSequence[]): void {
  expect(ours.map(({ tokens }) => tokens)).toEqual(theirs.map(({ tokens }) => tokens));
  for (const [index, { logprobs }] of ours.entries())
    for (const [t, value] of logprobs.entries())
      expect(value).toBeCloseTo(theirs[index]?.logprobs[t] as number, 4);
}

test("log-probabilities of sampled tokens are those of training, and those of a prompt", async () => {
  const model = await backend.create(shape);
  onTestFinished(() => model.close());
  await model.forwardBackward(batch, { type: "crossEntropy" });
  await model.step(adam);
  const sampler = await model.snapshot();
  const prompt = randomTokens(6, random(2, "prompt"));
  const [sampled] = await sampler.sample(prompt, {
    seeds: [3],
    maxTokens: 6,
    temperature: 0.7,
    topP: 1,
    topK: 0,
    stopTexts: [],
    stopTokens: [],
  });
  const tokens = [...prompt, ...(sampled?.tokens ?? [])];
  const logprobs = await sampler.promptLogprobs(tokens);
  expect(logprobs).toHaveLength(tokens.length - 1);
  for (const [i, logprob] of (sampled?.logprobs ?? []).entries())
    expect(logprobs[prompt.length - 1 + i]).toBeCloseTo(logprob, 4);
  const top = await sampler.topPromptLogprobs(tokens, 4);
  expect(top).toHaveLength(tokens.length - 1);
  for (const [t, place] of top.entries()) {
    expect(place).toHaveLength(4);
    const own = place.find(([token]) => token === tokens[t + 1]);
    if (own !== undefined) expect(own[1]).toBeCloseTo(logprobs[t] as number, 4);
    expect([...place].sort((a, b) => b[1] - a[1])).toEqual(place);
  }
  await sampler.close();
});

test("what is not finite is refused, and the weights stay", async () => {
  const model = await backend.create(shape);
  onTestFinished(() => model.close());
  const [datum] = batch as [Datum];
  const wild: Datum = { ...datum, weights: datum.weights.map(() => 3e38) };
  const before = await model.logprobs([datum]);
  await expect(model.forwardBackward([wild, wild], { type: "crossEntropy" })).rejects.toThrow(EngineError);
  await model.step(adam);
  expect(await model.logprobs([datum])).toEqual(before);
  await expect(backend.create({ ...shape, rank: 999 })).rejects.toThrow(EngineError);
});

test("over the protocol a model learns, is saved, loaded into another and goes on equally", async () => {
  const server = await testServer({ backend });
  const { session_id, model_id } = await withModel(server);
  const tokens = randomTokens(20, random(4, "text"));
  const data = [wireDatum(tokens)];
  const losses: number[] = [];
  const train = async (id: string, seq_id: number): Promise<number> => {
    const report = await server.done("forward_backward", crossEntropy(id, seq_id, ...data));
    await server.done("optim_step", {
      model_id: id,
      seq_id: seq_id + 1,
      adam_params: { learning_rate: 0.02 },
    });
    return report.metrics["loss:sum"];
  };
  const { body: tokenizer } = await server.get("tokenizer");
  expect(tokenizer).toMatchObject({ hash: backend.tokenizer.hash, model: { model: { type: "BPE" } } });
  for (let n = 0; n < 4; n++) losses.push(await train(model_id, 2 * n + 1));
  expect(losses.at(-1)).toBeLessThan(losses[0] as number);
  const { path } = await server.done("save_weights", { model_id, seq_id: 9, path: "state" });
  const resumed = await server.done("create_model", {
    session_id,
    model_seq_id: 1,
    base_model: "base",
    lora_config: { rank: 2, seed: 77 },
  });
  await server.done("load_weights", { model_id: resumed.model_id, seq_id: 1, path, optimizer: true });
  expect(await train(resumed.model_id, 2)).toBeCloseTo(await train(model_id, 10), 5);
  expect(await train(resumed.model_id, 4)).toBeCloseTo(await train(model_id, 12), 5);
});
