/**
 * What every engine must do, as one suite: call `engineSuite` in the test file of an implementation. Only the
 * contract is used; that the numbers are right is for goldens.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { Datum } from "../algorithm/datum.ts";
import type { Loss } from "../algorithm/loss.ts";
import { CheckpointError } from "../errors.ts";
import type { AdamOptions, Engine } from "./engine.ts";

export interface EngineSuiteOptions {
  /** An engine with fresh weights; equal seeds must give equal weights. It is closed by the suite. */
  readonly create: (seed: number) => Promise<Engine>;
  /** The same with a model of another shape. */
  readonly createOther: () => Promise<Engine>;
  /** Sequences for it, of unequal lengths, at least four; every one with weights of 0 and others. */
  readonly batch: readonly Datum[];
}

const adam: AdamOptions = {
  learningRate: 0.01,
  beta1: 0.9,
  beta2: 0.95,
  epsilon: 1e-8,
  weightDecay: 0.1,
  maxGradientNorm: 1,
};
const supervised: Loss = { type: "crossEntropy" };
const policyGradient: Loss = { type: "importanceSampling" };

export function engineSuite(name: string, options: EngineSuiteOptions): void {
  const { batch } = options;
  let scratch: string;
  let folders = 0;
  const opened: Engine[] = [];
  const opening = async (engine: Promise<Engine>): Promise<Engine> => {
    opened.push(await engine);
    return await engine;
  };
  const create = (seed = 1): Promise<Engine> => opening(options.create(seed));
  const saved = async (engine: Engine): Promise<string> => {
    const folder = join(scratch, `${++folders}`);
    await engine.save(folder);
    return folder;
  };
  /** One update on the batch. */
  const update = async (engine: Engine): Promise<{ loss: number; gradientNorm: number }> => {
    const { loss } = await engine.forwardBackward(batch, supervised);
    return { loss, ...(await engine.step(adam)) };
  };
  beforeAll(async () => {
    scratch = await mkdtemp(join(tmpdir(), "forager-engine-"));
  });
  afterEach(async () => {
    for (const engine of opened.splice(0)) await engine.close();
  });
  afterAll(() => rm(scratch, { recursive: true, force: true }));

  describe(`${name} keeps the engine contract`, () => {
    test("log-probabilities are finite, at most 0, one for each target", async () => {
      const rows = await (await create()).logprobs(batch);
      expect(rows.map((row) => row.length)).toEqual(batch.map(({ targets }) => targets.length));
      for (const row of rows)
        for (const value of row) expect(value <= 0 && Number.isFinite(value)).toBe(true);
    });

    test("a datum's log-probabilities do not depend on its company", async () => {
      const engine = await create();
      const together = await engine.logprobs(batch);
      for (const [i, datum] of batch.entries()) {
        const [alone] = await engine.logprobs([datum]);
        expectClose(alone as Float32Array, together[i] as Float32Array);
      }
    });

    test("calls at the same time do not disturb each other", async () => {
      const engine = await create();
      const expected = await engine.logprobs(batch);
      const rows = await Promise.all(batch.map((datum) => engine.logprobs([datum])));
      expectAllClose(rows.flat(), expected);
    });

    test("trains some or all of its parameters", async () => {
      const { parameterCount, trainableParameterCount } = await create();
      if (parameterCount === undefined || trainableParameterCount === undefined) return;
      expect(trainableParameterCount).toBeGreaterThan(0);
      expect(trainableParameterCount).toBeLessThanOrEqual(parameterCount);
    });

    test("an empty batch has no log-probabilities, no loss and no gradient", async () => {
      const engine = await create();
      expect(await engine.logprobs([])).toEqual([]);
      expect(await engine.forwardBackward([], supervised)).toEqual({
        loss: 0,
        logprobs: [],
        paddedTokens: 0,
      });
      expect(await engine.step(adam)).toEqual({ gradientNorm: 0 });
    });

    test("forwardBackward reports the log-probabilities of what has a weight, 0 elsewhere", async () => {
      const engine = await create();
      const expected = await engine.logprobs(batch);
      const { loss, logprobs } = await engine.forwardBackward(batch, supervised);
      let sum = 0;
      for (const [d, { weights }] of batch.entries()) {
        const row = (expected[d] as Float32Array).map((value, t) => (weights[t] === 0 ? 0 : value));
        expectClose(logprobs[d] as Float32Array, row);
        sum -= row.reduce((total, value, t) => total + value * (weights[t] as number), 0);
      }
      expect(loss / sum).toBeCloseTo(1, 5);
    });

    test("gradients add up: two halves make the whole", async () => {
      const [whole, halves] = [await create(), await create()];
      const { loss } = await whole.forwardBackward(batch, supervised);
      const first = await halves.forwardBackward(batch.slice(0, 2), supervised);
      const second = await halves.forwardBackward(batch.slice(2), supervised);
      expect((first.loss + second.loss) / loss).toBeCloseTo(1, 5);
      // With a large epsilon and no clipping a step grows with the gradient, which AdamW else hides.
      const revealing = { ...adam, epsilon: 1, maxGradientNorm: 0 };
      const { gradientNorm } = await whole.step(revealing);
      expect((await halves.step(revealing)).gradientNorm / gradientNorm).toBeCloseTo(1, 5);
      expectAllClose(await halves.logprobs(batch), await whole.logprobs(batch));
    });

    test("after a step the gradient is zero again, and a step teaches", async () => {
      const engine = await create();
      const first = await update(engine);
      expect(first.gradientNorm).toBeGreaterThan(0);
      const second = await update(engine);
      expect(second.loss).toBeLessThan(first.loss);
      const still = { ...adam, learningRate: 0 };
      expect(await engine.step(still)).toEqual({ gradientNorm: 0 });
    });

    test("data without any weight give exactly no gradient and change nothing", async () => {
      const engine = await create();
      const before = await engine.logprobs(batch);
      const silent = batch.map((datum) => ({ ...datum, weights: new Float32Array(datum.weights.length) }));
      const { loss, logprobs } = await engine.forwardBackward(silent, supervised);
      expect(loss).toBe(0);
      expect(logprobs.every((row) => row.every((value) => value === 0))).toBe(true);
      expect(await engine.step({ ...adam, weightDecay: 0 })).toEqual({ gradientNorm: 0 });
      expect(await engine.logprobs(batch)).toEqual(before);
    });

    test("targets without a weight do not touch the gradient of the others", async () => {
      const [plain, changed] = [await create(), await create()];
      const others = batch.map((datum) => ({
        ...datum,
        targets: datum.targets.map((target, t) => (datum.weights[t] === 0 ? target ^ 1 : target)),
      }));
      const report = await plain.forwardBackward(batch, supervised);
      expect(await changed.forwardBackward(others, supervised)).toEqual(report);
      expect(await changed.step(adam)).toEqual(await plain.step(adam));
      expect(await changed.logprobs(batch)).toEqual(await plain.logprobs(batch));
    });

    test("an advantage of 0 gives no gradient, one above 0 makes its tokens likelier", async () => {
      const engine = await create();
      const logprobs = await engine.logprobs(batch);
      const withAdvantage = (advantage: number): Datum[] =>
        batch.map((datum, d) => ({
          ...datum,
          logprobs: logprobs[d] as Float32Array,
          advantages: new Float32Array(datum.targets.length).fill(advantage),
        }));
      await engine.forwardBackward(withAdvantage(0), policyGradient);
      expect(await engine.step({ ...adam, weightDecay: 0 })).toEqual({ gradientNorm: 0 });
      await engine.forwardBackward(withAdvantage(1), policyGradient);
      await engine.step(adam);
      expect(weightedSum(batch, await engine.logprobs(batch))).toBeGreaterThan(weightedSum(batch, logprobs));
    });

    test("equal seeds give equal weights, another seed others", async () => {
      const [one, same, other] = [await create(5), await create(5), await create(6)];
      const expected = await one.logprobs(batch);
      expect(await same.logprobs(batch)).toEqual(expected);
      expect(await other.logprobs(batch)).not.toEqual(expected);
    });

    test("what was saved goes on bit for bit, optimiser included", async () => {
      const [engine, other] = [await create(1), await create(2)];
      await update(engine);
      await update(engine);
      const folder = await saved(engine);
      await update(other);
      await other.load(folder);
      expect(await other.logprobs(batch)).toEqual(await engine.logprobs(batch));
      for (let i = 0; i < 2; i++) expect(await update(other)).toEqual(await update(engine));
      expect(await other.logprobs(batch)).toEqual(await engine.logprobs(batch));
    });

    test("load forgets the gradient that has accumulated", async () => {
      const engine = await create();
      const folder = await saved(engine);
      await engine.forwardBackward(batch, supervised);
      await engine.load(folder);
      expect(await engine.step(adam)).toEqual({ gradientNorm: 0 });
    });

    test("resetOptimizer makes the next step a first step", async () => {
      const engine = await create();
      await update(engine);
      const folder = await saved(engine);
      await update(engine);
      const momentous = await engine.logprobs(batch);
      await engine.load(folder);
      await engine.resetOptimizer();
      const fresh = await saved(engine);
      await update(engine);
      const reset = await engine.logprobs(batch);
      expect(reset).not.toEqual(momentous);
      const newcomer = await create(9);
      await newcomer.load(fresh);
      await update(newcomer);
      expect(await newcomer.logprobs(batch)).toEqual(reset);
    });

    test("a snapshot keeps the weights of its time", async () => {
      const engine = await create();
      const before = await engine.logprobs(batch);
      const reference = await engine.snapshot();
      await update(engine);
      expect(await engine.logprobs(batch)).not.toEqual(before);
      expect(await reference.logprobs(batch)).toEqual(before);
    });

    test("a checkpoint of another shape is refused and changes nothing", async () => {
      const engine = await create();
      await update(engine);
      const before = await engine.logprobs(batch);
      const folder = await saved(await opening(options.createOther()));
      await expect(engine.load(folder)).rejects.toThrow(CheckpointError);
      expect(await engine.logprobs(batch)).toEqual(before);
    });

    test("the policy samples with the weights of now", async () => {
      const engine = await create();
      const { inputs } = batch[0] as Datum;
      const context = { text: engine.tokenizer.decode([...inputs]), tokens: [...inputs], seed: 3 };
      const sampling = { maxTokens: 3, temperature: 1, topP: 1, topK: 0, stop: [] };
      for (let i = 0; i < 2; i++) {
        const [completion] = await engine.policy().complete([context], sampling);
        const tokens = Int32Array.from([...inputs, ...(completion?.tokens ?? [])]);
        const count = completion?.tokens?.length ?? 0;
        const [row] = await engine.logprobs([
          {
            inputs: tokens.slice(0, -1),
            targets: tokens.slice(1),
            weights: new Float32Array(tokens.length - 1).fill(1),
          },
        ]);
        expectClose(Float32Array.from(completion?.logprobs ?? []), (row as Float32Array).slice(-count));
        await update(engine);
      }
    });
  });
}

function weightedSum(batch: readonly Datum[], logprobs: readonly Float32Array[]): number {
  let sum = 0;
  for (const [d, { weights }] of batch.entries())
    for (const [t, weight] of weights.entries()) sum += weight * (logprobs[d]?.[t] as number);
  return sum;
}

function expectAllClose(actual: readonly Float32Array[], expected: readonly Float32Array[]): void {
  expect(actual).toHaveLength(expected.length);
  for (const [i, row] of expected.entries()) expectClose(actual[i] as Float32Array, row);
}

function expectClose(actual: Float32Array, expected: Float32Array): void {
  expect(actual).toHaveLength(expected.length);
  const distances = Array.from(actual, (value, i) => Math.abs(value - (expected[i] as number)));
  expect(Math.max(0, ...distances)).toBeLessThan(1e-4);
}
