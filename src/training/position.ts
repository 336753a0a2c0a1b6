/** Where a training stands: steps are counted over all stages, and a checkpoint is named by that count. */
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

/** Steps of all stages. */
export function totalSteps({ stages }: Stages): number {
  return stages.reduce((sum, { steps }) => sum + steps, 0);
}

/** The place after `count` steps of all stages together. */
export function positionAfter({ stages }: Stages, count: number): Position {
  let rest = count;
  for (const [stage, { steps }] of stages.entries()) {
    if (rest < steps) return { stage, step: rest };
    rest -= steps;
  }
  assert(rest === 0, `${count} steps are more than the recipe has`);
  return { stage: stages.length, step: 0 };
}

/** Steps of all stages that are done at a place. */
export function stepsBefore({ stages }: Stages, { stage, step }: Position): number {
  return stages.slice(0, stage).reduce((sum, { steps }) => sum + steps, 0) + step;
}

/** The stage before which the first evaluation is made: the first reinforcement stage, else the first of all. */
export function evaluatedStage({ stages }: Stages): number {
  return Math.max(
    0,
    stages.findIndex(({ type }) => type === "reinforcement"),
  );
}

/** Where the step numbered `done` over all stages stands; before the first step, step 0 of the first stage. */
export function lastStep(recipe: Stages, done: number): RunPosition {
  const { stage, step } = positionAfter(recipe, Math.max(0, done - 1));
  return { stage: (recipe.stages[stage] as Stage).name, step: done === 0 ? 0 : step + 1 };
}
