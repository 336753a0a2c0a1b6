// The embedded engine against PyTorch: test/golden/engine/ holds two models, what PyTorch 2 computes with them in fp32,
// and the script that asked it. Only the contract of engines is used. Both sides sum in different orders, hence the
// tolerances: some ten times what was seen, and far below what any wrong formula would give.
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Datum } from "../algorithm/datum.ts";
import type { Loss } from "../algorithm/loss.ts";
import type { BytePairTokenizer } from "../tokenizer/byte-pair.ts";
import { readModel } from "./checkpoint.ts";
import { EmbeddedEngine } from "./embedded-engine.ts";
import type { AdamOptions, Engine } from "./engine.ts";
import type { ParameterSet } from "./parameters.ts";
import { readSafetensors } from "./safetensors.ts";

interface TensorDigest {
  readonly sum: number;
  readonly absoluteSum: number;
  readonly positions: readonly number[];
  readonly entries: readonly number[];
}

interface Golden {
  readonly batch: readonly Readonly<Record<keyof Datum, readonly number[]>>[];
  readonly logits: readonly {
    readonly datum: number;
    readonly position: number;
    readonly values: number[];
  }[];
  readonly logprobs: readonly (readonly number[])[];
  readonly losses: Readonly<
    Record<
      string,
      {
        readonly loss: Loss;
        readonly sum: number;
        readonly gradientNorm: number;
        readonly gradients: Readonly<Record<string, TensorDigest>>;
      }
    >
  >;
  readonly greedy: { readonly prompt: number[]; readonly continuation: number[] };
  readonly adam: AdamOptions;
  readonly steps: readonly {
    readonly loss: number;
    readonly gradientNorm: number;
    readonly parameters: Readonly<Record<string, TensorDigest>> | null;
  }[];
}

const folderOf = (variant: string): string =>
  fileURLToPath(new URL(`../../test/golden/engine/${variant}`, import.meta.url));

/** Ids stand for themselves: the models have no text. */
const numbersTokenizer: BytePairTokenizer = {
  hash: "numbers",
  vocabularySize: 61,
  endOfTextId: 0,
  paddingId: 0,
  specialTokens: [],
  vocabulary: Array.from({ length: 61 }, (_, id) => `${id}`),
  merges: [],
  encode: (text) => text.split(" ").map(Number),
  decode: (tokens) => tokens.join(" "),
};

/** An engine of the golden model's shape with weights of its own, which `load` replaces. */
async function createEngine(variant: string, tokenBudget: number): Promise<EmbeddedEngine> {
  const { model } = await readModel(folderOf(variant));
  const setting = { tokenizer: numbersTokenizer, seed: 1 };
  return await EmbeddedEngine.create(model, setting, { threads: 1, tokenBudget, maxSlots: 4 });
}

/** Seen: 2e-6 on log-probabilities (of order 1 to 10), 1e-6 on losses and norms, 2e-6 on the gradient's traces. */
const logprobTolerance = 2e-5;
const relative = 1e-5;
const traceTolerance = 2e-5;

/** A step that reveals the gradient g of its first update: learning rate 1, so that p becomes p - g / (|g| + 1). */
const revealing: AdamOptions = {
  learningRate: 1,
  beta1: 0.9,
  beta2: 0.95,
  epsilon: 1,
  weightDecay: 0,
  maxGradientNorm: 0,
};

