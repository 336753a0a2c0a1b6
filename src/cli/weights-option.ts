/** The option `--weights` of the commands that open a model. */
import { type SamplingWeights, samplingWeights } from "../engine/weight-quantization.ts";
import { UsageError } from "../errors.ts";

export const weightsOption = {
  type: "text",
  value: samplingWeights.join("|"),
  doc: "Precision of the weights that sample (docs/models.md); few bits are fast for few sequences.",
} as const;

/** The precision that was asked for, if any. Throws `UsageError` for any other word. */
export function readWeights(text: string | undefined): SamplingWeights | undefined {
  if (text === undefined) return undefined;
  const found = samplingWeights.find((name) => name === text);
  if (found !== undefined) return found;
  throw new UsageError(`--weights is ${JSON.stringify(text)}, ${samplingWeights.join(", ")} were expected`);
}

/** Overrides of a recipe with what `--weights` says. */
export function withWeights(overrides: readonly string[], text: string | undefined): readonly string[] {
  const weights = readWeights(text);
  return weights === undefined ? overrides : [...overrides, `engine.samplingWeights=${weights}`];
}
