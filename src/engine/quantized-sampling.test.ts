// Sampling with quantised weights against fp32 sampling with the same weights dequantised: only the rounding of activations differs.
import { afterAll, describe, expect, test, vi } from "vitest";
import type { Completion } from "../rollout/policy.ts";
import { random } from "../shared/random.ts";
import { defaultCacheMemory } from "./cache-budget.ts";
import { DecodingModel } from "./decoding-model.ts";
import { EmbeddedPolicy } from "./embedded-policy.ts";
import { randomTokens, tinyModel, tinyTokenizer } from "./engine.fixture.ts";
import { pieceSize, rotatePieces } from "./hadamard.ts";
import { headSize, type ModelOptions } from "./model-options.ts";
import { initializeParameters, type ParameterSet } from "./parameters.ts";
import { dequantizeRows, quantizeRows, rotateColumns } from "./row-quantization.fixture.ts";
import { SequenceRunner } from "./sequence-runner.ts";
import { dequantizeMatrix, quantizeMatrix, type WeightBits } from "./weight-quantization.ts";

const models: DecodingModel[] = [];
afterAll(async () => {
  for (const model of models) await model.close();
});

function policyOf(shape: ModelOptions, weights: ParameterSet, bits: WeightBits | undefined): EmbeddedPolicy {
  const model = new DecodingModel(shape, async () => weights, { threads: 1, bits });
  models.push(model);
  const identity = { type: "embedded", model: "quantised" };
  const setting = { maxSlots: 4, cacheMemory: defaultCacheMemory };
  return new EmbeddedPolicy({ identity, model, tokenizer: tinyTokenizer, ...setting });
}

interface Matrix {
  readonly data: Float32Array;
  readonly size: readonly [number, number];
}

/** Every matrix but the embedding table replaced by what its codes stand for; the output layer has 8 bits. */
function rounded(shape: ModelOptions, weights: ParameterSet, bits: WeightBits): ParameterSet {
  return new Map(
    [...weights].map(([name, { shape: sizes, data }]) => {
      if (sizes.length < 2 || name.includes("embed_tokens")) return [name, { shape: sizes, data }];
      const size = sizes as [number, number];
      const inBlocks = bits === 4 && name !== "lm_head.weight";
      const values = inBlocks
        ? dequantizeMatrix(quantizeMatrix(data, size))
        : inHeadBasis(shape, name, { data, size });
      return [name, { shape: sizes, data: values }];
    }),
  );
}

function inRows(
  data: Float32Array,
  size: readonly [number, number],
  piece = pieceSize(size[1]),
): Float32Array {
  return rotatePieces(dequantizeRows(quantizeRows(rotatePieces(data, piece), size)), piece);
}

/** As `inRows`, where each head's values are rotated between the layer that writes and the one that reads them. */
function inHeadBasis(shape: ModelOptions, name: string, { data, size }: Matrix): Float32Array {
  const headPiece = pieceSize(headSize(shape));
  if (name.includes("o_proj")) return inRows(data, size, headPiece);
  if (!name.includes("v_proj")) return inRows(data, size);
  const [, columns] = size;
  return rotateColumns(inRows(rotateColumns(data, headPiece, columns), size), headPiece, columns);
}

const contexts = [40, 300, 7, 90, 33].map((length, seed) => {
  const tokens = randomTokens(length, random(seed, "context"));
  return { text: "", tokens, seed };
});
const options = { maxTokens: 12, temperature: 1, topP: 1, topK: 0, stop: [] };

/** Scales of normalisations and biases as training leaves them: none of them 1 or 0. */
function withAllScales(weights: ParameterSet): ParameterSet {
  return new Map(
    [...weights].map(([name, { shape, data }]) => {
      const chance = random(7, name);
      const changed = shape.length > 1 ? data : data.map((value) => value + 0.3 * chance.normal());
      return [name, { shape, data: changed }];
    }),
  );
}

async function sample(policy: EmbeddedPolicy): Promise<Completion[]> {
  return await policy.complete(contexts, options);
}

