/**
 * From the trajectories of one step to the data of PPO (Schulman et al. 2017) with a critic: each token of the policy
 * gets its own advantage, estimated from the critic's values and whitened over the step, and each state the return
 * that the critic learns. Tokens that carry no weight are no actions: they have no advantage, exactly no policy
 * gradient and no say in the whitening.
 */
import { assert } from "../errors.ts";
import type { Datum, ValueDatum } from "./datum.ts";
import { type GaeOptions, generalizedAdvantages, tokenRewards, whiten } from "./gae.ts";
import { klEstimate } from "./kl.ts";
import type { KlTerm } from "./loss.ts";

/** One trajectory with what is known of it before the updates. */
export interface ValuedDatum {
  /** As `policyDatum` makes it; its advantages are not read. With a KL penalty it has `referenceLogprobs`. */
  readonly datum: Datum;
  /** Of the whole trajectory. */
  readonly reward: number;
  /** (T) The critic's values. */
  readonly values: Float32Array;
}

export interface EstimateOptions {
  readonly gae: GaeOptions;
  /** Taken from the reward of each action, times its coefficient. */
  readonly kl?: KlTerm | undefined;
  /** Whether advantages are whitened over all actions of the step. */
  readonly whiten: boolean;
}

export interface PpoData {
  /** In order, with the advantages of their tokens. */
  readonly policy: readonly Datum[];
  /** In order; weight 1 at the states that the estimate went through. */
  readonly critic: readonly ValueDatum[];
}

/** Advantages and returns of a step's trajectories. */
export function ppoData(members: readonly ValuedDatum[], options: EstimateOptions): PpoData {
  const estimates = members.map(({ datum, reward, values }) => {
    const actions = datum.weights;
    const rewards = tokenRewards(actions, reward, options.kl && penalties(datum, options.kl));
    return generalizedAdvantages({ actions, rewards, values }, options.gae);
  });
  const raw = estimates.map(({ advantages }) => advantages);
  const actions = members.map(({ datum }) => datum.weights);
  const advantages = options.whiten ? whiten(raw, actions) : raw;
  return {
    policy: members.map(({ datum }, i) => ({ ...datum, advantages: advantages[i] as Float32Array })),
    critic: estimates.map(({ states, returns }, i) => {
      const { datum, values } = members[i] as ValuedDatum;
      return { inputs: datum.inputs, weights: states, values, returns };
    }),
  };
}

/** (T) What each action's divergence from the reference costs, by the log-probabilities at sampling. */
function penalties({ weights, logprobs, referenceLogprobs }: Datum, kl: KlTerm): Float64Array {
  assert(logprobs && referenceLogprobs, "a KL penalty needs the sampled and the reference's logprobs");
  return Float64Array.from(weights, (weight, t) =>
    weight === 0
      ? 0
      : kl.coefficient * klEstimate(kl.estimator, logprobs[t] as number, referenceLogprobs[t] as number),
  );
}

/** Mean advantage of a trajectory's actions; 0 without any. */
export function meanAdvantage({ weights, advantages }: Datum): number {
  let sum = 0;
  let count = 0;
  for (const [t, weight] of weights.entries()) {
    if (weight === 0) continue;
    sum += advantages?.[t] ?? 0;
    count++;
  }
  return count === 0 ? 0 : sum / count;
}
