/**
 * Generalised advantage estimation (Schulman et al. 2016, arXiv 1506.02438) over the tokens of one trajectory:
 *   delta_i = r_i + gamma V_i+1 - V_i,    A_i = delta_i + gamma lambda A_i+1,    return_i = A_i + V_i
 * V_i is the critic's value of everything before token i, so that it belongs to the prediction of that token. After
 * the last token the policy sampled the episode is over: V and A are 0 there.
 *
 * What a trajectory retrieved is not the policy's doing. `states` walks through it token by token, as Search-R1's code
 * does; gamma and lambda below 1 then forget the first query by the time the answer comes, the faster the longer the
 * passages are. `skip` goes from the last token of a turn straight to the first of the next one. With gamma =
 * lambda = 1 both give the same advantages, and only what the critic is trained on differs.
 */
import { z } from "zod";
import { assert } from "../errors.ts";

export const gaeOptionsSchema = z.strictObject({
  gamma: z
    .number()
    .gt(0)
    .max(1)
    .default(1)
    .describe("Discount of what comes one token later, 0 to 1; 1 is none, as published."),
  lambda: z
    .number()
    .min(0)
    .max(1)
    .default(1)
    .describe(
      "Between 0 (trust the critic's next value: little noise, its errors) and 1 (trust the outcome alone: no bias).",
    ),
  observations: z
    .enum(["skip", "states"])
    .default("skip")
    .describe(
      "skip: a turn's last token is followed by the next turn's first; states: by the retrieved text token by token, so that gamma and lambda below 1 fade over passages.",
    ),
});

export type GaeOptions = z.infer<typeof gaeOptionsSchema>;

/** What the tokens of a trajectory bring, one entry for each target; all (T). */
export interface TokenEpisode {
  /** Other than 0 where the target is an action: sampled by the policy and trained on. */
  readonly actions: ArrayLike<number>;
  /** Read at actions only. */
  readonly rewards: ArrayLike<number>;
  /** The critic's value of what comes before the target; read at the estimate's states only. */
  readonly values: ArrayLike<number>;
}

/** All (T) and 0 where they are not defined. */
export interface TokenEstimates {
  /** At actions. */
  readonly advantages: Float32Array;
  /** At `states`: what the critic should have said. */
  readonly returns: Float32Array;
  /** 1 at the targets that the recursion went through: the actions, and with `states` all between them. */
  readonly states: Float32Array;
}

/** The advantages and returns of one trajectory; all zeros when it holds no action. */
export function generalizedAdvantages(episode: TokenEpisode, options: GaeOptions): TokenEstimates {
  const { actions, rewards, values } = episode;
  const length = actions.length;
  assert(
    rewards.length === length && values.length === length,
    "actions, rewards and values have one length",
  );
  const result: TokenEstimates = {
    advantages: new Float32Array(length),
    returns: new Float32Array(length),
    states: new Float32Array(length),
  };
  let nextValue = 0;
  let nextAdvantage = 0;
  for (const t of visited(actions, options).reverse()) {
    const isAction = actions[t] !== 0;
    const value = values[t] as number;
    const reward = isAction ? (rewards[t] as number) : 0;
    nextAdvantage = reward + options.gamma * (nextValue + options.lambda * nextAdvantage) - value;
    nextValue = value;
    result.states[t] = 1;
    result.returns[t] = nextAdvantage + value;
    if (isAction) result.advantages[t] = nextAdvantage;
  }
  return result;
}

/** The targets that count as time, in order. */
function visited(actions: ArrayLike<number>, { observations }: GaeOptions): number[] {
  const times = Array.from({ length: actions.length }, (_, t) => t);
  const sampled = times.filter((t) => actions[t] !== 0);
  if (observations === "skip" || sampled.length === 0) return sampled;
  return times.slice(sampled[0], (sampled.at(-1) as number) + 1);
}

/**
 * (T) The reward of each action: the trajectory's `outcome` at the last one, less `penalties` (T) at each. Penalties are
 * what a divergence from the reference costs, already multiplied by its coefficient.
 */
export function tokenRewards(
  actions: ArrayLike<number>,
  outcome: number,
  penalties?: ArrayLike<number>,
): Float64Array {
  assert(Number.isFinite(outcome), `a reward is finite, not ${outcome}`);
  const rewards = new Float64Array(actions.length);
  let last: number | undefined;
  for (let t = 0; t < actions.length; t++) {
    if (actions[t] === 0) continue;
    last = t;
    if (penalties) rewards[t] = -(penalties[t] as number);
  }
  if (last !== undefined) rewards[last] = (rewards[last] as number) + outcome;
  return rewards;
}

const epsilon = 1e-8;

/**
 * `rows` with mean 0 and variance 1 over the entries where `actions` is not 0, of all rows together; 0 elsewhere. As in
 * verl, on which Search-R1 builds: (x - mean) / sqrt(variance + 1e-8) with the unbiased variance. A single entry, or
 * equal ones, give zeros.
 */
export function whiten(rows: readonly Float32Array[], actions: readonly ArrayLike<number>[]): Float32Array[] {
  const isAction = (row: number, t: number): boolean => actions[row]?.[t] !== 0;
  const entries = rows.flatMap((row, index) => [...row].filter((_, t) => isAction(index, t)));
  const mean = entries.reduce((sum, value) => sum + value, 0) / Math.max(1, entries.length);
  const squares = entries.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  const scale = 1 / Math.sqrt(squares / Math.max(1, entries.length - 1) + epsilon);
  return rows.map((row, index) => row.map((value, t) => (isAction(index, t) ? (value - mean) * scale : 0)));
}