/** Log-probabilities of completions under given weights, from whole sequences in fp32. */
async function wholeLogprobs(shape: ModelOptions, weights: ParameterSet, completions: readonly Completion[]) {
  const runner = new SequenceRunner({ model: shape }, { threads: 1, tokenBudget: 1024 });
  const data = completions.map(({ tokens = [] }, i) => {
    const all = [...(contexts[i]?.tokens ?? []), ...tokens];
    const inputs = Int32Array.from(all.slice(0, -1));
    return { inputs, targets: Int32Array.from(all.slice(1)), weights: inputs.map(() => 1) };
  });
  const rows = await runner.logprobs(
    weights,
    data.map((datum) => ({ ...datum, weights: Float32Array.from(datum.weights) })),
  );
  await runner.close();
  return rows.map((row, i) => [...row.slice(-(completions[i]?.tokens?.length ?? 0))]);
}

const shapes: readonly [string, ModelOptions][] = [
  ["llama", tinyModel],
  ["qwen2, whose projections have biases", { ...tinyModel, family: "qwen2" }],
  ["qwen3, which normalises heads", { ...tinyModel, family: "qwen3" }],
];

describe.each(shapes)("%s", (_, shape) => {
  test.each<WeightBits>([4, 8])(
    "samples with %d bits, and reports log-probabilities of those weights",
    async (bits) => {
      const weights = withAllScales(initializeParameters(shape, 3));
      const completions = await sample(policyOf(shape, weights, bits));
      const reported = completions.flatMap(({ logprobs = [] }) => logprobs);
      const distance = (others: readonly number[]): number =>
        Math.max(...reported.map((logprob, i) => Math.abs(logprob - (others[i] as number))));
      const own = distance((await wholeLogprobs(shape, rounded(shape, weights, bits), completions)).flat());
      const trained = distance((await wholeLogprobs(shape, weights, completions)).flat());
      expect(own).toBeLessThan(0.05);
      if (bits === 4) expect(trained).toBeGreaterThan(3 * own);
    },
  );
});

test("a table that is tied to the output layer stays fp32 for the lookup", async () => {
  const shape = { ...tinyModel, tieEmbeddings: true };
  const weights = initializeParameters(shape, 5);
  const [int8, f32] = [
    await sample(policyOf(shape, weights, 8)),
    await sample(policyOf(shape, weights, undefined)),
  ];
  expect(int8[2]?.logprobs?.[0]).not.toBe(f32[2]?.logprobs?.[0]);
  expect(int8[2]?.logprobs?.[0]).toBeCloseTo(f32[2]?.logprobs?.[0] as number, 1);
});

test("with int8 the first tokens of texts, whose numbers are far larger, are run together and apart from the rest", async () => {
  const weights = initializeParameters(tinyModel, 1);
  const sizesWith = async (bits: WeightBits | undefined): Promise<number[][]> => {
    const model = new DecodingModel(tinyModel, async () => weights, { threads: 1, bits });
    models.push(model);
    const extend = vi.spyOn(model, "extend");
    const setting = { maxSlots: 4, cacheMemory: defaultCacheMemory };
    const identity = { type: "embedded", model: "noting" };
    const policy = new EmbeddedPolicy({ identity, model, tokenizer: tinyTokenizer, ...setting });
    await policy.complete([contexts[0], contexts[3]] as typeof contexts, { ...options, maxTokens: 1 });
    return extend.mock.calls.map(([, extensions]) => extensions.map(({ tokens }) => tokens.length));
  };
  expect(await sizesWith(8)).toEqual([
    [1, 1],
    [39, 89],
  ]);
  expect(await sizesWith(undefined)).toEqual([[40, 90]]);
});

test("with int8 the first token of a short text is run apart from the tokens that others sample", async () => {
  const weights = initializeParameters(tinyModel, 1);
  const model = new DecodingModel(tinyModel, async () => weights, { threads: 1, bits: 8 });
  models.push(model);
  const extend = vi.spyOn(model, "extend");
  const setting = { maxSlots: 8, cacheMemory: defaultCacheMemory };
  const identity = { type: "embedded", model: "noting" };
  const policy = new EmbeddedPolicy({ identity, model, tokenizer: tinyTokenizer, ...setting });
  const short = { text: "", tokens: [3, 4], seed: 9 };
  await Promise.all([sample(policy), policy.complete([short, short], options)]);
  for (const [, extensions] of extend.mock.calls) {
    const firsts = extensions.filter(({ cached, isIdle }) => cached === 0 && !isIdle);
    if (firsts.length > 0) expect(firsts).toHaveLength(extensions.length);
    for (const { tokens } of firsts) expect(tokens).toHaveLength(1);
  }
});
