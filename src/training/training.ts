/**
 * The one training loop: the stages of a recipe one after the other, with evaluations before, between and after
 * (`training-evaluation.ts`), a checkpoint after each step that asks for one (`training-checkpoints.ts`), and everything
 * written into the run folder as it happens.
 *
 * Chance is derived from the seed and the step alone, so that a resumed run takes the same next batch and gets
 * the same numbers. An interruption discards the step under way and keeps the state before it.
 */
import type { Stage } from "../config/stage-options.ts";
import { profiles } from "../engine/tinker/profiles.ts";
import { TrainingError } from "../errors.ts";
import type { MetricRow } from "../reporting/metric-row.ts";
import { writeReport } from "../reporting/report/write-report.ts";
import { writeStop } from "../reporting/stop-record.ts";
import { shellWord } from "../shared/shell-word.ts";
import { EngineMetrics } from "./engine-metrics.ts";
import { tellHowToGoOn } from "./go-on.ts";
import { bestStep, judgeHealth } from "./health.ts";
import type { Lesson } from "./lesson.ts";
import { evaluatedStage, stageLength, stepsBefore, totalSteps } from "./position.ts";
import { reinforcementStep } from "./reinforcement-step.ts";
import { SampleAhead } from "./sample-ahead.ts";
import { openCritic } from "./stage-critic.ts";
import { startRanker } from "./stage-ranker.ts";
import { openReference } from "./stage-reference.ts";
import { carryOf, judgeValidation, stepsCarried, stepsTaken, untilOf } from "./stage-switch.ts";
import { storeSample } from "./store-trajectories.ts";
import { supervisedStep } from "./supervised-step.ts";
import { TrainingCheckpoints } from "./training-checkpoints.ts";
import { TrainingEvaluation } from "./training-evaluation.ts";
import type { TrainingInput, TrainingParts, TrainingSummary } from "./training-input.ts";

/** A training under way. */
export class Training {
  readonly #input: TrainingInput;
  readonly #parts: TrainingParts;
  readonly #checkpoints: TrainingCheckpoints;
  readonly #evaluation: TrainingEvaluation;
  readonly #engineMetrics: EngineMetrics;
  /** Of the stage under way: its critic, its frozen policy, and the steps from which its schedule goes on. */
  #stage: Pick<Lesson, "critic" | "reference" | "stepsCarried" | "ranker"> = {};
  /** Of the stage under way, where it samples ahead of training. */
  #ahead: SampleAhead | undefined;

  constructor(input: TrainingInput, parts: TrainingParts) {
    this.#input = input;
    this.#parts = parts;
    this.#engineMetrics = new EngineMetrics(parts.engine);
    this.#checkpoints = new TrainingCheckpoints(input.recipe, parts);
    this.#evaluation = new TrainingEvaluation(input, parts, this.#checkpoints);
  }

  async finish(): Promise<TrainingSummary> {
    const { recipe, folder, reporter } = this.#input;
    const { run } = this.#parts;
    try {
      const isResumed = await this.#checkpoints.restore();
      await writeStop(folder, undefined);
      const isTrained = isResumed && this.#isTrained();
      if (isTrained) reporter.message("all steps are done; forager eval scores the run again");
      else if (isResumed)
        reporter.message(`going on after step ${this.#checkpoints.done} of ${totalSteps(recipe)}`);
      for (const [index, stage] of recipe.stages.entries()) await this.#runStage(stage, index);
      const last = recipe.stages.at(-1) as Stage;
      const step = stepsTaken(last, await run.readMetrics());
      const stored = await run.readEvaluations();
      const known = isTrained ? stored.find((one) => one.name === "after" && one.step === step) : undefined;
      const after = known?.result ?? (await this.#evaluation.run("after", { stage: last.name, step }));
      const before = stored.find(({ name }) => name === "before");
      await writeReport(run);
      return { folder, before: before?.result ?? after, after };
    } catch (error) {
      // A report that fails as well, on a full disk, must not hide what failed first.
      await writeReport(run).catch(() => undefined);
      throw tellHowToGoOn(error, folder);
    }
  }

  /** Whether the checkpoint that was restored is that of the last step. */
  #isTrained(): boolean {
    const { recipe } = this.#input;
    const { stages } = recipe;
    const index = stages.length - 1;
    const end = stepsBefore(recipe, { stage: index, step: 0 }) + stageLength(stages[index] as Stage);
    return this.#checkpoints.done >= end;
  }

  async #runStage(stage: Stage, index: number): Promise<void> {
    const { recipe } = this.#input;
    const { run, engine } = this.#parts;
    const { done } = this.#checkpoints;
    const start = stepsBefore(recipe, { stage: index, step: 0 });
    if (done >= start + stageLength(stage)) return;
    const isStart = done === start;
    if (isStart && index === evaluatedStage(recipe))
      await this.#evaluation.run("before", { stage: stage.name, step: 0 });
    const { stages } = recipe;
    const reference = await openReference({ run, engine, stages, index, isStart, done });
    const ranker = await startRanker(this.#parts.ranker, { run, stages, index, isStart, done });
    if (isStart && index > 0 && !carryOf(stage).includes("optimizer")) await engine.resetOptimizer();
    const rows = await run.readMetrics();
    const critic = await openCritic(engine, stage, isStart ? undefined : run.checkpointFolder(done));
    this.#stage = { critic, reference, ranker, stepsCarried: stepsCarried(stages, index, rows) };
    this.#checkpoints.critic = critic;
    try {
      const history = await this.#samplingAhead(stage, () => this.#runSteps(stage, { start, rows }));
      await this.#chooseWeights(stage, { start, history });
    } finally {
      await critic?.close();
      this.#stage = {};
      this.#checkpoints.critic = undefined;
    }
  }

