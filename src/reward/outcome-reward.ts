/**
 * The reward of CoSearch's agent (arXiv 2604.17555, Eq. 4): token F1 of the answer, or a penalty where the turns are
 * ill-formed. A trajectory that was cut off before its first turn ended is ill-formed too; the released code gives it 0.
 */
import { z } from "zod";
import type { Segment, Trajectory } from "../rollout/trajectory.ts";
import { invalidTurnCount } from "../rollout/trajectory-view.ts";
import { hasValidFormat } from "./format-reward.ts";
import { tokenF1 } from "./token-f1.ts";

/** Which turns count as well-formed. */
export const turnFormatSchema = z.enum(["reasoned", "actions"]).default("reasoned");
export type TurnFormat = z.output<typeof turnFormatSchema>;

export const turnFormatDoc =
  "When turns are well-formed: `reasoned` each is a thought and one action with nothing else around; `actions` each is an action that counts. The last must answer.";

export const penaltyDoc = "Taken off where the format is broken, 0 to 1; 0.2 in CoSearch.";

/** Whether all turns are well-formed and the last one answers; a thought of white space alone is none. */
export function isWellFormed(trajectory: Trajectory, format: TurnFormat): boolean {
  if (format === "reasoned") return hasValidFormat(trajectory) && !trajectory.segments.some(hasBlankThought);
  return trajectory.stopReason === "answer" && invalidTurnCount(trajectory) === 0;
}

function hasBlankThought({ source, text }: Segment): boolean {
  return source === "policy" && /<(think|reason)>\s*<\/\1>/.test(text);
}

/** In [-penalty, 1]. */
export function formatF1(
  trajectory: Trajectory,
  { format, penalty }: { readonly format: TurnFormat; readonly penalty: number },
): { readonly value: number; readonly f1: number; readonly isWellFormed: boolean } {
  const f1 = tokenF1(trajectory.answer, trajectory.question.goldAnswers);
  const isSound = isWellFormed(trajectory, format);
  return { value: isSound ? f1 : -penalty, f1, isWellFormed: isSound };
}
