// Every family against transformers: test/golden/families/ holds tiny models as the hub would (float32, float16 and
// bfloat16, one file and shards), what PyTorch computes with them in fp32, and the script that asked it.
import { readdirSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Datum } from "../algorithm/datum.ts";
import type { BytePairTokenizer } from "../tokenizer/byte-pair.ts";
import { readModel, readModelConfig } from "./checkpoint.ts";
import { EmbeddedEngine } from "./embedded-engine.ts";
import type { ParameterSet } from "./parameters.ts";

interface Golden {
  readonly batch: readonly {
    readonly inputs: readonly number[];
    readonly targets: readonly number[];
    readonly weights: readonly number[];
  }[];
  readonly logits: readonly {
    readonly datum: number;
    readonly position: number;
    readonly values: readonly number[];
  }[];
  readonly logprobs: readonly (readonly number[])[];
  readonly loss: number;
  readonly gradientNorm: number;
  readonly gradients: Readonly<
    Record<string, { readonly positions: readonly number[]; readonly entries: readonly number[] }>
  >;
  readonly greedy: { readonly prompt: number[]; readonly continuation: number[] };
}

const folderOf = (family: string): string =>
  fileURLToPath(new URL(`../../test/golden/families/${family}`, import.meta.url));

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

/** Both sides compute in fp32 and sum in different orders; seen: 3e-6 on log-probabilities of order 5. */
const tolerance = 2e-5;
const relative = 1e-5;

/** A step that reveals the gradient g of its first update: p becomes p - g / (|g| + 1). */
const revealing = {
  learningRate: 1,
  beta1: 0.9,
  beta2: 0.95,
  epsilon: 1,
  weightDecay: 0,
  maxGradientNorm: 0,
};

const families = readdirSync(folderOf("."), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);

test("all families that are supported have a golden model", () => {
  expect(families.sort()).toEqual(["llama3", "mistral", "qwen2", "qwen3", "smollm2"]);
});

describe.each(families)("a tiny model of the family %s", (family) => {
  let golden: Golden;
  let batch: Datum[];
  let scratch: string;
  let engine: EmbeddedEngine;

  beforeAll(async () => {
    golden = JSON.parse(await readFile(join(folderOf(family), "golden.json"), "utf8")) as Golden;
    batch = golden.batch.map(({ inputs, targets, weights }) => ({
      inputs: Int32Array.from(inputs),
      targets: Int32Array.from(targets),
      weights: Float32Array.from(weights),
    }));
    scratch = await mkdtemp(join(tmpdir(), "forager-families-"));
    const setting = { tokenizer: numbersTokenizer, seed: 1 };
    const options = { threads: 1, tokenBudget: 4096, maxSlots: 4 };
    engine = await EmbeddedEngine.create(await readModelConfig(folderOf(family)), setting, options);
    await engine.load(folderOf(family));
  });
  afterAll(async () => {
    await engine.close();
    await rm(scratch, { recursive: true, force: true });
  });

  test("log-probabilities of all targets are those of transformers", async () => {
    const logprobs = await engine.logprobs(batch);
    for (const [d, expected] of golden.logprobs.entries()) expectClose(logprobs[d], expected, tolerance);
  });

  test("the whole distribution at a position is the softmax of the logits of transformers", async () => {
    for (const { datum, position, values } of golden.logits) {
      const { inputs, targets } = batch[datum] as Datum;
      const probes = values.map((_, token) => ({
        inputs,
        targets: targets.with(position, token),
        weights: new Float32Array(targets.length).fill(1),
      }));
      const logprobs = (await engine.logprobs(probes)).map((row) => row[position] as number);
      expectClose(logprobs, logSoftmax(values), tolerance);
    }
  });

  test("a greedy continuation of 32 tokens is that of transformers", async () => {
    const { prompt, continuation } = golden.greedy;
    const options = { maxTokens: continuation.length, temperature: 0, topP: 1, topK: 0, stop: [] };
    const context = { text: "", tokens: prompt, seed: 1 };
    const [completion] = await engine.policy().complete([context], options);
    expect(continuation).toHaveLength(32);
    expect(completion?.tokens).toEqual(continuation);
  });

  test("loss and gradient are PyTorch's", async () => {
    const before = await saved(engine, join(scratch, "before"));
    const report = await engine.forwardBackward(batch, { type: "crossEntropy" });
    expectClose([report.loss], [golden.loss], relative * golden.loss);
    const { gradientNorm } = await engine.step(revealing);
    expectClose([gradientNorm], [golden.gradientNorm], relative * golden.gradientNorm);
    const after = await saved(engine, join(scratch, "after"));
    expect([...after.keys()].sort()).toEqual(Object.keys(golden.gradients).sort());
    for (const [key, { positions, entries }] of Object.entries(golden.gradients)) {
      const moves = positions.map((i) => at(before, key, i) - at(after, key, i));
      expectClose(
        moves,
        entries.map((g) => g / (Math.abs(g) + 1)),
        tolerance,
      );
    }
    await engine.load(folderOf(family));
  });

  test("what is saved is a model of the same family, bit for bit", async () => {
    const folder = join(scratch, "copy");
    await engine.save(folder);
    expect(await readModel(folder)).toEqual(await readModel(folderOf(family)));
    const config = async (at: string) => JSON.parse(await readFile(join(at, "config.json"), "utf8"));
    const { model_type, architectures } = await config(folderOf(family));
    expect(await config(folder)).toMatchObject({ model_type, architectures });
  });
});

/** All parameters, through the files that `save` writes. */
async function saved(engine: EmbeddedEngine, folder: string): Promise<ParameterSet> {
  await engine.save(folder);
  return (await readModel(folder)).parameters;
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
  const distances = Array.from(expected, (value, i) => Math.abs((actual?.[i] as number) - value));
  expect(distances.every(Number.isFinite)).toBe(true);
  expect(Math.max(...distances)).toBeLessThanOrEqual(tolerance);
}