  /** Runs the steps of a stage while those to come are sampled, where it may; nothing is in flight afterwards. */
  async #samplingAhead<T>(stage: Stage, work: () => Promise<T>): Promise<T> {
    if (stage.type !== "reinforcement" || stage.maxStaleness === 0) return await work();
    const { engine } = this.#input.recipe;
    const keepsSnapshots = engine.type === "tinker" && profiles[engine.profile].keepsSnapshots;
    const ahead = new SampleAhead(this.#lesson(), stage, { keepsSnapshots });
    this.#ahead = ahead;
    try {
      return await work();
    } finally {
      this.#ahead = undefined;
      await ahead.close();
    }
  }

  /** The steps that are left of a stage; returns the rows of all its steps. */
  async #runSteps(
    stage: Stage,
    { start, rows }: { readonly start: number; readonly rows: readonly MetricRow[] },
  ): Promise<readonly MetricRow[]> {
    const checkpoints = this.#checkpoints;
    const history = rows.filter((row) => row.stage === stage.name);
    this.#noteBest(stage, start, history);
    const { name, type, steps } = stage;
    this.#input.reporter.stageStarted({ name, type, steps, done: Math.min(steps, checkpoints.done - start) });
    const last = history.at(-1);
    if (last !== undefined) history.splice(-1, 1, await this.#evaluation.afterStep(stage, last));
    const until = untilOf(stage);
    const isOver = (): boolean => until !== undefined && judgeValidation(history, until).isOver;
    while (checkpoints.done < start + stage.steps && !isOver()) {
      const row = await this.#step(stage, checkpoints.done - start);
      await this.#requireHealth(stage, [...history, row]);
      checkpoints.reach(checkpoints.done + 1);
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
    this.#checkpoints.keepBest([start + bestStep(history), ...(best === undefined ? [] : [start + best])]);
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
    const last = this.#checkpoints.done - start;
    const best = judgeValidation(history, until).bestStep ?? last;
    if (best !== last) await this.#checkpoints.load(start + best);
    this.#input.reporter.message(
      `${stage.name} ended after step ${last}; its weights of step ${best} were best on validation and go on`,
    );
    this.#checkpoints.reach(start + stageLength(stage));
    await this.#checkpoints.save();
  }

  #lesson(): Lesson {
    const { recipe, signal, now } = this.#input;
    const { engine, data, assessor } = this.#parts;
    const { planner, environment, seed } = recipe;
    return { engine, data, assessor, planner, environment, seed, now, ...this.#stage, signal };
  }

  /** One step; an interruption during its rollouts leaves the weights as they were before it. */
  async #step(stage: Stage, step: number): Promise<MetricRow> {
    const { signal, reporter } = this.#input;
    const { engine, run } = this.#parts;
    const lesson = this.#lesson();
    return await this.#checkpoints.savedWhenAborted(async () => {
      signal?.throwIfAborted();
      if (stage.type === "supervised") return await supervisedStep(lesson, stage, step);
      const { row, sampled, rankings } = await reinforcementStep(lesson, stage, {
        step,
        ahead: this.#ahead,
      });
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
    }, signal);
  }

  /** Writes the step's metrics, evaluates and saves where the recipe asks for it; returns the metrics complete. */
  async #afterStep(
    stage: Stage,
    { start, history }: { readonly start: number; readonly history: readonly MetricRow[] },
  ): Promise<MetricRow> {
    const { recipe, reporter } = this.#input;
    const row = history.at(-1) as MetricRow;
    const measured: MetricRow = {
      ...row,
      ...this.#engineMetrics.take(),
      "memory/peakBytes": process.resourceUsage().maxRSS * 1024,
    };
    // The row first: a kill before the checkpoint leaves a row too many, which resuming drops, and never one too few.
    await this.#parts.run.appendMetrics(measured);
    const complete = await this.#evaluation.afterStep(stage, measured);
    this.#noteBest(stage, start, [...history.slice(0, -1), complete]);
    const isDue = this.#checkpoints.done % recipe.checkpoint.everySteps === 0 || row.step === stage.steps;
    await this.#checkpoints.saveIf(isDue);
    reporter.stepDone(complete);
    return complete;
  }

  /** Stops a training that has gone wrong before its weights are saved; the best checkpoint so far stays. */
  async #requireHealth(stage: Stage, history: readonly MetricRow[]): Promise<void> {
    const verdict = judgeHealth(stage, history);
    if (verdict.type === "ok") return;
    const { run } = this.#parts;
    const { engine } = this.#input.recipe;
    const row = history.at(-1) as MetricRow;
    await run.appendMetrics(row);
    const checkpoint = await this.#checkpoints.lastGood();
    await writeStop(run.path, { stage: stage.name, step: row.step, reason: verdict.reason, checkpoint });
    const isWhole = engine.type === "embedded" && engine.lora === undefined;
    const how = isWhole ? ` (--set ${shellWord(`model=${checkpoint}`)})` : "";
    throw new TrainingError(
      `training stopped in step ${row.step} of ${stage.name}: ${verdict.reason}. The last good checkpoint is ${checkpoint}; start from it with a lower learning rate${how}, see ${run.reportPath}`,
    );
  }
}
