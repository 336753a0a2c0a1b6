/**
 * Where a training stands: steps are counted over all stages, and a checkpoint is named by that count. A stage with
 * `until` has one count more than steps: it stands for the choice of its best weights, so that a checkpoint says whether
 * they were chosen yet. A stage that ends early leaves the counts between out.
 */
import type { Recipe } from "../config/recipe.ts";
import type { Stage } from "../config/stage-options.ts";
import { assert } from "../errors.ts";
import type { RunPosition } from "../reporting/metric-row.ts";

export interface Position {
  /** Index of the stage whose steps are next; the number of stages when all is done. */
  readonly stage: number;
  /** Steps of that stage that are done. */
  readonly step: number;
}

type Stages = Pick<Recipe, "stages">;

/** Counts that a stage takes. */
export function stageLength(stage: Stage): number {
  return stage.steps + (stage.type === "reinforcement" && stage.until ? 1 : 0);
}

/** Counts of all stages. */
export function totalSteps({ stages }: Stages): number {
  return stages.reduce((sum, stage) => sum + stageLength(stage), 0);
}

/** The place after `count` steps of all stages together. */
export function positionAfter({ stages }: Stages, count: number): Position {
  let rest = count;
  for (const [index, stage] of stages.entries()) {
    const length = stageLength(stage);
    if (rest < length) return { stage: index, step: rest };
    rest -= length;
  }
  assert(rest === 0, `${count} steps are more than the recipe has`);
  return { stage: stages.length, step: 0 };
}

/** The count at a place. */
export function stepsBefore({ stages }: Stages, { stage, step }: Position): number {
  return totalSteps({ stages: stages.slice(0, stage) }) + step;
}

/** The stage before which the first evaluation is made: the first reinforcement stage, else the first of all. */
export function evaluatedStage({ stages }: Stages): number {
  return Math.max(
    0,
    stages.findIndex(({ type }) => type === "reinforcement"),
  );
}

/** Where count `done` stands: the last step that was taken; before the first one, step 0 of the first stage. */
export function lastStep(recipe: Stages, done: number): RunPosition {
  const { stage, step } = positionAfter(recipe, Math.max(0, done - 1));
  const { name, steps } = recipe.stages[stage] as Stage;
  return { stage: name, step: done === 0 ? 0 : Math.min(step + 1, steps) };
}
