/**
 * Many episodes at once. Each is its own task that asks the policy for one completion at a time; the policy gathers
 * what is asked at once into batches, so episodes that wait for a retriever hold up nobody. An episode that the world
 * failed can be played again, from its beginning and with its seed: what it would have been does not depend on the failure.
 */
import { isInfrastructureFailure } from "../environment/stop-reason.ts";
import type { Limiter } from "../shared/concurrency.ts";
import { type RolloutRequest, type RolloutSetting, runRollout } from "./rollout.ts";
import { takeTurns } from "./take-turns.ts";
import type { Trajectory } from "./trajectory.ts";
import { addUsage, noUsage } from "./usage.ts";

export interface RunRolloutsOptions {
  /** Most episodes at once; default: all. */
  readonly concurrency?: number | undefined;
  /** Shared by several calls: most episodes of all of them at once, those of the earlier calls first. */
  readonly limiter?: Limiter | undefined;
  /** How often an episode that the world failed is played again before its failure is its result; default 0. */
  readonly retries?: number | undefined;
  /** Called for each failure after which the episode is played again. */
  readonly onRetry?: ((failed: Trajectory, index: number) => void) | undefined;
  /** Called once for each trajectory when it ends, in order of ending; `index` is that of its request. */
  readonly onTrajectory?: ((trajectory: Trajectory, index: number) => void) | undefined;
  /** Episodes that have not ended by then end as `aborted`. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Plays all requests; results are in their order and, with equal seeds, do not depend on `concurrency`. Failures of
 * the world are marked trajectories; a defect of the program is thrown after the other episodes were stopped.
 */
export async function runRollouts(
  requests: readonly RolloutRequest[],
  setting: RolloutSetting,
  options: RunRolloutsOptions = {},
): Promise<Trajectory[]> {
  const { concurrency = requests.length, limiter, onTrajectory, signal } = options;
  const shared = inTurns(setting);
  const defect = new AbortController();
  const anySignal = signal === undefined ? defect.signal : AbortSignal.any([signal, defect.signal]);
  const results = new Array<Trajectory>(requests.length);
  let next = 0;
  const work = async (): Promise<void> => {
    for (let index = next++; index < requests.length; index = next++) {
      const episode = { ...shared, ...(requests[index] as RolloutRequest), signal: anySignal };
      const trajectory = await playUntilSound(episode, { ...options, index });
      results[index] = trajectory;
      onTrajectory?.(trajectory, index);
    }
  };
  // A worker keeps its place until nothing is left to play, so that no later call comes in between.
  const placed = limiter === undefined ? work : () => limiter.run(work, neverAborts);
  const workers = Array.from({ length: Math.min(concurrency, requests.length) }, () =>
    placed().catch((error: unknown) => {
      defect.abort(error);
      throw error;
    }),
  );
  const outcomes = await Promise.allSettled(workers);
  for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
  return results;
}

/** Whoever waits for a place gets one soon after an abort, since the episodes before it end then. */
const neverAborts = new AbortController().signal;

/** Plays an episode until the world lets it end, or `retries` are used up; its usage is that of all attempts. */
async function playUntilSound(
  episode: Parameters<typeof runRollout>[0],
  { retries = 0, onRetry, index }: RunRolloutsOptions & { readonly index: number },
): Promise<Trajectory> {
  let earlier = noUsage;
  for (let attempt = 0; ; attempt++) {
    const trajectory = await runRollout(episode);
    const isFailure = isInfrastructureFailure(trajectory.stopReason);
    if (!isFailure || attempt >= retries || episode.signal?.aborted)
      return attempt === 0
        ? trajectory
        : { ...trajectory, usage: addUsage(earlier, trajectory.usage ?? noUsage) };
    earlier = addUsage(earlier, trajectory.usage ?? noUsage);
    onRetry?.(trajectory, index);
  }
}

/** Agent and ranker that compute in this process one at a time; others, such as servers, may be asked at once. */
function inTurns(setting: RolloutSetting): RolloutSetting {
  const { policy, ranker } = setting;
  if (ranker?.type !== "generative" || ranker.policy === policy) return setting;
  // What keeps something of earlier contexts is an engine.
  if (policy.forget === undefined || ranker.policy.forget === undefined) return setting;
  const [first, second] = takeTurns(policy, ranker.policy);
  return { ...setting, policy: first, ranker: { ...ranker, policy: second } };
}
