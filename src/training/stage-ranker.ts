/** The ranker of a stage. */
import type { Stage } from "../config/stage-options.ts";
import type { RankerLesson } from "./lesson.ts";
import type { OpenedRanker } from "./opened-ranker.ts";
import { openReference, type ReferenceParts } from "./stage-reference.ts";
import { carryOf } from "./stage-switch.ts";

/**
 * The ranker of a stage that starts or goes on: with a fresh optimiser, unless the stage carries it over, and the frozen
 * policy of its own KL term.
 */
export async function startRanker(
  opened: OpenedRanker | undefined,
  parts: Omit<ReferenceParts, "engine" | "isRanker">,
): Promise<RankerLesson | undefined> {
  if (opened === undefined) return undefined;
  const { options, engine, isOwn } = opened;
  if (!isOwn || engine === undefined || options.type !== "generative") return { opened };
  const { stages, index, isStart } = parts;
  const reference = options.trainable ? await openReference({ ...parts, engine, isRanker: true }) : undefined;
  const stage = stages[index] as Stage;
  if (isStart && index > 0 && !carryOf(stage).includes("optimizer")) await engine.resetOptimizer();
  return { opened, reference };
}
