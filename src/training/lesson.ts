/** What every step of a training works with. */
import type { Critic, Engine, ReferencePolicy } from "../engine/engine.ts";
import type { EnvironmentOptions } from "../environment/environment-options.ts";
import type { TrainingData } from "./setup.ts";

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
  readonly signal?: AbortSignal | undefined;
}
