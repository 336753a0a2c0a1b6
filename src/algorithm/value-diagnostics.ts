/** What a critic looks like from outside. All over trained values (weight other than 0), each counted once. */
import type { ValueDatum } from "./datum.ts";
import type { ValueLoss } from "./loss.ts";

export interface ValueDiagnostics {
  /**
   * 1 - variance(return - value) / variance(return) by the values before the update: 1 knows every outcome, 0 no more than
   * their mean, below 0 less than that. 0 where all returns are equal.
   */
  readonly explainedVariance: number;
  readonly valueMean: number;
  readonly returnMean: number;
}

/** Compares the values before a step's updates with the returns. Zeros without any trained value. */
export function valueDiagnostics(data: readonly ValueDatum[]): ValueDiagnostics {
  const trained = data.flatMap(({ weights, values, returns }) =>
    [...weights].flatMap((weight, t) =>
      weight === 0 ? [] : [{ value: values[t] as number, target: returns[t] as number }],
    ),
  );
  if (trained.length === 0) return { explainedVariance: 0, valueMean: 0, returnMean: 0 };
  const spread = variance(trained.map(({ target }) => target));
  const left = variance(trained.map(({ value, target }) => target - value));
  return {
    explainedVariance: spread === 0 ? 0 : 1 - left / spread,
    valueMean: mean(trained.map(({ value }) => value)),
    returnMean: mean(trained.map(({ target }) => target)),
  };
}

/** Share of values (0 to 1) whose gradient the clip took away; `now` holds the values of each datum under the current weights. */
export function valueClipFraction(
  data: readonly ValueDatum[],
  now: readonly ArrayLike<number>[],
  { clip }: ValueLoss,
): number {
  let trained = 0;
  let clipped = 0;
  for (const [i, { weights, values, returns }] of data.entries())
    for (const [t, weight] of weights.entries()) {
      if (weight === 0) continue;
      trained++;
      const [value, old, target] = [now[i]?.[t] as number, values[t] as number, returns[t] as number];
      const within = Math.max(old - clip, Math.min(old + clip, value));
      if (Math.abs(within - target) > Math.abs(value - target)) clipped++;
    }
  return trained === 0 ? 0 : clipped / trained;
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function variance(values: readonly number[]): number {
  const centre = mean(values);
  return mean(values.map((value) => (value - centre) ** 2));
}
