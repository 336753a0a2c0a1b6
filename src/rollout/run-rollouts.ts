/**
 * Many episodes at once. Each is its own task that asks the policy for one completion at a time; the policy gathers
 * what is asked at once into batches, so episodes that wait for a retriever hold up nobody.
 */
import { type RolloutRequest, type RolloutSetting, runRollout } from "./rollout.ts";
import { takeTurns } from "./take-turns.ts";
import type { Trajectory } from "./trajectory.ts";

export interface RunRolloutsOptions {
  /** Most episodes at once; default: all. */
  readonly concurrency?: number | undefined;
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
  { concurrency = requests.length, onTrajectory, signal }: RunRolloutsOptions = {},
): Promise<Trajectory[]> {
  const shared = inTurns(setting);
  const defect = new AbortController();
  const anySignal = signal === undefined ? defect.signal : AbortSignal.any([signal, defect.signal]);
  const results = new Array<Trajectory>(requests.length);
  let next = 0;
  const work = async (): Promise<void> => {
    for (let index = next++; index < requests.length; index = next++) {
      const request = requests[index] as RolloutRequest;
      const trajectory = await runRollout({ ...shared, ...request, signal: anySignal });
      results[index] = trajectory;
      onTrajectory?.(trajectory, index);
    }
  };
  const workers = Array.from({ length: Math.min(concurrency, requests.length) }, () =>
    work().catch((error: unknown) => {
      defect.abort(error);
      throw error;
    }),
  );
  const outcomes = await Promise.allSettled(workers);
  for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
  return results;
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
