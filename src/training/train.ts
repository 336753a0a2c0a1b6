/**
 * The one training loop: the stages of a recipe one after the other, with evaluations before, between and after,
 * a checkpoint after each step that asks for one, and everything written into the run folder as it happens.
 *
 * Chance is derived from the seed and the step alone, so that a resumed run takes the same next batch and gets
 * the same numbers. An interruption discards the step under way and keeps the state before it.
 */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { resolvedYaml } from "../config/load-recipe.ts";
import type { Recipe } from "../config/recipe.ts";
import type { Stage } from "../config/stage-options.ts";
import type { Critic, Engine, ReferencePolicy } from "../engine/engine.ts";
import { InterruptedError, TrainingError } from "../errors.ts";
import { evaluate } from "../evaluation/evaluate.ts";
import type { EvaluationResult } from "../evaluation/result.ts";
import type { MetricRow, RunPosition } from "../reporting/metric-row.ts";
import { writeReport } from "../reporting/report/write-report.ts";
import { RunFolder } from "../reporting/run-folder.ts";
import { createFolderAtomic } from "../shared/files.ts";
import { evaluationMetrics, isEvaluationDue } from "./evaluation-metrics.ts";
import { freshPolicy } from "./fresh-policy.ts";
import { bestStep, judgeHealth } from "./health.ts";
import type { Watcher } from "./hub-settings.ts";
import type { Lesson } from "./lesson.ts";
import { createEngine } from "./open-engine.ts";
import { planMemory, requireMemory } from "./plan-training.ts";
import { evaluatedStage, lastStep, stepsBefore, totalSteps } from "./position.ts";
import { requirePromptsFit } from "./prompt-fit.ts";
import { reinforcementStep } from "./reinforcement-step.ts";
import type { TrainingReporter } from "./reporter.ts";
import { loadData, type TrainingData, writeWorldFiles } from "./setup.ts";
import { criticFolder, openCritic, requireCritic } from "./stage-critic.ts";
import { storeEvaluation, storeSample } from "./store-trajectories.ts";
import { supervisedStep } from "./supervised-step.ts";
import { trainingContract } from "./training-contract.ts";
import { processWorld } from "./world.ts";

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

/**
 * Trains a recipe to its end. Throws `InterruptedError` when stopped on request (the state is saved),
 * `TrainingError` when the training collapsed, and the errors of the rooms for bad data.
 */
export async function train(input: TrainingInput): Promise<TrainingSummary> {
  const { recipe, reporter } = input;
  reporter.message("reading the data and building the index");
  const data = await loadData(recipe, processWorld(watcherOf(input)));
  try {
    return await trainOn(data, input);
  } finally {
    await data.close();
  }
}

/** Who is told of downloads, and what stops them. */
function watcherOf({ signal, reporter }: TrainingInput): Watcher {
  return { signal, note: (text) => reporter.message(text) };
}

async function trainOn(data: TrainingData, input: TrainingInput): Promise<TrainingSummary> {
  const { recipe, folder, resume } = input;
  const watcher = watcherOf(input);
  const engine = await createEngine(recipe, data, watcher);
  try {
    requireCritic(recipe, engine);
    const note = await requirePromptsFit([...data.train, ...data.evaluation], recipe.environment, engine);
    if (note !== undefined) input.reporter.message(note);
    requireMemory(recipe, planMemory(recipe, engine.model));
    const { codeVersion } = input;
    const run = resume
      ? await RunFolder.resume(folder)
      : await RunFolder.create(folder, {
          recipeYaml: resolvedYaml(recipe),
          contract: await trainingContract(recipe, { data, engine, codeVersion, watcher }),
        });
    try {
      if (!resume && recipe.data.type === "world") await writeWorldFiles(folder, data);
      return await new Training(input, { run, data, engine }).finish();
    } finally {
      await run.close();
    }
  } finally {
    await engine.close();
  }
}

interface Parts {
  readonly run: RunFolder;
  readonly data: TrainingData;
  readonly engine: Engine;
}

/** A training under way: where it stands, and what it has saved. */
class Training {
  readonly #input: TrainingInput;
  readonly #parts: Parts;
  /** Steps of all stages that are done, and the count that the newest checkpoint holds. */
  #done = 0;
  #saved: number | undefined;
  /** The count after which the weights were at their best; its checkpoint is kept. */
  #best: number | undefined;
  /** Of the stage under way. */
  #critic: Critic | undefined;

