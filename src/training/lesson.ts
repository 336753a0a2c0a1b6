/** What every step of a training works with. */
import type { Critic, Engine, ReferencePolicy } from "../engine/engine.ts";
import type { EnvironmentOptions } from "../environment/environment-options.ts";
import type { PlannerRewardOptions } from "../reward/planner-reward.ts";
import type { Assessor } from "./assessor.ts";
import type { OpenedRanker } from "./opened-ranker.ts";
import type { TrainingData } from "./setup.ts";

export interface RankerLesson {
  readonly opened: OpenedRanker;
  readonly reference?: ReferencePolicy | undefined;
}

export interface Lesson {
  readonly engine: Engine;
  readonly data: TrainingData;
  readonly environment: EnvironmentOptions;
  readonly seed: number;
  /** Milliseconds of a clock that only rises. */
  readonly now: () => number;
  /** The frozen policy of the stage's start, where its loss has a KL term. */
  readonly reference?: ReferencePolicy | undefined;
  /** Steps of earlier stages from which the learning rate's schedule goes on. */
  readonly stepsCarried?: number | undefined;
  /** What states are worth, in a stage whose algorithm has a critic. */
  readonly critic?: Critic | undefined;
  /** Mode planner: who answers and judges, and what the reward is made of. */
  readonly assessor?: Assessor | undefined;
  readonly planner?: PlannerRewardOptions | undefined;
  /** Who chooses the passages of each search, and the frozen policy of its stage's start. */
  readonly ranker?: RankerLesson | undefined;
  readonly signal?: AbortSignal | undefined;
}
