/**
 * The one training loop: the stages of a recipe one after the other, with evaluations before, between and after,
 * a checkpoint after each step that asks for one, and everything written into the run folder as it happens.
 *
 * Chance is derived from the seed and the step alone, so that a resumed run takes the same next batch and gets
 * the same numbers. An interruption discards the step under way and keeps the state before it.
 */
import type { Recipe } from "../config/recipe.ts";
import type { Stage, UntilOptions } from "../config/stage-options.ts";
import type { Engine } from "../engine/engine.ts";
import { InterruptedError, TrainingError } from "../errors.ts";
import { evaluate } from "../evaluation/evaluate.ts";
import type { EvaluationResult } from "../evaluation/result.ts";
import type { MetricRow, RunPosition } from "../reporting/metric-row.ts";
import { writeReport } from "../reporting/report/write-report.ts";
import type { RunFolder } from "../reporting/run-folder.ts";
import type { Assessor } from "./assessor.ts";
import { evaluationMetrics, isEvaluationDue } from "./evaluation-metrics.ts";
import { freshPolicy } from "./fresh-policy.ts";
import { bestStep, judgeHealth } from "./health.ts";
import type { Lesson } from "./lesson.ts";
import { loadRanker, type OpenedRanker, saveRanker } from "./opened-ranker.ts";
import { evaluatedStage, lastStep, stageLength, stepsBefore, totalSteps } from "./position.ts";
import { reinforcementStep } from "./reinforcement-step.ts";
import type { TrainingReporter } from "./reporter.ts";
import { evenly, type TrainingData } from "./setup.ts";
import { criticFolder, openCritic } from "./stage-critic.ts";
import { startRanker } from "./stage-ranker.ts";
import { openReference } from "./stage-reference.ts";
import {
  carryOf,
  isValidationDue,
  judgeValidation,
  stepsCarried,
  stepsTaken,
  untilOf,
  validationMetrics,
} from "./stage-switch.ts";
import { storeEvaluation, storeSample } from "./store-trajectories.ts";
import { supervisedStep } from "./supervised-step.ts";

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

/** A training under way: where it stands, and what it has saved. */
export class Training {
  readonly #input: TrainingInput;
  readonly #parts: TrainingParts;
  /** Steps of all stages that are done, and the count that the newest checkpoint holds. */
  #done = 0;
  #saved: number | undefined;
  /** The counts after which the weights were at their best, by reward and on validation; their checkpoints are kept. */
  #best: number[] = [];
  /** Of the stage under way: its critic, its frozen policy, and the steps from which its schedule goes on. */
  #stage: Pick<Lesson, "critic" | "reference" | "stepsCarried" | "ranker"> = {};

  constructor(input: TrainingInput, parts: TrainingParts) {
    this.#input = input;
    this.#parts = parts;
  }

  async finish(): Promise<TrainingSummary> {
    const { recipe, folder } = this.#input;
    const { run } = this.#parts;
    try {
      await this.#restore();
      for (const [index, stage] of recipe.stages.entries()) await this.#runStage(stage, index);
      const last = recipe.stages.at(-1) as Stage;
      const step = stepsTaken(last, await run.readMetrics());
      const after = await this.#evaluate("after", { stage: last.name, step });
      const before = (await run.readEvaluations()).find(({ name }) => name === "before");
      await writeReport(run);
      return { folder, before: before?.result ?? after, after };
    } catch (error) {
      // A report that fails as well, on a full disk, must not hide what failed first.
      await writeReport(run).catch(() => undefined);
      throw error;
    }
  }

