/** The head of a critic: final normalisation, then one number a row (width to 1). `embedded-critic.ts` puts it to use. */
import type { ValueDatum } from "../algorithm/datum.ts";
import type { ValueLoss } from "../algorithm/loss.ts";
import { canonicalJson } from "../shared/hash.ts";
import type { ElementType } from "./graph.ts";
import { type Head, headRows } from "./head.ts";
import { buildValueLoss } from "./loss-graph.ts";
import { type ModelOptions, parameterShapes } from "./model-options.ts";
import { linear, reshape, rmsNorm } from "./operators.ts";
import type { RowPlaces } from "./places.ts";
import type { Values } from "./session.ts";

const norm = "model.norm.weight";
const weight = "value_head.weight";
const bias = "value_head.bias";
const lossInputs = ["weights", "oldValues", "returns"] as const;

/** The parameters that a critic adds to a model. */
export function valueHeadShapes({ width }: ModelOptions): ReadonlyMap<string, readonly number[]> {
  return new Map([
    [weight, [1, width]],
    [bias, [1]],
  ]);
}

/** Its values are those of the states; with a loss it can be trained. */
export function valueHead(model: ModelOptions, loss?: ValueLoss): Head {
  return {
    key: canonicalJson({ head: "value", loss: loss ?? null }),
    parameters: new Map([
      [norm, parameterShapes(model).get(norm) as readonly number[]],
      ...valueHeadShapes(model),
    ]),
    inputs: new Map(loss ? lossInputs.map((name): [string, ElementType] => [name, "float32"]) : []),
    // Normalised states and, on the way back, their gradients.
    floatsPerRow: (loss ? 6 : 2) * model.width,
    build: (graph, hidden, { parameter, row }) => {
      const normalized = rmsNorm(graph, hidden, parameter(norm), model.rmsEpsilon);
      const values = reshape(graph, linear(graph, normalized, parameter(weight), parameter(bias)), [
        headRows,
      ]);
      if (!loss) return { values };
      const [weights, oldValues, returns] = [row("weights"), row("oldValues"), row("returns")];
      return { values, loss: buildValueLoss(graph, loss, values, { weights, oldValues, returns }) };
    },
  };
}

/** What `valueHead` with a loss is fed for the given states. */
export function valueInputs(
  data: readonly ValueDatum[],
  { rows, times }: RowPlaces,
): ReadonlyMap<string, Values> {
  const pick = (name: "weights" | "values" | "returns"): Float32Array =>
    Float32Array.from(rows, (row, i) => (data[row] as ValueDatum)[name][times[i] as number] as number);
  return new Map([
    ["weights", pick("weights")],
    ["oldValues", pick("values")],
    ["returns", pick("returns")],
  ]);
}
