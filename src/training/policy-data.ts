/** The data of a policy update, complete but for what the algorithm estimates: mask, sampled and reference log-probabilities. */
import { policyDatum, trainOnObservations } from "../algorithm/batch.ts";
import type { Datum } from "../algorithm/datum.ts";
import type { GrpoOptions } from "../algorithm/options.ts";
import type { Trajectory } from "../rollout/trajectory.ts";
import type { Lesson } from "./lesson.ts";

/** One datum for each trajectory, in order. Every trained token has the trajectory's advantage. */
export async function policyData(
  { engine, reference }: Lesson,
  { maskRetrieved }: Pick<GrpoOptions, "maskRetrieved">,
  members: readonly { readonly trajectory: Trajectory; readonly advantage: number }[],
): Promise<Datum[]> {
  let data = members.map(({ trajectory, advantage }) => policyDatum(trajectory, advantage));
  if (!maskRetrieved) {
    const logprobs = await engine.logprobs(data);
    data = members.map(({ trajectory }, index) =>
      trainOnObservations(data[index] as Datum, trajectory, logprobs[index] as Float32Array),
    );
  }
  if (!reference) return data;
  const logprobs = await reference.logprobs(data);
  return data.map((datum, index) => ({ ...datum, referenceLogprobs: logprobs[index] as Float32Array }));
}