describe.each(["tied", "untied"])("a tiny Llama with %s embeddings", (variant) => {
  let golden: Golden;
  let batch: Datum[];
  let scratch: string;
  let engine: Engine;

  beforeAll(async () => {
    golden = JSON.parse(await readFile(join(folderOf(variant), "golden.json"), "utf8")) as Golden;
    batch = golden.batch.map(toDatum);
    scratch = await mkdtemp(join(tmpdir(), "forager-golden-"));
    engine = await createEngine(variant, 4096);
  });
  beforeEach(() => engine.load(folderOf(variant)));
  afterAll(async () => {
    await engine.close();
    await rm(scratch, { recursive: true, force: true });
  });

  /** All parameters, through the files that `save` writes. */
  const saved = async (name: string): Promise<ParameterSet> => {
    const folder = join(scratch, name);
    await engine.save(folder);
    return readSafetensors(join(folder, "model.safetensors"));
  };

  test("log-probabilities of all targets are PyTorch's", async () => {
    const logprobs = await engine.logprobs(batch);
    for (const [d, expected] of golden.logprobs.entries())
      expectClose(logprobs[d], expected, logprobTolerance);
  });

  test("the whole distribution at a position is the softmax of PyTorch's logits", async () => {
    for (const { datum, position, values } of golden.logits) {
      const { inputs, targets } = batch[datum] as Datum;
      const probes = values.map((_, token) => ({
        inputs,
        targets: targets.with(position, token),
        weights: new Float32Array(targets.length).fill(1),
      }));
      const logprobs = (await engine.logprobs(probes)).map((row) => row[position] as number);
      expectClose(logprobs, logSoftmax(values), logprobTolerance);
    }
  });

  test.each(["crossEntropy", "importanceSampling", "ppo", "ppoK1", "ppoK3"])(
    "loss and gradient of %s are PyTorch's",
    async (name) => {
      const expected = golden.losses[name] as Golden["losses"][string];
      const before = await saved(`${name}-before`);
      const report = await engine.forwardBackward(batch, expected.loss);
      expectClose([report.loss], [expected.sum], relative * Math.abs(expected.sum));
      for (const [d, { weights }] of batch.entries()) {
        const weighted = golden.logprobs[d]?.map((logprob, t) => (weights[t] === 0 ? 0 : logprob));
        expectClose(report.logprobs[d], weighted as number[], logprobTolerance);
      }
      const { gradientNorm } = await engine.step(revealing);
      expectClose([gradientNorm], [expected.gradientNorm], relative * expected.gradientNorm);
      const after = await saved(`${name}-after`);
      expect([...after.keys()].sort()).toEqual(Object.keys(expected.gradients).sort());
      for (const [key, gradient] of Object.entries(expected.gradients)) {
        const moves = gradient.positions.map((i) => at(before, key, i) - at(after, key, i));
        expectClose(
          moves,
          gradient.entries.map((g) => g / (Math.abs(g) + 1)),
          traceTolerance,
        );
      }
    },
  );

  test("three clipped AdamW steps with decoupled decay give PyTorch's parameters", async () => {
    for (const [i, expected] of golden.steps.entries()) {
      const report = await engine.forwardBackward(batch, { type: "crossEntropy" });
      const { gradientNorm } = await engine.step(golden.adam);
      expectClose([report.loss], [expected.loss], relative * expected.loss);
      expectClose([gradientNorm], [expected.gradientNorm], relative * expected.gradientNorm);
      if (i === 1) continue;
      const parameters = await saved(`step-${i + 1}`);
      const goldenParameters = await readSafetensors(join(folderOf(variant), `after-${i + 1}.safetensors`));
      for (const [key, { data }] of goldenParameters) {
        // Early Adam steps are nearly the sign of the gradient: 1 % of the learning rate where a gradient is near zero.
        expectClose(parameters.get(key)?.data, data, 0.01 * golden.adam.learningRate);
      }
    }
  });

  test("the greedy continuation is PyTorch's", async () => {
    const { prompt, continuation } = golden.greedy;
    const [completion] = await engine
      .policy()
      .complete([{ text: prompt.join(" "), tokens: prompt, seed: 1 }], {
        maxTokens: continuation.length,
        temperature: 0,
        topP: 1,
        topK: 0,
        stop: [],
      });
    expect(completion?.tokens).toEqual(continuation);
  });

  test("gradients of two calls add up to that of one", async () => {
    const loss: Loss = { type: "crossEntropy" };
    await engine.forwardBackward(batch.slice(0, 1), loss);
    await engine.forwardBackward(batch.slice(1), loss);
    const { gradientNorm } = await engine.step(golden.adam);
    const expected = golden.losses.crossEntropy?.gradientNorm as number;
    expectClose([gradientNorm], [expected], relative * expected);
  });

  test("a batch cut into micro-batches gives the gradient of the whole", async () => {
    const frugal = await createEngine(variant, 32);
    await frugal.load(folderOf(variant));
    const { loss } = await frugal.forwardBackward(batch, { type: "crossEntropy" });
    const { gradientNorm } = await frugal.step(golden.adam);
    await frugal.close();
    const expected = golden.losses.crossEntropy as Golden["losses"][string];
    expectClose([loss], [expected.sum], relative * expected.sum);
    expectClose([gradientNorm], [expected.gradientNorm], relative * expected.gradientNorm);
  });

  test("the weights are read bit for bit as Python wrote them", async () => {
    for (const number of [1, 3]) {
      const weights = await readSafetensors(join(folderOf(variant), `after-${number}.safetensors`));
      const digests = golden.steps[number - 1]?.parameters as Readonly<Record<string, TensorDigest>>;
      expect([...weights.keys()].sort()).toEqual(Object.keys(digests).sort());
      for (const [key, { positions, entries }] of Object.entries(digests))
        expect(positions.map((i) => at(weights, key, i))).toEqual(entries);
    }
  });

  test("what has weight 0 changes no bit of the gradient", async () => {
    const loss: Loss = golden.losses.ppoK3?.loss as Loss;
    const scrambled = batch.map((datum) => ({
      ...datum,
      targets: datum.targets.map((target, t) => (datum.weights[t] === 0 ? (target + 7) % 61 : target)),
      advantages: scrambleMasked(datum, datum.advantages),
      referenceLogprobs: scrambleMasked(datum, datum.referenceLogprobs),
    }));
    await engine.forwardBackward(batch, loss);
    const { gradientNorm } = await engine.step(revealing);
    const expected = await saved("unscrambled");
    await engine.load(folderOf(variant));
    await engine.forwardBackward(scrambled, loss);
    expect(await engine.step(revealing)).toEqual({ gradientNorm });
    expect(await saved("scrambled")).toEqual(expected);
  });

  test("a ratio beyond e^20 gives a finite loss and no gradient", async () => {
    const datum = batch[0] as Datum;
    const runaway: Datum = {
      ...datum,
      weights: new Float32Array(datum.weights.length).fill(1),
      logprobs: Float32Array.from(golden.logprobs[0] as number[], (logprob) => logprob - 21),
      advantages: new Float32Array(datum.weights.length).fill(1),
    };
    const report = await engine.forwardBackward([runaway], { type: "importanceSampling" });
    expectClose([report.loss / Math.exp(20)], [-datum.weights.length], 1e-4);
    expect(await engine.step(revealing)).toEqual({ gradientNorm: 0 });
  });
});

