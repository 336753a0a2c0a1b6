/** For tests: data and losses of the wire as an embedded engine takes them, and what it says as the wire has it. */
import type { Datum } from "../../algorithm/datum.ts";
import type { Loss } from "../../algorithm/loss.ts";
import type { EmbeddedEngine } from "../embedded-engine.ts";
import { tinyTokenizer } from "../engine.fixture.ts";
import type { Profile } from "./profiles.ts";
import type { ParsedRequest } from "./wire.ts";

/** What comes of a future. */
export type Result = { readonly json: unknown } | { readonly failed: string };

type Input = ParsedRequest<"forward">["forward_input"];

export function dataOf({ data }: Input): Datum[] {
  return data.map(({ model_input, loss_fn_inputs: { target_tokens, weights, logprobs, advantages } }) => ({
    inputs: Int32Array.from(model_input.chunks.flatMap(({ tokens }) => [...tokens])),
    targets: Int32Array.from(target_tokens.data),
    weights: weights ? Float32Array.from(weights.data) : new Float32Array(target_tokens.data.length).fill(1),
    ...(logprobs && { logprobs: Float32Array.from(logprobs.data) }),
    ...(advantages && { advantages: Float32Array.from(advantages.data) }),
  }));
}

export function lossOf({ loss_fn, loss_fn_config }: Input): Loss {
  if (loss_fn === "cross_entropy") return { type: "crossEntropy" };
  if (loss_fn !== "ppo") return { type: "importanceSampling" };
  const { clip_low_threshold: low = 0.8, clip_high_threshold: high = 1.2 } = loss_fn_config ?? {};
  return { type: "ppo", clipLow: 1 - low, clipHigh: high - 1 };
}

export function lossAnswer(rows: readonly Float32Array[]): Result {
  return {
    json: {
      loss_fn_output_type: "scalar",
      loss_fn_outputs: rows.map((row) => ({
        logprobs: { data: [...row], dtype: "float32", shape: [row.length] },
      })),
      metrics: {},
    },
  };
}

/** Samples once, as a profile tells it. */
export async function sampled(
  engine: EmbeddedEngine,
  { prompt, sampling_params: params, prompt_logprobs }: ParsedRequest<"asample">,
  { promptLogprobs }: Profile,
): Promise<Result> {
  const tokens = prompt.chunks.flatMap((chunk) => [...chunk.tokens]);
  const stop = Array.isArray(params.stop)
    ? params.stop.filter((one): one is string => typeof one === "string")
    : [];
  const [completion] = await engine.policy().complete([{ text: "", tokens, seed: params.seed ?? 0 }], {
    maxTokens: params.max_tokens,
    temperature: params.temperature,
    topP: params.top_p,
    topK: Math.max(0, params.top_k),
    // The ends of the text stop an embedded model by themselves.
    stop: stop.filter((text) => text !== tinyTokenizer.decode([tinyTokenizer.endOfTextId])),
  });
  const [row] = prompt_logprobs ? await engine.logprobs([textDatum(tokens)]) : [];
  const told = row && (promptLogprobs === "leadingNull" ? [null, ...row] : [...row]);
  const stop_reason = completion?.finishReason === "length" ? "length" : "stop";
  return {
    json: {
      sequences: [{ stop_reason, tokens: completion?.tokens, logprobs: completion?.logprobs }],
      prompt_logprobs: told ?? null,
    },
  };
}

function textDatum(tokens: readonly number[]): Datum {
  return {
    inputs: Int32Array.from(tokens.slice(0, -1)),
    targets: Int32Array.from(tokens.slice(1)),
    weights: new Float32Array(tokens.length - 1).fill(1),
  };
}
