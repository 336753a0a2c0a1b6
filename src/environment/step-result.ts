/** What an environment says to one turn of the policy. */
import type { StopReason } from "./stop-reason.ts";
import type { Turn } from "./turn.ts";

export interface StepResult {
  /** What the policy reads next; where a planner's episode is over, what its last search found, if it searched. */
  readonly observation?: string;
  readonly isDone: boolean;
  /** Why the episode is over. */
  readonly stopReason?: Extract<StopReason, "answer" | "turnLimit">;
  /** The generator answers now: the planner has `asked` for it, or it is `forced` after the last round. */
  readonly handOver?: "asked" | "forced";
  readonly turn: Turn;
  /** True when the next turn can only answer. */
  readonly isFinalTurnNext: boolean;
}
