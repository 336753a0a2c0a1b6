/**
 * The evaluations of a training: before, between and after its steps on held-out questions, and on those by which a
 * stage with `until` chooses its weights. Each is stored with its trajectories before its numbers enter the step's row.
 */
import type { Stage, UntilOptions } from "../config/stage-options.ts";
import { evaluate } from "../evaluation/evaluate.ts";
import type { EvaluationResult } from "../evaluation/result.ts";
import type { MetricRow, RunPosition } from "../reporting/metric-row.ts";
import { evaluationMetrics, isEvaluationDue } from "./evaluation-metrics.ts";
import { freshPolicy } from "./fresh-policy.ts";
import { episodesAtOnce } from "./open-engine.ts";
import { evenly } from "./setup.ts";
import { isValidationDue, untilOf, validationMetrics } from "./stage-switch.ts";
import { storeEvaluation } from "./store-trajectories.ts";
import type { TrainingCheckpoints } from "./training-checkpoints.ts";
import type { TrainingInput, TrainingParts } from "./training-input.ts";

export class TrainingEvaluation {
  readonly #input: TrainingInput;
  readonly #parts: TrainingParts;
  readonly #checkpoints: TrainingCheckpoints;

  constructor(input: TrainingInput, parts: TrainingParts, checkpoints: TrainingCheckpoints) {
    this.#input = input;
    this.#parts = parts;
    this.#checkpoints = checkpoints;
  }

  /** Adds the evaluations that are due after a step to its row. One that was interrupted is made up for on resuming. */
  async afterStep(stage: Stage, row: MetricRow): Promise<MetricRow> {
    let complete = row;
    if (isEvaluationDue(this.#input.recipe, stage, row)) complete = await this.#measure(complete);
    const until = untilOf(stage);
    if (until && isValidationDue(stage, row)) complete = await this.#measure(complete, until);
    return complete;
  }

  /** Evaluates after a step, on held-out questions or on those that `until` chooses by. */
  async #measure(row: MetricRow, until?: UntilOptions): Promise<MetricRow> {
    const { now } = this.#input;
    const { stage, step } = row;
    const started = now();
    const name = until === undefined ? `${stage}-${step}` : `${stage}-validation-${step}`;
    const result = await this.run(name, { stage, step }, until?.n);
    const seconds = (row["time/evaluation"] ?? 0) + (now() - started) / 1000;
    const metrics = until === undefined ? evaluationMetrics(result) : validationMetrics(result, until);
    const complete: MetricRow = { ...row, ...metrics, "time/evaluation": seconds };
    await this.#parts.run.replaceLastMetrics(complete);
    return complete;
  }

  /** Evaluates the weights of now on the held-out questions, or on at most `validation` of the validation questions. */
  async run(name: string, at: RunPosition, validation?: number): Promise<EvaluationResult> {
    const { recipe, reporter, signal, now, codeVersion } = this.#input;
    const { run, engine, data, assessor } = this.#parts;
    const asked =
      validation === undefined
        ? { questions: data.evaluation, split: data.split }
        : { questions: evenly(data.validation, validation), split: "validation" };
    // A retriever that changes with the training is asked as it was at its start, or scores would mix both.
    data.onStep?.(0);
    assessor?.forget();
    const work = evaluate({
      policy: freshPolicy(engine),
      retriever: data.retriever,
      environment: recipe.environment,
      planner: assessor,
      ranker: this.#parts.ranker?.sampling(recipe.evaluation.sampling),
      ...asked,
      sampling: recipe.evaluation.sampling,
      tokenizer: engine.tokenizer,
      contextLength: engine.contextLength,
      concurrency: episodesAtOnce(engine),
      seed: recipe.seed,
      codeVersion,
      now,
      ...(signal && { signal }),
      onProgress: (progress) => reporter.evaluationProgress({ name, ...progress }),
    });
    const { result, trajectories } = await this.#checkpoints.savedWhenAborted(() => work, signal);
    await storeEvaluation(run, { name, at, result, trajectories, tokenizer: engine.tokenizer });
    reporter.evaluationDone({ name, result });
    return result;
  }
}
