/**
 * The watchdog: looks at the metrics of the steps so far and says whether the training has collapsed. Known ways
 * (Search-R1 issues 88, 89; LLDS, arXiv 2512.04220): a loss that is not a number, reward or valid actions that
 * fall and stay down, turns that grow without end, gradients that explode, a policy that runs away.
 * A fall counts only when it is large, lasts, and cannot be the noise between steps. It decides; the loop acts.
 */
import { z } from "zod";

export const collapseOptionsSchema = z.strictObject({
  window: z.int().min(2).default(8).describe("Steps in a moving average."),
  patience: z
    .int()
    .min(1)
    .default(5)
    .describe("Steps in a row that must look bad before the training stops."),
  rewardFall: z
    .number()
    .gt(0)
    .max(1)
    .default(0.5)
    .describe("Share of its best moving average that the mean reward must lose, 0 to 1."),
  validActionFall: z
    .number()
    .gt(0)
    .max(1)
    .default(0.4)
    .describe("Share of its best moving average that the rate of valid actions must lose, 0 to 1."),
  lengthGrowth: z
    .number()
    .gt(1)
    .default(4)
    .describe("Factor by which the policy's tokens must grow over the moving average of 3 windows before."),
  gradientGrowth: z
    .number()
    .gt(1)
    .default(100)
    .describe("Factor by which the gradient norm must exceed the median of all steps."),
  maxKlDivergence: z
    .number()
    .positive()
    .default(1)
    .describe("Divergence of one step's policy from the one that sampled, nats per token."),
});

export type CollapseOptions = z.infer<typeof collapseOptionsSchema>;

/** Metrics of one step. The optional ones are absent in a step without an update. */
export interface StepHealth {
  readonly step: number;
  readonly rewardMean: number;
  /** Share of turns that were a valid action, 0 to 1. */
  readonly validActionRate: number;
  /** Mean tokens the policy wrote in a trajectory. */
  readonly policyTokens: number;
  readonly loss?: number;
  readonly gradientNorm?: number;
  readonly klDivergence?: number;
  readonly criticLoss?: number;
}

export type Verdict = { readonly type: "ok" } | { readonly type: "stop"; readonly reason: string };

/** Judges the newest of `history` (oldest first); `reason` is a sentence for the user. */
export function judgeCollapse(history: readonly StepHealth[], options: CollapseOptions): Verdict {
  const checks = [notFinite, rewardFell, validActionsFell, lengthExploded, gradientExploded, policyRanAway];
  for (const check of checks) {
    const reason = check(history, options);
    if (reason !== undefined) return { type: "stop", reason };
  }
  return { type: "ok" };
}

type Check = (history: readonly StepHealth[], options: CollapseOptions) => string | undefined;

const notFinite: Check = (history) => {
  const last = history.at(-1);
  for (const key of [
    "loss",
    "gradientNorm",
    "klDivergence",
    "criticLoss",
    "rewardMean",
    "policyTokens",
  ] as const) {
    const value = last?.[key];
    if (value !== undefined && !Number.isFinite(value)) return `${key} became ${value} in step ${last?.step}`;
  }
  return undefined;
};

const rewardFell: Check = (history, options) => {
  const fall = lastingFall(
    history.map((step) => step.rewardMean),
    { ...options, share: options.rewardFall },
  );
  return fall && `the mean reward fell from ${fall.best} to ${fall.now} and stayed down`;
};

const validActionsFell: Check = (history, options) => {
  const fall = lastingFall(
    history.map((step) => step.validActionRate),
    { ...options, share: options.validActionFall },
  );
  return fall && `the rate of valid actions fell from ${fall.best} to ${fall.now} and stayed down`;
};

const lengthExploded: Check = (history, { window, patience, lengthGrowth }) => {
  const averages = movingAverages(
    history.map((step) => step.policyTokens),
    window,
  );
  const recent = averages.slice(-patience);
  const earlier = averages[Math.max(0, averages.length - patience - 3 * window)];
  if (recent.length < patience || !earlier) return undefined;
  if (!recent.every((value) => value > lengthGrowth * earlier)) return undefined;
  return `the policy's tokens grew from ${round(earlier)} to ${round(recent.at(-1))} for each trajectory`;
};

const gradientExploded: Check = (history, { window, patience, gradientGrowth }) => {
  const norms = history.flatMap((step) => step.gradientNorm ?? []);
  if (norms.length < window + patience) return undefined;
  const usual = median(norms);
  if (usual === 0 || !norms.slice(-patience).every((norm) => norm > gradientGrowth * usual)) return undefined;
  return `the gradient norm stayed above ${gradientGrowth} times its usual ${usual.toPrecision(2)}`;
};

const policyRanAway: Check = (history, { patience, maxKlDivergence }) => {
  const divergences = history.flatMap((step) => step.klDivergence ?? []).slice(-patience);
  if (divergences.length < patience || !divergences.every((value) => value > maxKlDivergence))
    return undefined;
  return `the policy moves more than ${maxKlDivergence} nats per token away from itself in every step`;
};

/**
 * A fall of the moving average below (1 - share) of its best for `patience` steps that is also more than 5
 * standard errors of the difference of two averages; the noise is measured between neighbouring steps, so a
 * trend does not count as noise.
 */
function lastingFall(
  values: readonly number[],
  options: { window: number; patience: number; share: number },
): { best: string; now: string } | undefined {
  const averages = movingAverages(values, options.window);
  const recent = averages.slice(-options.patience);
  const best = Math.max(...averages);
  if (recent.length < options.patience || best <= 0) return undefined;
  const margin = Math.max(options.share * best, 5 * stepDeviation(values) * Math.sqrt(2 / options.window));
  if (!recent.every((average) => average < best - margin)) return undefined;
  return { best: round(best), now: round(recent.at(-1)) };
}

/** Averages of `window` neighbours; one for each full window. */
function movingAverages(values: readonly number[], window: number): number[] {
  return values
    .slice(window - 1)
    .map((_, i) => values.slice(i, i + window).reduce((sum, value) => sum + value, 0) / window);
}

/** Standard deviation of a step around its trend, from the differences of neighbours. */
function stepDeviation(values: readonly number[]): number {
  let squares = 0;
  for (let i = 1; i < values.length; i++) squares += ((values[i] as number) - (values[i - 1] as number)) ** 2;
  return values.length < 2 ? 0 : Math.sqrt(squares / (values.length - 1) / 2);
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] as number;
}

function round(value: number | undefined): string {
  return (value ?? 0).toPrecision(3);
}
