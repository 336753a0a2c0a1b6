/** What a training is given, what it works on, and what it returns. */
import type { Recipe } from "../config/recipe.ts";
import type { Engine } from "../engine/engine.ts";
import type { EvaluationResult } from "../evaluation/result.ts";
import type { RunFolder } from "../reporting/run-folder.ts";
import type { Assessor } from "./assessor.ts";
import type { OpenedRanker } from "./opened-ranker.ts";
import type { TrainingReporter } from "./reporter.ts";
import type { TrainingData } from "./setup.ts";

export interface TrainingInput {
  readonly recipe: Recipe;
  /** The run folder: made by this call, or one to resume. */
  readonly folder: string;
  readonly resume: boolean;
  readonly reporter: TrainingReporter;
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds of a clock that only rises. */
  readonly now: () => number;
  /** Version of Forager, for the contract. */
  readonly codeVersion: string;
}

export interface TrainingSummary {
  readonly folder: string;
  /** On held-out questions, before the first reinforcement stage (or the first stage) and at the end. */
  readonly before: EvaluationResult;
  readonly after: EvaluationResult;
}

/** What a training works on. */
export interface TrainingParts {
  readonly run: RunFolder;
  readonly data: TrainingData;
  readonly engine: Engine;
  /** Mode planner: who answers and judges. */
  readonly assessor?: Assessor | undefined;
  /** Who chooses the passages of each search. */
  readonly ranker?: OpenedRanker | undefined;
}