  constructor(input: TrainingInput, parts: Parts) {
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
      const after = await this.#evaluate("after", { stage: last.name, step: last.steps });
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
    if (this.#done >= start + stage.steps) return;
    const isStart = this.#done === start;
    if (isStart && index === evaluatedStage(recipe))
      await this.#evaluate("before", { stage: stage.name, step: 0 });
    const reference = await this.#reference(stage, isStart);
    if (isStart && index > 0) await engine.resetOptimizer();
    this.#critic = await openCritic(engine, stage, isStart ? undefined : run.checkpointFolder(this.#done));
    try {
      await this.#runSteps(stage, { start, reference });
    } finally {
      await this.#critic?.close();
      this.#critic = undefined;
    }
  }

  async #runSteps(
    stage: Stage,
    { start, reference }: { readonly start: number; readonly reference: ReferencePolicy | undefined },
  ): Promise<void> {
    const { run } = this.#parts;
    const { reporter } = this.#input;
    const history = (await run.readMetrics()).filter((row) => row.stage === stage.name);
    this.#best = start + bestStep(history);
    const { name, type, steps } = stage;
    reporter.stageStarted({ name, type, steps, done: this.#done - start });
    const last = history.at(-1);
    if (last !== undefined) history.splice(-1, 1, await this.#evaluateStep(stage, last));
    while (this.#done < start + stage.steps) {
      const row = await this.#step(stage, this.#done - start, reference);
      await this.#requireHealth(stage, [...history, row]);
      this.#done++;
      this.#best = start + bestStep([...history, row]);
      history.push(await this.#afterStep(stage, row));
    }
  }

  /** One step; an interruption during its rollouts leaves the weights as they were before it. */
  async #step(stage: Stage, step: number, reference: ReferencePolicy | undefined): Promise<MetricRow> {
    const { recipe, signal, now, reporter } = this.#input;
    const { engine, data, run } = this.#parts;
    const lesson: Lesson = {
      engine,
      data,
      environment: recipe.environment,
      seed: recipe.seed,
      now,
      reference,
      critic: this.#critic,
      signal,
    };
    return await this.#savedWhenAborted(async () => {
      signal?.throwIfAborted();
      if (stage.type === "supervised") return await supervisedStep(lesson, stage, step);
      const { row, sampled } = await reinforcementStep(lesson, stage, step);
      await storeSample(run, { stage: stage.name, step: step + 1, sampled, tokenizer: engine.tokenizer });
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
  async #afterStep(stage: Stage, row: MetricRow): Promise<MetricRow> {
    const { recipe, reporter } = this.#input;
    const measured: MetricRow = { ...row, "memory/peakBytes": process.resourceUsage().maxRSS * 1024 };
    // The row first: a kill before the checkpoint leaves a row too many, which resuming drops, and never one too few.
    await this.#parts.run.appendMetrics(measured);
    const complete = await this.#evaluateStep(stage, measured);
    if (this.#done % recipe.checkpoint.everySteps === 0 || row.step === stage.steps) await this.#save();
    reporter.stepDone(complete);
    return complete;
  }

  /** Adds the evaluation that is due after a step to its row. One that was interrupted is made up for on resuming. */
  async #evaluateStep(stage: Stage, row: MetricRow): Promise<MetricRow> {
    const { recipe, now } = this.#input;
    if (!isEvaluationDue(recipe, stage, row)) return row;
    const started = now();
    const result = await this.#evaluate(`${stage.name}-${row.step}`, { stage: stage.name, step: row.step });
    const seconds = { "time/evaluation": (now() - started) / 1000 };
    const complete: MetricRow = { ...row, ...evaluationMetrics(result), ...seconds };
    await this.#parts.run.replaceLastMetrics(complete);
    return complete;
  }

  async #save(): Promise<void> {
    const { run, engine } = this.#parts;
    await run.writeCheckpoint(this.#done, async (folder) => {
      await engine.save(folder);
      await this.#critic?.save(criticFolder(folder));
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
    const good = kept.filter((step) => step <= Math.max(this.#best ?? 0, kept[0] ?? 0)).at(-1);
    throw new TrainingError(
      `training stopped in step ${history.at(-1)?.step} of ${stage.name}: ${verdict.reason}. The last good checkpoint is ${run.checkpointFolder(good ?? 0)}; start from it with a lower learning rate, see ${run.reportPath}`,
    );
  }

  async #evaluate(name: string, at: RunPosition): Promise<EvaluationResult> {
    const { recipe, reporter, signal, now, codeVersion } = this.#input;
    const { run, engine, data } = this.#parts;
    // A retriever that changes with the training is asked as it was at its start, or scores would mix both.
    data.onStep?.(0);
    const work = evaluate({
      policy: freshPolicy(engine),
      retriever: data.retriever,
      environment: recipe.environment,
      questions: data.evaluation,
      split: data.split,
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

  /**
   * The frozen policy of the stage's start, where the loss has a KL term. Its weights are kept in the run folder,
   * from which a resumed stage takes them.
   */
  async #reference(stage: Stage, isStart: boolean): Promise<ReferencePolicy | undefined> {
    if (stage.type !== "reinforcement" || !stage.algorithm.kl) return undefined;
    const { run, engine } = this.#parts;
    const folder = join(run.path, "reference", stage.name);
    if (isStart) {
      await rm(folder, { recursive: true, force: true });
      await createFolderAtomic(folder, (target) => engine.save(target));
      return await engine.snapshot();
    }
    await engine.load(folder);
    const reference = await engine.snapshot();
    await engine.load(run.checkpointFolder(this.#done));
    return reference;
  }
}