function toDatum(record: Golden["batch"][number]): Datum {
  return {
    inputs: Int32Array.from(record.inputs),
    targets: Int32Array.from(record.targets),
    weights: Float32Array.from(record.weights),
    logprobs: Float32Array.from(record.logprobs),
    advantages: Float32Array.from(record.advantages),
    referenceLogprobs: Float32Array.from(record.referenceLogprobs),
  };
}

/** `values` with other numbers wherever the datum has weight 0. */
function scrambleMasked(datum: Datum, values: Float32Array | undefined): Float32Array {
  return Float32Array.from(values ?? [], (value, t) => (datum.weights[t] === 0 ? 3 - value : value));
}

function logSoftmax(logits: readonly number[]): number[] {
  const largest = Math.max(...logits);
  const logSum = largest + Math.log(logits.reduce((sum, value) => sum + Math.exp(value - largest), 0));
  return logits.map((value) => value - logSum);
}

function at(parameters: ParameterSet, key: string, index: number): number {
  return parameters.get(key)?.data[index] ?? Number.NaN;
}

/** Expects equal lengths and every difference to be at most `tolerance`. */
function expectClose(
  actual: ArrayLike<number> | undefined,
  expected: ArrayLike<number>,
  tolerance: number,
): void {
  expect(actual?.length).toBe(expected.length);
  const wrong: { index: number; actual: number; expected: number }[] = [];
  for (let index = 0; index < expected.length; index++) {
    const [a, e] = [actual?.[index] as number, expected[index] as number];
    if (!(Math.abs(a - e) <= tolerance)) wrong.push({ index, actual: a, expected: e });
  }
  expect(wrong).toEqual([]);
}
