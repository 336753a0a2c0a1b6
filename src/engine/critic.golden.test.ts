// The critic against PyTorch: test/golden/engine/critic/ holds what PyTorch 2 computes in fp32 for the model of untied/
// with a value head, and make_critic_golden.py asked it. Tolerances as in engine.golden.test.ts.
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Datum, ValueDatum } from "../algorithm/datum.ts";
import type { Loss, ValueLoss } from "../algorithm/loss.ts";
import type { BytePairTokenizer } from "../tokenizer/byte-pair.ts";
import { readModel } from "./checkpoint.ts";
import { EmbeddedEngine } from "./embedded-engine.ts";
import type { AdamOptions, Critic } from "./engine.ts";
import type { ParameterSet } from "./parameters.ts";
import { readSafetensors, writeSafetensors } from "./safetensors.ts";

interface Digest {
  readonly positions: readonly number[];
  readonly entries: readonly number[];
}

interface Golden {
  readonly head: { readonly weight: number[]; readonly bias: number[] };
  readonly batch: readonly Readonly<Record<keyof Datum | keyof ValueDatum, readonly number[]>>[];
  readonly loss: ValueLoss;
  readonly values: readonly (readonly number[])[];
  readonly sum: number;
  readonly gradientNorm: number;
  readonly gradients: Readonly<Record<string, Digest>>;
  readonly shared: {
    readonly coefficient: number;
    readonly policyLoss: Loss;
    readonly policyNorm: number;
    readonly headNorm: number;
  };
  readonly adam: AdamOptions;
  readonly steps: readonly { readonly loss: number; readonly gradientNorm: number }[];
  readonly after: Readonly<Record<string, Digest>>;
}

const goldenFolder = fileURLToPath(new URL("../../test/golden/engine", import.meta.url));
const options = { threads: 1, tokenBudget: 24, maxSlots: 4 };
const relative = 1e-5;

/** Learning rate 1 and epsilon 1 reveal the gradient g of a first step: p becomes p - g / (|g| + 1). */
const revealing: AdamOptions = {
  learningRate: 1,
  beta1: 0.9,
  beta2: 0.95,
  epsilon: 1,
  weightDecay: 0,
  maxGradientNorm: 0,
};

