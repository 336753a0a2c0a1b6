/**
 * Judges episodes: scores of answers, and of a planner's grades of searches and once for each question what the generator
 * answers without it. Failures of a judge or a retriever mark the episode as one that the world broke.
 */
import type { Recipe } from "../config/recipe.ts";
import { type Question, questionKey } from "../corpus/question.ts";
import { isInfrastructureFailure } from "../environment/stop-reason.ts";
import { assert, PolicyError, RetrieverError } from "../errors.ts";
import type { Retriever } from "../retrieval/retriever.ts";
import { gradeByRecall, gradeSearch, judgeAnswer, judgePromptHash } from "../reward/judge.ts";
import { askGenerator, describeGenerator, directPrompt, ragPrompt } from "../rollout/generator.ts";
import type { Assessment, Trajectory } from "../rollout/trajectory.ts";
import { addUsage, noUsage, type PolicyUsage } from "../rollout/usage.ts";
import { isBudgetSpent } from "../shared/budget.ts";
import { runTogether } from "../shared/concurrency.ts";
import { canonicalJson, sha256 } from "../shared/hash.ts";
import { random } from "../shared/random.ts";
import { type Baseline, type BaselineStore, baselineStore } from "./baseline-store.ts";
import type { FrozenModels } from "./open-generator.ts";

export interface AssessorParts {
  readonly recipe: Pick<Recipe, "environment" | "planner" | "seed">;
  readonly models: FrozenModels;
  readonly retriever: Retriever;
}

/** Episodes that are judged at once; policies gather their calls into batches. */
const concurrency = 64;

export class Assessor {
  readonly models: FrozenModels;
  readonly #parts: AssessorParts;
  #store: BaselineStore;

  constructor(parts: AssessorParts) {
    this.#parts = parts;
    this.models = parts.models;
    this.#store = baselineStore(this.setting());
  }

  /** Takes up what an earlier process found out, from `file`, and unless `isReadOnly` adds to it. Throws `FileError`, `DataFormatError`. */
  async keepIn(file: string, options: { readonly isReadOnly: boolean }): Promise<void> {
    this.#store = baselineStore(this.setting(), file);
    await this.#store.load(options);
  }

  /** Forgets what the frozen models kept of earlier contexts; none of them may be at work. */
  forget(): void {
    const { generator, judge, grader } = this.models;
    for (const model of [generator, judge.model, grader]) model?.policy.forget?.();
  }

  /** What a judgement depends on besides the planner, for contracts. */
  describe(): Readonly<Record<string, string | number>> {
    const { planner } = this.#parts.recipe;
    const { generator, judge, grader } = this.models;
    const { identity } = judge.model?.policy ?? {};
    return {
      ...(generator && describeGenerator(generator)),
      judge: identity === undefined ? judge.rule : `${identity.type} ${identity.model}`,
      judgeRule: judge.rule,
      ...(planner && { process: planner.process }),
      ...((judge.model || grader) && { judgePromptHash }),
    };
  }

  /** SHA-256 of all that a question's baselines depend on besides the question. */
  setting(): string {
    const { recipe, retriever } = this.#parts;
    const { k, passageTemplate, maxObservationTokens, today } = recipe.environment;
    const shown = { k, passageTemplate, maxObservationTokens, today: today ?? null };
    return sha256(canonicalJson([this.describe(), retriever.identity, shown, recipe.seed]));
  }

  /**
   * The trajectories with their assessments, in order; those that the world broke stay as they are. Times are 0 without a
   * clock. Throws the signal's reason.
   */
  async assess(
    trajectories: readonly Trajectory[],
    options: {
      /** Mode planner alone. */
      readonly withBaselines: boolean;
      readonly signal?: AbortSignal | undefined;
      readonly now?: (() => number) | undefined;
      /** Told each that has an assessment as soon as it has. */
      readonly onAssessed?: ((trajectory: Trajectory) => void) | undefined;
    },
  ): Promise<Trajectory[]> {
    const tasks = trajectories.map(
      (trajectory) => (signal: AbortSignal) => this.#assessOrMark(trajectory, { ...options, signal }),
    );
    return await runTogether(tasks, { concurrency, signal: options.signal });
  }

