/**
 * Data as the protocol writes them, checked before they leave: a token id beyond the vocabulary gives NaN on some servers and
 * spoils the adapters for good, and lengths that differ or numbers that are none are accepted in silence by others.
 */
import type { Datum } from "../../algorithm/datum.ts";
import { EngineError } from "../../errors.ts";
import type { Profile } from "./profiles.ts";
import type { ForwardInput, LossName, TensorData, WireDatum } from "./wire.ts";

/** What belongs to each target besides the target itself. */
export interface Columns {
  readonly weights?: ArrayLike<number>;
  readonly logprobs?: ArrayLike<number>;
  readonly advantages?: ArrayLike<number>;
}

export interface WireBatch {
  readonly loss_fn: LossName;
  readonly loss_fn_config?: ForwardInput["loss_fn_config"];
  readonly data: readonly WireDatum[];
}

export interface Limits {
  readonly vocabularySize: number;
  /** Most tokens of one sequence. */
  readonly contextLength: number;
}

/** Throws `EngineError` for a datum that no server may see; `index` names it. */
export function requireSound(datum: Datum, index: number, { vocabularySize, contextLength }: Limits): void {
  const { inputs, targets } = datum;
  const wrong = (what: string): EngineError =>
    new EngineError(`datum ${index}: ${what}`, { kind: "rejected" });
  if (inputs.length === 0) throw wrong("a sequence of at least one token was expected, it has none");
  if (inputs.length > contextLength)
    throw wrong(
      `it has ${inputs.length} tokens, the engine takes ${contextLength}; lower what an episode may have`,
    );
  for (const [name, ids] of Object.entries({ inputs, targets }))
    for (const id of ids)
      if (id < 0 || id >= vocabularySize)
        throw wrong(
          `${name} hold the id ${id}, the tokenizer has ${vocabularySize}; use the tokenizer that belongs to the model (engine.tokenizer)`,
        );
  const { weights, logprobs, advantages, referenceLogprobs } = datum;
  for (const [name, values] of Object.entries({
    targets,
    weights,
    logprobs,
    advantages,
    referenceLogprobs,
  })) {
    if (values === undefined) continue;
    if (values.length !== inputs.length)
      throw wrong(`${values.length} ${name} for ${inputs.length} inputs; there must be one for each`);
    for (const value of values)
      if (!Number.isFinite(value)) throw wrong(`${name} hold ${value}; only finite numbers can be sent`);
  }
}

/** One sequence with its columns. */
export function wireDatum({ inputs, targets }: Datum, columns: Columns): WireDatum {
  const tensors: Record<string, TensorData> = { target_tokens: tensor(targets, "int64") };
  for (const [name, values] of Object.entries(columns))
    if (values !== undefined) tensors[name] = tensor(values as ArrayLike<number>, "float32");
  return {
    model_input: { chunks: [{ type: "encoded_text", tokens: Array.from(inputs) }] },
    loss_fn_inputs: tensors as WireDatum["loss_fn_inputs"],
  };
}

function tensor(values: ArrayLike<number>, dtype: "int64" | "float32"): TensorData {
  return { data: Array.from(values), dtype, shape: [values.length] };
}

/** Characters that a number takes at most, with its comma: an id, and a float32 printed as a double. */
const idBytes = 8;
const floatBytes = 25;
const datumBytes = 400;

function bytesOf({ model_input, loss_fn_inputs }: WireDatum): number {
  const tokens = model_input.chunks[0]?.tokens.length ?? 0;
  const floats = Object.keys(loss_fn_inputs).length - 1;
  return datumBytes + tokens * (2 * idBytes + floats * floatBytes);
}

/**
 * A batch cut into parts that fit into one POST each, in order. Throws `EngineError` for a sequence that does not fit alone.
 */
export function chunked(
  batch: WireBatch,
  { chunkBytes, chunkDatums }: Pick<Profile, "chunkBytes" | "chunkDatums">,
): WireBatch[] {
  const chunks: WireDatum[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const datum of batch.data) {
    const size = bytesOf(datum);
    if (size > chunkBytes)
      throw new EngineError(
        `a sequence of ${datum.model_input.chunks[0]?.tokens.length} tokens takes up to ${size} bytes, and one POST ${chunkBytes}; raise engine.chunkBytes, or lower what an episode may have`,
        { kind: "rejected" },
      );
    if (bytes + size > chunkBytes || (chunks.at(-1)?.length ?? 0) >= chunkDatums) {
      chunks.push([]);
      bytes = 0;
    }
    chunks.at(-1)?.push(datum);
    bytes += size;
  }
  return chunks.map((data) => ({ ...batch, data }));
}
