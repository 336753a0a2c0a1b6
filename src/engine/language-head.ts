/** The head of a language model: final normalisation, output layer, and the log-probability of one target a row. */
import type { Datum } from "../algorithm/datum.ts";
import type { Loss } from "../algorithm/loss.ts";
import { assert } from "../errors.ts";
import { canonicalJson } from "../shared/hash.ts";
import type { ElementType } from "./graph.ts";
import { type Head, rowsOfPart } from "./head.ts";
import { buildLoss, type LossInputs, lossInputNames } from "./loss-graph.ts";
import { type ModelOptions, parameterShapes } from "./model-options.ts";
import { rmsNorm } from "./operators.ts";
import type { RowPlaces } from "./places.ts";
import type { Values } from "./session.ts";
import { tokenLogprobs } from "./token-logprobs.ts";

const norm = "model.norm.weight";

/** Its values are log-probabilities of `targets`; with a loss it can be trained. */
export function languageHead(model: ModelOptions, loss?: Loss): Head {
  const output = model.tieEmbeddings ? "model.embed_tokens.weight" : "lm_head.weight";
  const shapes = parameterShapes(model);
  const lossInputs = loss ? lossInputNames(loss) : [];
  return {
    key: canonicalJson({ head: "language", loss: loss ?? null }),
    parameters: new Map([norm, output].map((name) => [name, shapes.get(name) as readonly number[]])),
    inputs: new Map<string, ElementType>([
      ["targets", "int64"],
      ...lossInputs.map((name) => [name, "float32"] as const),
    ]),
    // Probabilities, for the way back; without it logits and probabilities of one part.
    floatsPerRow: loss
      ? model.vocabularySize
      : 2 * Math.min(model.vocabularySize, rowsOfPart(model.vocabularySize)),
    build: (graph, hidden, { parameter, inParts, row }) => {
      const normalized = rmsNorm(graph, hidden, parameter(norm), model.rmsEpsilon);
      const values = tokenLogprobs(graph, normalized, { parts: inParts(output), indexes: row("targets") });
      if (!loss) return { values };
      const inputs = Object.fromEntries(lossInputs.map((name) => [name, row(name)]));
      return { values, loss: buildLoss(graph, loss, values, inputs as unknown as LossInputs) };
    },
  };
}

/** What `languageHead` is fed for the given predictions. */
export function languageInputs(
  data: readonly Datum[],
  { rows, times }: RowPlaces,
  loss?: Loss,
): Map<string, Values> {
  const pick = (read: (datum: Datum, t: number) => number): Float32Array =>
    Float32Array.from(rows, (row, index) => read(data[row] as Datum, times[index] as number));
  const targets = BigInt64Array.from({ length: rows.length }, (_, index) =>
    BigInt((data[rows[index] as number] as Datum).targets[times[index] as number] as number),
  );
  const inputs = new Map<string, Values>([["targets", targets]]);
  if (!loss) return inputs;
  const readers: Record<keyof LossInputs, (datum: Datum, t: number) => number> = {
    weights: (datum, t) => datum.weights[t] as number,
    sampledLogprobs: (datum, t) => required(datum.logprobs, loss, "logprobs")[t] as number,
    advantages: (datum, t) => required(datum.advantages, loss, "advantages")[t] as number,
    referenceLogprobs: (datum, t) =>
      required(datum.referenceLogprobs, loss, "referenceLogprobs")[t] as number,
  };
  for (const name of lossInputNames(loss)) inputs.set(name, pick(readers[name]));
  return inputs;
}

function required(values: Float32Array | undefined, loss: Loss, name: string): Float32Array {
  assert(values, `the loss ${loss.type} needs ${name} in every datum`);
  return values;
}
