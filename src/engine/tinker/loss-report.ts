/** What the engine contract says of a batch, from the log-probabilities that a server computed. */
import type { Datum } from "../../algorithm/datum.ts";
import type { Loss } from "../../algorithm/loss.ts";
import { datumLoss } from "../../algorithm/token-loss.ts";
import type { LossReport } from "../engine.ts";

/** `rows` are of the data that were `trained`; the others of the batch have no weight and were not sent. */
export function reportOf(
  batch: readonly Datum[],
  {
    trained,
    rows,
    loss,
  }: { readonly trained: readonly Datum[]; readonly rows: readonly Float32Array[]; readonly loss: Loss },
): LossReport {
  const found = new Map(trained.map((datum, index) => [datum, rows[index] as Float32Array]));
  let sum = 0;
  const logprobs = batch.map((datum) => {
    const row = found.get(datum);
    if (row === undefined) return new Float32Array(datum.targets.length);
    sum += datumLoss(loss, datum, row).loss;
    return row.map((value, t) => (datum.weights[t] === 0 ? 0 : value));
  });
  // How a server pads is its own affair; what was asked for is counted.
  return {
    loss: sum,
    logprobs,
    paddedTokens: trained.reduce((total, { inputs }) => total + inputs.length, 0),
  };
}
