/** Why an episode ended. Every trajectory has exactly one. */
export type StopReason =
  /** The policy answered. */
  | "answer"
  /** The last turn (no search allowed any more) brought no answer. */
  | "turnLimit"
  /** The next turn or observation would not fit into the context. */
  | "contextLimit"
  /** The retriever failed; the trajectory is never trained on and never scored silently. */
  | "retrieverFailure"
  /** The policy could not be asked; treated like a retriever failure. */
  | "policyFailure"
  /** The run was interrupted. */
  | "aborted";

export const stopReasons: readonly StopReason[] = [
  "answer",
  "turnLimit",
  "contextLimit",
  "retrieverFailure",
  "policyFailure",
  "aborted",
];

/** True when the world failed, not the policy: such a trajectory carries no lesson and no score. */
export function isInfrastructureFailure(reason: StopReason): boolean {
  return reason === "retrieverFailure" || reason === "policyFailure" || reason === "aborted";
}
