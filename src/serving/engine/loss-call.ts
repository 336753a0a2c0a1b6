/**
 * The data and the loss of a `forward` or `forward_backward` in the engine's own form. All that other servers accept in
 * silence and cannot mean is refused here: targets of another length, ids beyond the vocabulary, a loss without what it
 * reads. Losses are plain sums over all tokens of all data until the next `optim_step`.
 */
import type { Datum } from "../../algorithm/datum.ts";
import type { Loss } from "../../algorithm/loss.ts";
import { tokenLoss } from "../../algorithm/token-loss.ts";
import type {
  ForwardInput,
  LossName,
  ModelInput,
  TensorData,
  WireAnswer,
  WireDatum,
} from "../../engine/tinker/wire.ts";
import { HttpError } from "../http-error.ts";

/** What the model behind a server can read. */
export interface ModelLimits {
  /** Ids are below it. */
  readonly vocabularySize: number;
  /** Most tokens of one sequence. */
  readonly contextLength: number;
}

export interface LossCall {
  readonly loss: Loss;
  readonly batch: readonly Datum[];
}

/** Bounds of the ratio where a client names none: those of hosted Tinker. */
const defaultBounds = { ppo: { low: 0.8, high: 1.2 }, cispo: { low: 0, high: 4 } } as const;

/** Throws `HttpError` (400) that names datum and tensor. */
export function readLossCall(input: ForwardInput, limits: ModelLimits): LossCall {
  const loss = readLoss(input);
  return { loss, batch: input.data.map((datum, index) => readDatum(datum, loss, { index, limits })) };
}

/** Tokens of a prompt. Throws `HttpError` (400). */
export function readPrompt(input: ModelInput, limits: ModelLimits): readonly number[] {
  const tokens = joined(input);
  requireIds(tokens, limits, "the prompt");
  if (tokens.length === 0) throw refused("a prompt of at least one token", "an empty one", "send its tokens");
  if (tokens.length >= limits.contextLength)
    throw refused(
      `a prompt that leaves room in a context of ${limits.contextLength} tokens`,
      `${tokens.length} tokens`,
      "shorten it",
    );
  return tokens;
}

function readLoss({ loss_fn, loss_fn_config }: ForwardInput): Loss {
  const config = loss_fn_config ?? {};
  const known: Record<LossName, readonly string[]> = {
    cross_entropy: [],
    importance_sampling: [],
    ppo: ["clip_low_threshold", "clip_high_threshold"],
    cispo: ["clip_low_threshold", "clip_high_threshold"],
    dro: ["beta"],
  };
  const extra = Object.keys(config).filter((key) => !known[loss_fn].includes(key));
  if (extra.length > 0)
    throw refused(
      `of loss_fn_config for ${loss_fn} only ${known[loss_fn].join(", ") || "nothing"}`,
      extra.join(", "),
      "leave it out",
    );
  if (loss_fn === "cross_entropy") return { type: "crossEntropy" };
  if (loss_fn === "importance_sampling") return { type: "importanceSampling" };
  if (loss_fn === "dro") {
    if (config.beta !== undefined) return { type: "dro", beta: config.beta };
    throw refused("loss_fn_config.beta for dro", "none", "send one, such as 0.05");
  }
  const { clip_low_threshold: low = defaultBounds[loss_fn].low } = config;
  const { clip_high_threshold: high = defaultBounds[loss_fn].high } = config;
  if (low > high)
    throw refused("clip_low_threshold up to clip_high_threshold", `${low} and ${high}`, "correct them");
  if (loss_fn === "cispo") return { type: "cispo", low, high };
  if (low > 1 || high < 1)
    throw refused(
      "bounds of the ratio around 1 for ppo, such as 0.8 and 1.2",
      `${low} and ${high}`,
      "send ratios, not what is added to 1",
    );
  return { type: "ppo", clipLow: 1 - low, clipHigh: high - 1 };
}