describe("a value head on a tiny Llama", () => {
  let golden: Golden;
  let batch: (Datum & ValueDatum)[];
  let engine: EmbeddedEngine;
  let scratch: string;
  const opened: Critic[] = [];

  beforeAll(async () => {
    golden = JSON.parse(await readFile(join(goldenFolder, "critic", "critic.json"), "utf8")) as Golden;
    batch = golden.batch.map(toDatum);
    scratch = await mkdtemp(join(tmpdir(), "forager-critic-golden-"));
  });
  beforeEach(async () => {
    engine = await openUntied();
  });
  afterEach(async () => {
    for (const critic of opened.splice(0)) await critic.close();
    await engine.close();
  });
  afterAll(async () => await rm(scratch, { recursive: true, force: true }));

  /** A critic with the golden head, given to it as a checkpoint. */
  const criticOf = async (trunk: "own" | "shared"): Promise<Critic> => {
    const critic = await engine.critic({ trunk });
    opened.push(critic);
    const weights = await saved(critic);
    weights.get("value_head.weight")?.data.set(golden.head.weight);
    weights.get("value_head.bias")?.data.set(golden.head.bias);
    await writeSafetensors(join(scratch, "critic.safetensors"), weights);
    await critic.load(scratch);
    return critic;
  };
  const saved = async (critic: Critic): Promise<ParameterSet> => {
    const folder = await mkdtemp(join(scratch, "saved-"));
    await critic.save(folder);
    return await readSafetensors(join(folder, "critic.safetensors"));
  };

  test.each(["own", "shared"] as const)("values with trunk %s are PyTorch's", async (trunk) => {
    const values = await (await criticOf(trunk)).values(batch);
    for (const [d, expected] of golden.values.entries()) expectClose(values[d], expected, 2e-5);
  });

  test("loss and gradient of a critic with a trunk of its own are PyTorch's", async () => {
    const critic = await criticOf("own");
    const before = await saved(critic);
    const { loss, values } = await critic.forwardBackward(batch, golden.loss);
    expectClose([loss], [golden.sum], relative * golden.sum);
    for (const [d, { weights }] of batch.entries()) {
      const weighted = golden.values[d]?.map((value, t) => (weights[t] === 0 ? 0 : value)) as number[];
      expectClose(values[d], weighted, 2e-5);
    }
    const { gradientNorm } = await critic.step(revealing);
    expectClose([gradientNorm], [golden.gradientNorm], relative * golden.gradientNorm);
    const after = await saved(critic);
    expect([...after.keys()].sort()).toEqual(Object.keys(golden.gradients).sort());
    for (const [key, { positions, entries }] of Object.entries(golden.gradients)) {
      const moves = positions.map((i) => at(before, key, i) - at(after, key, i));
      const expected = entries.map((g) => g / (Math.abs(g) + 1));
      expectClose(moves, expected, 2e-5);
    }
  });

  test("three clipped AdamW steps give PyTorch's losses, norms and parameters", async () => {
    const critic = await criticOf("own");
    for (const expected of golden.steps) {
      const { loss } = await critic.forwardBackward(batch, golden.loss);
      const { gradientNorm } = await critic.step(golden.adam);
      expectClose([loss], [expected.loss], relative * expected.loss);
      expectClose([gradientNorm], [expected.gradientNorm], relative * expected.gradientNorm);
    }
    const after = await saved(critic);
    for (const [key, { positions, entries }] of Object.entries(golden.after))
      expectClose(
        positions.map((i) => at(after, key, i)),
        entries,
        0.01 * golden.adam.learningRate,
      );
  });

  test("a shared trunk gets the sum of both gradients, its output layer the policy's alone", async () => {
    const critic = await criticOf("shared");
    const { coefficient, policyLoss, policyNorm, headNorm } = golden.shared;
    const weighted = batch.map((datum) => ({
      ...datum,
      weights: datum.weights.map((weight) => weight * coefficient),
    }));
    await engine.forwardBackward(batch, policyLoss);
    await critic.forwardBackward(weighted, golden.loss);
    expectClose([(await engine.step(golden.adam)).gradientNorm], [policyNorm], relative * policyNorm);
    expectClose([(await critic.step(golden.adam)).gradientNorm], [headNorm], relative * headNorm);
  });
});

/** Ids stand for themselves: the model has no text. */
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

async function openUntied(): Promise<EmbeddedEngine> {
  const { model } = await readModel(join(goldenFolder, "untied"));
  const engine = await EmbeddedEngine.create(model, { tokenizer: numbersTokenizer, seed: 1 }, options);
  await engine.load(join(goldenFolder, "untied"));
  return engine;
}

function toDatum(record: Golden["batch"][number]): Datum & ValueDatum {
  const floats = (key: keyof typeof record): Float32Array => Float32Array.from(record[key]);
  return {
    inputs: Int32Array.from(record.inputs),
    targets: Int32Array.from(record.targets),
    weights: floats("weights"),
    logprobs: floats("logprobs"),
    advantages: floats("advantages"),
    values: floats("values"),
    returns: floats("returns"),
  };
}

function at(parameters: ParameterSet, key: string, index: number): number {
  return parameters.get(key)?.data[index] ?? Number.NaN;
}

function expectClose(
  actual: ArrayLike<number> | undefined,
  expected: ArrayLike<number>,
  tolerance: number,
): void {
  expect(actual?.length).toBe(expected.length);
  const distances = Array.from(expected, (value, i) => Math.abs((actual?.[i] as number) - value));
  expect(Math.max(0, ...distances)).toBeLessThanOrEqual(tolerance);
}
