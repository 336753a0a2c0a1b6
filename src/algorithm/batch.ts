/**
 * From trajectories to data an engine can train on. The loss mask is carried by the source of each segment:
 * a token is trained on because the policy sampled it, never because of what it looks like (Search-R1 §3.1
 * masks retrieved tokens; its code finds them again by comparing ids with the padding id).
 * The sampled ids are used as they are; text is not tokenised here.
 */
import { assert, PolicyError } from "../errors.ts";
import type { Segment, Trajectory } from "../rollout/trajectory.ts";
import { lossMask, trajectoryTokens } from "../rollout/trajectory-view.ts";
import type { Datum } from "./datum.ts";

/**
 * The datum of one trajectory for a policy loss: weight 1 and the trajectory's advantage where the policy
 * sampled the target, exactly 0 on prompt and environment tokens. T is the number of tokens less one.
 * Throws `PolicyError` when the policy recorded no token ids or log-probabilities.
 */
export function policyDatum(trajectory: Trajectory, advantage: number): Datum {
  const weights = Float32Array.from(lossMask(trajectory).subarray(1));
  const advantages = weights.map((weight) => (weight === 0 ? 0 : advantage));
  return { ...shift(trajectory), weights, logprobs: sampledLogprobs(trajectory), advantages };
}

/**
 * The ablation of Search-R1 §5: `datum` with what the environment said trained on as if the policy had said it.
 * Nobody sampled those tokens, so their old log-probability is taken from `logprobs` (T), the engine's under
 * the weights that sampled. The prompt stays untrained.
 */
export function trainOnObservations(datum: Datum, trajectory: Trajectory, logprobs: Float32Array): Datum {
  const sources = targetSources(trajectory);
  assert(logprobs.length === sources.length, `${logprobs.length} logprobs for ${sources.length} targets`);
  assert(datum.logprobs && datum.advantages, "the datum comes from policyDatum");
  const isObservation = (t: number): boolean => sources[t] === "environment";
  const first = sources.indexOf("policy");
  const advantage = first === -1 ? 0 : (datum.advantages[first] as number);
  return {
    ...datum,
    weights: datum.weights.map((weight, t) => (isObservation(t) ? 1 : weight)),
    advantages: datum.advantages.map((value, t) => (isObservation(t) ? advantage : value)),
    logprobs: datum.logprobs.map((value, t) => (isObservation(t) ? (logprobs[t] as number) : value)),
  };
}

export interface DemonstrationOptions {
  /** Weight in [0, 1] of tokens the policy did not write; above 0 a model made from nothing learns to copy sooner. */
  readonly contextTokenWeight: number;
}

/** The datum of a demonstration for the cross-entropy loss: weight 1 on the policy's tokens, `contextTokenWeight` on the rest. */
export function demonstrationDatum(trajectory: Trajectory, options: DemonstrationOptions): Datum {
  const mask = lossMask(trajectory).subarray(1);
  const weights = Float32Array.from(mask, (isPolicy) => (isPolicy ? 1 : options.contextTokenWeight));
  return { ...shift(trajectory), weights };
}

type Source = Segment["source"];

/** Inputs are all tokens but the last, targets all but the first. */
function shift(trajectory: Trajectory): { inputs: Int32Array; targets: Int32Array } {
  for (const { source, text, tokens } of trajectory.segments)
    if (tokens.length === 0 && text !== "")
      throw new PolicyError(
        `a ${source} segment of ${trajectory.group} has text but no token ids; training needs a policy with a tokenizer`,
      );
  const tokens = trajectoryTokens(trajectory);
  return { inputs: tokens.slice(0, -1), targets: tokens.slice(1) };
}

/** (T) Who wrote each target. */
function targetSources({ segments }: Trajectory): Source[] {
  return segments.flatMap(({ source, tokens }) => tokens.map(() => source)).slice(1);
}

/** (T) The log-probability of each target when the policy sampled it, 0 where it did not. */
function sampledLogprobs(trajectory: Trajectory): Float32Array {
  const values: number[] = [];
  for (const { source, tokens, logprobs } of trajectory.segments) {
    if (source !== "policy") {
      for (const _ of tokens) values.push(0);
      continue;
    }
    if (!logprobs)
      throw new PolicyError(
        `a turn of ${trajectory.group} has no log-probabilities; training needs a policy that returns them`,
      );
    assert(
      logprobs.length === tokens.length,
      `${logprobs.length} logprobs for ${tokens.length} sampled tokens`,
    );
    values.push(...logprobs);
  }
  return Float32Array.from(values.slice(1));
}