function readDatum(
  { model_input, loss_fn_inputs: tensors }: WireDatum,
  loss: Loss,
  { index, limits }: { readonly index: number; readonly limits: ModelLimits },
): Datum {
  const where = `datum ${index}`;
  const inputs = joined(model_input);
  if (inputs.length === 0) throw refused(`tokens in model_input of ${where}`, "none", "leave the datum out");
  if (inputs.length > limits.contextLength)
    throw refused(
      `at most ${limits.contextLength} tokens in ${where}`,
      `${inputs.length}`,
      "shorten it; this model's context is no longer",
    );
  requireIds(inputs, limits, `model_input of ${where}`);
  const read = (name: keyof typeof tensors): readonly number[] | undefined => {
    const tensor = tensors[name];
    return tensor && ofLength(tensor, inputs.length, `${name} of ${where}`);
  };
  const targets = read("target_tokens") as readonly number[];
  requireIds(targets, limits, `target_tokens of ${where}`);
  const needs = (name: keyof typeof tensors): Float32Array => {
    const values = read(name);
    if (values !== undefined) return finite(values, `${name} of ${where}`);
    throw refused(`${name} in loss_fn_inputs of ${where} for this loss`, "none", "send them, one a target");
  };
  const weights = read("weights");
  return {
    inputs: Int32Array.from(inputs),
    targets: Int32Array.from(targets),
    weights: weights ? finite(weights, `weights of ${where}`) : new Float32Array(inputs.length).fill(1),
    ...(loss.type !== "crossEntropy" && { logprobs: needs("logprobs"), advantages: needs("advantages") }),
  };
}

/** What `forward` and `forward_backward` answer. */
export function writeLossAnswer(
  { loss, batch }: LossCall,
  logprobs: readonly Float32Array[],
): WireAnswer<"forward"> {
  let sum = 0;
  const outputs = batch.map((datum, index) => {
    const values = logprobs[index] as Float32Array;
    const losses = elementwise(loss, datum, values);
    for (const value of losses) sum += value;
    return { logprobs: floats(values), elementwise_loss: floats(losses) };
  });
  return { loss_fn_output_type: "scalar", loss_fn_outputs: outputs, metrics: { "loss:sum": sum } };
}

/** The loss of every target (T). */
function elementwise(loss: Loss, datum: Datum, logprobs: Float32Array): Float32Array {
  return logprobs.map((logprob, t) => {
    const weight = datum.weights[t] as number;
    if (weight === 0) return 0;
    const sampledLogprob = datum.logprobs?.[t] ?? 0;
    const advantage = datum.advantages?.[t] ?? 0;
    return tokenLoss(loss, { weight, logprob, sampledLogprob, advantage, referenceLogprob: 0 }).loss;
  });
}

function floats(values: Float32Array): { data: number[]; dtype: string; shape: number[] } {
  return { data: Array.from(values), dtype: "float32", shape: [values.length] };
}

function joined({ chunks }: ModelInput): readonly number[] {
  return chunks.length === 1 ? (chunks[0]?.tokens ?? []) : chunks.flatMap(({ tokens }) => tokens);
}

function ofLength({ data, shape }: TensorData, length: number, where: string): readonly number[] {
  if (data.length !== length)
    throw refused(`${length} values in ${where}, one a token of model_input`, `${data.length}`, "align them");
  if (shape && (shape.length !== 1 || shape[0] !== length))
    throw refused(`the shape [${length}] of ${where}`, `[${shape.slice(0, 8)}]`, "send one dimension");
  return data;
}

function requireIds(tokens: readonly number[], { vocabularySize }: ModelLimits, where: string): void {
  for (let i = 0; i < tokens.length; i++) {
    const token = tokens[i] as number;
    if (Number.isInteger(token) && token >= 0 && token < vocabularySize) continue;
    throw refused(
      `token ids from 0 to ${vocabularySize - 1} in ${where}`,
      `${token} as entry ${i}`,
      "use the tokenizer of this model",
    );
  }
}

/** As float32, in which a number may be too large although JSON could hold it. */
function finite(values: readonly number[], where: string): Float32Array {
  const floats = Float32Array.from(values);
  const wrong = floats.findIndex((value) => !Number.isFinite(value));
  if (wrong < 0) return floats;
  throw refused(`finite float32 numbers in ${where}`, `${values[wrong]} as entry ${wrong}`, "correct it");
}

function refused(expected: string, got: string, advice: string): HttpError {
  return new HttpError(400, { expected, got, advice });
}
