/**
 * Sampling from weights of the embedded engine that never change. The session and the cache it takes are made by the
 * first call and given back by `rest`; adapters are merged into copies of the base's matrices then.
 */
import type { Datum } from "../../algorithm/datum.ts";
import { DecodingModel } from "../../engine/decoding-model.ts";
import { EmbeddedPolicy } from "../../engine/embedded-policy.ts";
import { KeyValueCache } from "../../engine/key-value-cache.ts";
import type { ParameterSet } from "../../engine/parameters.ts";
import type { TrainedWeights } from "../../engine/trained-weights.ts";
import { bitsOf, type SamplingWeights, type WeightBits } from "../../engine/weight-quantization.ts";
import type { WritableTokenizer } from "../../tokenizer/tokenizer-file.ts";
import type { SampledSequence, SampleOptions, Sampler, TokenLogprob } from "./backend.ts";

export interface EmbeddedSamplerParts {
  readonly weights: TrainedWeights;
  readonly tokenizer: WritableTokenizer;
  readonly threads: number;
  readonly maxSlots: number;
  /** Bytes that keys and values may take. */
  readonly cacheMemory: number;
  /** What completions are sampled with; log-probabilities of prompts are those of the weights as they are. Absent: f32. */
  readonly samplingWeights?: SamplingWeights | undefined;
  /** Of whole sequences under these weights. */
  readonly logprobs: (weights: ParameterSet, batch: readonly Datum[]) => Promise<Float32Array[]>;
  readonly save: (folder: string) => Promise<void>;
}

export class EmbeddedSampler implements Sampler {
  readonly #parts: EmbeddedSamplerParts;
  readonly #decoding: DecodingModel;
  readonly #policy: EmbeddedPolicy;

  constructor(parts: EmbeddedSamplerParts) {
    this.#parts = parts;
    this.#decoding = createDecoding(parts, bitsOf(parts.samplingWeights ?? "f32"));
    this.#policy = new EmbeddedPolicy({
      identity: { type: "embedded", model: "snapshot" },
      model: this.#decoding,
      tokenizer: parts.tokenizer,
      maxSlots: parts.maxSlots,
      cacheMemory: parts.cacheMemory,
    });
  }

  async sample(
    prompt: readonly number[],
    { seeds, stopTexts, ...options }: SampleOptions,
    signal?: AbortSignal,
  ): Promise<SampledSequence[]> {
    const contexts = seeds.map((seed) => ({ text: "", tokens: prompt, seed }));
    const completions = await this.#policy.complete(contexts, { ...options, stop: stopTexts }, signal);
    return completions.map(({ tokens = [], logprobs = [], finishReason }) => ({
      tokens,
      logprobs,
      reason: finishReason === "length" ? "length" : "stop",
    }));
  }

  async promptLogprobs(prompt: readonly number[]): Promise<Float32Array> {
    if (prompt.length < 2) return new Float32Array();
    const inputs = Int32Array.from(prompt.slice(0, -1));
    const targets = Int32Array.from(prompt.slice(1));
    const datum = { inputs, targets, weights: new Float32Array(inputs.length) };
    const [logprobs] = await this.#parts.logprobs(this.#parts.weights.all, [datum]);
    return logprobs as Float32Array;
  }

  /** Token by token, as sampling reads them, with a session of its own: rare, and slow for long prompts. */
  async topPromptLogprobs(
    prompt: readonly number[],
    k: number,
  ): Promise<readonly (readonly TokenLogprob[])[]> {
    const { model } = this.#parts.weights.adapted;
    const decoding = createDecoding(this.#parts, undefined);
    const cache = new KeyValueCache(model, 1, prompt.length);
    const places: TokenLogprob[][] = [];
    try {
      for (let t = 0; t + 1 < prompt.length; t++) {
        const extension = { slot: 0, cached: t, tokens: [prompt[t] as number] };
        const row = await decoding.extend(cache, [extension]);
        places.push(mostLikely(row.subarray(0, this.#parts.tokenizer.vocabularySize), k));
      }
      return places;
    } finally {
      cache.release();
      await decoding.rest();
    }
  }

  async save(folder: string): Promise<void> {
    await this.#parts.save(folder);
  }

  async rest(): Promise<void> {
    await this.#policy.rest();
  }

  async close(): Promise<void> {
    await this.rest();
    await this.#decoding.close();
  }
}

function createDecoding(
  { weights, threads }: EmbeddedSamplerParts,
  bits: WeightBits | undefined,
): DecodingModel {
  return new DecodingModel(weights.adapted.model, () => weights.merged(), {
    threads,
    bits,
    forget: (merged) => weights.forgetMerged(merged),
  });
}

/** Most likely first, ties to the lower id. */
function mostLikely(row: Float32Array, k: number): TokenLogprob[] {
  const order = Array.from(row.keys()).sort((a, b) => (row[b] as number) - (row[a] as number) || a - b);
  return order.slice(0, k).map((token) => [token, row[token] as number]);
}