  async #assessOrMark(trajectory: Trajectory, options: AssessOptions): Promise<Trajectory> {
    if (isInfrastructureFailure(trajectory.stopReason)) return trajectory;
    try {
      const assessed = { ...trajectory, assessment: await this.#assess(trajectory, options) };
      options.onAssessed?.(assessed);
      return assessed;
    } catch (error) {
      if (options.signal.aborted || isBudgetSpent(error)) throw error;
      const { message } = error as Error;
      if (error instanceof RetrieverError)
        return { ...trajectory, stopReason: "retrieverFailure", failure: message };
      if (error instanceof PolicyError)
        return { ...trajectory, stopReason: "policyFailure", failure: `judging: ${message}` };
      throw error;
    }
  }

  async #assess(trajectory: Trajectory, options: AssessOptions): Promise<Assessment> {
    const { withBaselines, signal, now = () => 0 } = options;
    const { question, answer, group, sample } = trajectory;
    const started = now();
    const { judge } = this.models;
    const seed = random(this.#parts.recipe.seed, "judge", group, sample).below(2 ** 31);
    const [verdict, grade, alone] = await Promise.all([
      judgeAnswer({ question, answer }, judge, { seed, signal }),
      this.#grade(trajectory, { seed, signal }),
      withBaselines ? this.#baseline(question, signal) : undefined,
    ]);
    const usages = [verdict.usage, grade.usage, ...(alone ? [alone.usage] : [])];
    return {
      score: verdict.score,
      ruleScore: verdict.ruleScore,
      ...(alone && { directScore: alone.direct.score, ragScore: alone.rag.score }),
      unreadable: Number(verdict.isUnreadable),
      judged: Number(verdict.isAsked),
      ...(grade.grade !== undefined && { grade: grade.grade }),
      ...(grade.isUnreadable && { isGradeUnreadable: true }),
      usage: usages.reduce(addUsage, noUsage),
      ms: now() - started,
    };
  }

  /** Without a call of the generator there is nothing to grade: the reward is 0 then. */
  async #grade(
    trajectory: Trajectory,
    ask: { readonly seed: number; readonly signal: AbortSignal },
  ): Promise<{ readonly grade?: number; readonly isUnreadable: boolean; readonly usage: PolicyUsage }> {
    const { planner, environment } = this.#parts.recipe;
    const { grader } = this.models;
    if (trajectory.generated === undefined || planner === undefined || planner.process === "none")
      return { isUnreadable: false, usage: noUsage };
    if (grader === undefined) {
      const grade = gradeByRecall(trajectory);
      return { ...(grade !== undefined && { grade }), isUnreadable: false, usage: noUsage };
    }
    const reply = await gradeSearch(trajectory, grader, { environment, ...ask });
    return { ...reply, isUnreadable: reply.grade === undefined };
  }

  /** What the generator answers by itself; its cost counts for the episode that asked first. */
  async #baseline(question: Question, signal: AbortSignal): Promise<Baseline & { usage: PolicyUsage }> {
    let usage = noUsage;
    const baseline = await this.#store.of(questionKey(question), async () => {
      const made = await this.#makeBaseline(question, signal);
      usage = made.usage;
      return made.baseline;
    });
    return { ...baseline, usage };
  }

  async #makeBaseline(question: Question, signal: AbortSignal) {
    const { recipe, retriever } = this.#parts;
    const { environment } = recipe;
    const { generator, judge } = this.models;
    assert(generator !== undefined, "only a planner's generator answers alone");
    const seed = random(recipe.seed, "generator alone", questionKey(question)).below(2 ** 31);
    const [passages = []] = await retriever.retrieve([question.text], environment.k, signal);
    const prompts = await Promise.all([
      directPrompt(generator, question, environment),
      ragPrompt(generator, { question, passages }, environment),
    ]);
    const answered = await Promise.all(
      prompts.map(async (prompt) => {
        const reply = await askGenerator(generator, prompt, seed, signal);
        const verdict = await judgeAnswer({ question, answer: reply.answer }, judge, { seed, signal });
        return { reply, verdict };
      }),
    );
    const [direct, rag] = answered.map(({ reply: { answer }, verdict: { score } }) => ({
      ...(answer !== undefined && { answer }),
      score,
    })) as [Baseline["direct"], Baseline["rag"]];
    const usage = answered
      .flatMap(({ reply, verdict }) => [reply.usage, verdict.usage])
      .reduce(addUsage, noUsage);
    return { baseline: { direct, rag }, usage };
  }
}

interface AssessOptions {
  readonly withBaselines: boolean;
  readonly signal: AbortSignal;
  readonly now?: (() => number) | undefined;
  readonly onAssessed?: ((trajectory: Trajectory) => void) | undefined;
}