  /** Takes up the newest checkpoint and drops what was written after it. */
  async #restore(): Promise<void> {
    const { run, engine } = this.#parts;
    const { recipe, reporter } = this.#input;
    const checkpoint = await run.latestCheckpoint();
    if (checkpoint) {
      await engine.load(checkpoint.path);
      await loadRanker(this.#parts.ranker, checkpoint.path);
      this.#done = checkpoint.step;
      this.#saved = checkpoint.step;
      reporter.message(`going on after step ${this.#done} of ${totalSteps(recipe)}`);
    }
    await run.truncateAfter(lastStep(recipe, this.#done));
    if (!checkpoint) await this.#save();
  }

  async #runStage(stage: Stage, index: number): Promise<void> {
    const { recipe } = this.#input;
    const { run, engine } = this.#parts;
    const start = stepsBefore(recipe, { stage: index, step: 0 });
    if (this.#done >= start + stageLength(stage)) return;
    const isStart = this.#done === start;
    if (isStart && index === evaluatedStage(recipe))
      await this.#evaluate("before", { stage: stage.name, step: 0 });
    const { stages } = recipe;
    const reference = await openReference({ run, engine, stages, index, isStart, done: this.#done });
    const ranker = await startRanker(this.#parts.ranker, { run, stages, index, isStart, done: this.#done });
    if (isStart && index > 0 && !carryOf(stage).includes("optimizer")) await engine.resetOptimizer();
    const rows = await run.readMetrics();
    const critic = await openCritic(engine, stage, isStart ? undefined : run.checkpointFolder(this.#done));
    this.#stage = { critic, reference, ranker, stepsCarried: stepsCarried(stages, index, rows) };
    try {
      const history = await this.#runSteps(stage, { start, rows });
      await this.#chooseWeights(stage, { start, history });
    } finally {
      await critic?.close();
      this.#stage = {};
    }
  }

  /** The steps that are left of a stage; returns the rows of all its steps. */
  async #runSteps(
    stage: Stage,
    { start, rows }: { readonly start: number; readonly rows: readonly MetricRow[] },
  ): Promise<readonly MetricRow[]> {
    const history = rows.filter((row) => row.stage === stage.name);
    this.#noteBest(stage, start, history);
    const { name, type, steps } = stage;
    this.#input.reporter.stageStarted({ name, type, steps, done: Math.min(steps, this.#done - start) });
    const last = history.at(-1);
    if (last !== undefined) history.splice(-1, 1, await this.#evaluateStep(stage, last));
    const until = untilOf(stage);
    const isOver = (): boolean => until !== undefined && judgeValidation(history, until).isOver;
    while (this.#done < start + stage.steps && !isOver()) {
      const row = await this.#step(stage, this.#done - start);
      await this.#requireHealth(stage, [...history, row]);
      this.#done++;
      history.push(row);
      this.#noteBest(stage, start, history);
      history.splice(-1, 1, await this.#afterStep(stage, { start, history }));
    }
    return history;
  }

  /** Remembers which checkpoints must stay. */
  #noteBest(stage: Stage, start: number, history: readonly MetricRow[]): void {
    const until = untilOf(stage);
    const best = until && judgeValidation(history, until).bestStep;
    this.#best = [start + bestStep(history), ...(best === undefined ? [] : [start + best])];
  }

  /**
   * Ends a stage with `until`: training goes on from the weights, moments included, that were best on validation, saved
   * under the count that stands for this choice. A kill before that leaves a stage that chooses again.
   */
  async #chooseWeights(
    stage: Stage,
    { start, history }: { readonly start: number; readonly history: readonly MetricRow[] },
  ): Promise<void> {
    const until = untilOf(stage);
    if (!until) return;
    const { run, engine } = this.#parts;
    const last = this.#done - start;
    const best = judgeValidation(history, until).bestStep ?? last;
    if (best !== last) {
      await engine.load(run.checkpointFolder(start + best));
      await loadRanker(this.#parts.ranker, run.checkpointFolder(start + best));
    }
    this.#input.reporter.message(
      `${stage.name} ended after step ${last}; its weights of step ${best} were best on validation and go on`,
    );
    this.#done = start + stageLength(stage);
    await this.#save();
  }

  /** One step; an interruption during its rollouts leaves the weights as they were before it. */
  async #step(stage: Stage, step: number): Promise<MetricRow> {
    const { recipe, signal, now, reporter } = this.#input;
    const { engine, data, run, assessor } = this.#parts;
    const lesson: Lesson = {
      engine,
      data,
      assessor,
      planner: recipe.planner,
      environment: recipe.environment,
      seed: recipe.seed,
      now,
      ...this.#stage,
      signal,
    };
    return await this.#savedWhenAborted(async () => {
      signal?.throwIfAborted();
      if (stage.type === "supervised") return await supervisedStep(lesson, stage, step);
      const { row, sampled, rankings } = await reinforcementStep(lesson, stage, step);
      await storeSample(run, {
        stage: stage.name,
        step: step + 1,
        sampled,
        rankings,
        tokenizer: engine.tokenizer,
      });
      const example = sampled.find(({ reward }) => reward !== undefined);
      if (example) reporter.sample(example.trajectory, example.reward as number);
      return row;
    });
  }

  /** Runs work that changes no weights when it is aborted; then the state is saved and the user told how to go on. */
  async #savedWhenAborted<T>(work: () => Promise<T>): Promise<T> {
    const { recipe, signal } = this.#input;
    const { run } = this.#parts;
    try {
      return await work();
    } catch (error) {
      if (!signal?.aborted) throw error;
      if (this.#saved !== this.#done) await this.#save();
      throw new InterruptedError(
        `stopped after step ${this.#done} of ${totalSteps(recipe)}; go on with: npx forager train --resume ${run.path}`,
        { cause: error },
      );
    }
  }

  /** Writes the step's metrics, evaluates and saves where the recipe asks for it; returns the metrics complete. */
  async #afterStep(
    stage: Stage,
    { start, history }: { readonly start: number; readonly history: readonly MetricRow[] },
  ): Promise<MetricRow> {
    const { recipe, reporter } = this.#input;
    const row = history.at(-1) as MetricRow;
    const measured: MetricRow = { ...row, "memory/peakBytes": process.resourceUsage().maxRSS * 1024 };
    // The row first: a kill before the checkpoint leaves a row too many, which resuming drops, and never one too few.
    await this.#parts.run.appendMetrics(measured);
    const complete = await this.#evaluateStep(stage, measured);
    this.#noteBest(stage, start, [...history.slice(0, -1), complete]);
    const isDue = this.#done % recipe.checkpoint.everySteps === 0 || row.step === stage.steps;
    // The weights that may be chosen in the end must be there then.
    if (isDue || this.#best.includes(this.#done)) await this.#save();
    reporter.stepDone(complete);
    return complete;
  }

  /** Adds the evaluations that are due after a step to its row. One that was interrupted is made up for on resuming. */
  async #evaluateStep(stage: Stage, row: MetricRow): Promise<MetricRow> {
    const { recipe } = this.#input;
    let complete = row;
    if (isEvaluationDue(recipe, stage, row)) complete = await this.#measure(complete, { kind: "evaluation" });
    const until = untilOf(stage);
    if (until && isValidationDue(stage, row))
      complete = await this.#measure(complete, { kind: "validation", until });
    return complete;
  }

  /** Evaluates after a step, on held-out questions or on those that `until` chooses by. */
  async #measure(
    row: MetricRow,
    how: { readonly kind: "evaluation" } | { readonly kind: "validation"; readonly until: UntilOptions },
  ): Promise<MetricRow> {
    const { now } = this.#input;
    const { stage, step } = row;
    const started = now();
    const isValidation = how.kind === "validation";
    const result = isValidation
      ? await this.#evaluate(`${stage}-validation-${step}`, { stage, step }, how.until.n)
      : await this.#evaluate(`${stage}-${step}`, { stage, step });
    const seconds = (row["time/evaluation"] ?? 0) + (now() - started) / 1000;
    const metrics = isValidation ? validationMetrics(result, how.until) : evaluationMetrics(result);
    const complete: MetricRow = { ...row, ...metrics, "time/evaluation": seconds };
    await this.#parts.run.replaceLastMetrics(complete);
    return complete;
  }

  async #save(): Promise<void> {
    const { run, engine } = this.#parts;
    await run.writeCheckpoint(this.#done, async (folder) => {
      await engine.save(folder);
      await saveRanker(this.#parts.ranker, folder);
      await this.#stage.critic?.save(criticFolder(folder));
    });
    await run.pruneCheckpoints(this.#input.recipe.checkpoint.keep, this.#best);
    this.#saved = this.#done;
  }

  /** Stops a training that has gone wrong before its weights are saved; the best checkpoint so far stays. */
  async #requireHealth(stage: Stage, history: readonly MetricRow[]): Promise<void> {
    const verdict = judgeHealth(stage, history);
    if (verdict.type === "ok") return;
    const { run } = this.#parts;
    await run.appendMetrics(history.at(-1) as MetricRow);
    const kept = (await run.checkpoints()).map(({ step }) => step);
    const good = kept.filter((step) => step <= Math.max(this.#best[0] ?? 0, kept[0] ?? 0)).at(-1);
    throw new TrainingError(
      `training stopped in step ${history.at(-1)?.step} of ${stage.name}: ${verdict.reason}. The last good checkpoint is ${run.checkpointFolder(good ?? 0)}; start from it with a lower learning rate, see ${run.reportPath}`,
    );
  }

  /** Evaluates the weights of now on the held-out questions, or on at most `validation` of the validation questions. */
  async #evaluate(name: string, at: RunPosition, validation?: number): Promise<EvaluationResult> {
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
      seed: recipe.seed,
      codeVersion,
      now,
      ...(signal && { signal }),
      onProgress: (progress) => reporter.evaluationProgress({ name, ...progress }),
    });
    const { result, trajectories } = await this.#savedWhenAborted(() => work);
    await storeEvaluation(run, { name, at, result, trajectories, tokenizer: engine.tokenizer });
    reporter.evaluationDone({ name, result });
    return result;
  }
}
