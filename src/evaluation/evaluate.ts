/**
 * Plays every question once and scores it. The loop is that of training (`runRollouts`), so that what is measured is
 * what was trained. Every question ends as one item, in the order of the questions, whatever the concurrency.
 */
import { type Question, questionKey } from "../corpus/question.ts";
import type { EnvironmentOptions } from "../environment/environment-options.ts";
import { ForagerError } from "../errors.ts";
import type { Retriever } from "../retrieval/retriever.ts";
import type { Generator } from "../rollout/generator.ts";
import type { Policy, SamplingOptions } from "../rollout/policy.ts";
import type { Ranker } from "../rollout/ranked-search.ts";
import type { RolloutSetting } from "../rollout/rollout.ts";
import { runRollouts } from "../rollout/run-rollouts.ts";
import type { Trajectory } from "../rollout/trajectory.ts";
import { canonicalJson, sha256 } from "../shared/hash.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import { summarize } from "./aggregate.ts";
import { evaluationContract } from "./contract.ts";
import { costOf, queryCount } from "./cost.ts";
import type { Item } from "./item.ts";
import type { EvaluationResult } from "./result.ts";
import { riskCoverage } from "./risk-coverage.ts";
import { failureOf, scoreTrajectory } from "./score-trajectory.ts";

/** Who judges, and for a planner who answers. */
export interface JudgingParts {
  readonly models: { readonly generator?: Generator | undefined };
  /** For the contract. */
  describe(): Readonly<Record<string, string | number>>;
  /** The trajectories with their assessments, in order. */
  assess(
    trajectories: readonly Trajectory[],
    options: {
      readonly withBaselines: boolean;
      readonly signal?: AbortSignal | undefined;
      readonly now?: (() => number) | undefined;
      /** Told each that has an assessment as soon as it has. */
      readonly onAssessed?: ((trajectory: Trajectory) => void) | undefined;
    },
  ): Promise<Trajectory[]>;
}

export interface EvaluateInput {
  readonly policy: Policy;
  readonly retriever: Retriever;
  /** What a question is searched with, instead of `retriever` itself; the contract then names `condition`. */
  readonly retrieverFor?: ((question: Question) => Retriever) | undefined;
  readonly condition?: string | undefined;
  readonly environment: EnvironmentOptions;
  /** Chooses the passages of each search. */
  readonly ranker?: Ranker | undefined;
  /** Required in mode planner; elsewhere it judges answers beside exact match. */
  readonly planner?: JudgingParts | undefined;
  readonly questions: readonly Question[];
  /** Named in the contract, such as `test`. */
  readonly split: string;
  /** Named in the contract: the version of Forager. */
  readonly codeVersion: string;
  readonly seed: number;
  /** Default: greedy. */
  readonly sampling?: Pick<SamplingOptions, "temperature" | "topP" | "topK">;
  readonly tokenizer?: Tokenizer | undefined;
  /** Most tokens of a trajectory. */
  readonly contextLength?: number | undefined;
  /** Most episodes at once; default: all. */
  readonly concurrency?: number | undefined;
  /** Milliseconds of a clock; without one all times are 0. */
  readonly now?: () => number;
  readonly signal?: AbortSignal;
  /** Called with each trajectory when it ends, in order of ending: what is done when an error ends the evaluation. */
  readonly onTrajectory?: (trajectory: Trajectory) => void;
  /** Asked for episodes that need not be played, and given those that were; absent: all are played. */
  readonly kept?: KeptEpisodes | undefined;
  /** Called after each episode. */
  readonly onProgress?: (progress: { readonly done: number; readonly total: number }) => void;
}

/** Episodes of an evaluation that was interrupted, or of which some failed, so that the others are not played again. */
export interface KeptEpisodes {
  /** By question key, those that were kept under the same setting: a hash of everything that they depend on. */
  load(setting: string): Promise<ReadonlyMap<string, Trajectory>>;
  /** Keeps an episode that the world did not fail, in place of the same one without its assessment. */
  add(trajectory: Trajectory): void;
}

export interface Evaluation {
  /** What is stored. */
  readonly result: EvaluationResult;
  /** One for each question, in order. */
  readonly trajectories: readonly Trajectory[];
}

const greedy = { temperature: 0, topP: 1, topK: 0 } as const;

/** Evaluates a policy. Throws the signal's reason when aborted, and `ForagerError` when two questions share a key. */
export async function evaluate(input: EvaluateInput): Promise<Evaluation> {
  const { questions, sampling = greedy, seed, signal } = input;
  const { policy, retriever, environment, tokenizer, contextLength, now } = input;
  requireUniqueKeys(questions);
  const isPlanner = environment.mode === "planner";
  const described = input.planner?.describe();
  const contract = await evaluationContract({
    ...input,
    sampling,
    ...(isPlanner ? { generator: described } : { answerJudge: described }),
  });
  const billed = billing(retriever);
  const { played, earlier } = await playAll(
    questions,
    {
      policy,
      retriever,
      retrieverFor: input.retrieverFor,
      environment,
      sampling,
      tokenizer,
      contextLength,
      now,
      generator: input.planner?.models.generator,
      ranker: input.ranker,
    },
    { ...input, setting: sha256(canonicalJson([contract, contextLength ?? null])) },
  );
  signal?.throwIfAborted();
  const billedForAnswers = billed();
  const billedBefore = billedEarlier(billedForAnswers, { earlier, played });
  const trajectories = await assessed(played, input);
  const items = scoreAll(trajectories, plus(billedForAnswers, billedBefore));
  const cost = costOf(trajectories, plus(billed(), billedBefore));
  const selective = riskCoverage(items);
  const summary = summarize(items, { seed });
  return { result: { contract, summary, cost, ...(selective && { selective }), items }, trajectories };
}

type Playing = Pick<
  EvaluateInput,
  "seed" | "concurrency" | "signal" | "onTrajectory" | "onProgress" | "kept"
> & { readonly setting: string };

/** The trajectories of all questions in order, and those among them that were kept before and are as they were. */
async function playAll(
  questions: readonly Question[],
  rollouts: RolloutSetting,
  { seed, concurrency, signal, kept, setting, ...input }: Playing,
): Promise<{ readonly played: readonly Trajectory[]; readonly earlier: readonly Trajectory[] }> {
  const known = (await kept?.load(setting)) ?? new Map<string, Trajectory>();
  const missing = questions.filter((question) => !known.has(questionKey(question)));
  let done = questions.length - missing.length;
  if (done > 0) input.onProgress?.({ done, total: questions.length });
  const onTrajectory = (trajectory: Trajectory): void => {
    if (failureOf(trajectory) === undefined) kept?.add(trajectory);
    input.onTrajectory?.(trajectory);
    input.onProgress?.({ done: ++done, total: questions.length });
  };
  const requests = missing.map((question) => ({ question, group: questionKey(question), sample: 0, seed }));
  const fresh = await runRollouts(requests, rollouts, { concurrency, signal, onTrajectory });
  const all = new Map([...known, ...fresh.map((trajectory) => [trajectory.group, trajectory] as const)]);
  return {
    played: questions.map((question) => all.get(questionKey(question)) as Trajectory),
    earlier: [...known.values()],
  };
}

/** The trajectories judged, where anybody judges; a kept one may be already. */
async function assessed(
  played: readonly Trajectory[],
  { planner, environment, kept, signal, now }: EvaluateInput,
): Promise<readonly Trajectory[]> {
  if (planner === undefined) return played;
  const unjudged = played.filter(({ assessment }) => assessment === undefined);
  const judged = await planner.assess(unjudged, {
    withBaselines: environment.mode === "planner",
    signal,
    now,
    onAssessed: (trajectory) => kept?.add(trajectory),
  });
  const byGroup = new Map(judged.map((trajectory) => [trajectory.group, trajectory]));
  return played.map((trajectory) => byGroup.get(trajectory.group) ?? trajectory);
}

/** What searches of earlier episodes were billed, at the price a query that those of now had; 0 where there is none to tell it. */
function billedEarlier(
  billed: number | undefined,
  { earlier, played }: { readonly earlier: readonly Trajectory[]; readonly played: readonly Trajectory[] },
): number {
  const count = (trajectories: readonly Trajectory[]): number =>
    trajectories.reduce((sum, trajectory) => sum + queryCount(trajectory), 0);
  const before = count(earlier);
  const now = count(played) - before;
  return billed === undefined || now === 0 ? 0 : (billed * before) / now;
}

function plus(billed: number | undefined, more: number): number | undefined {
  return billed === undefined ? undefined : billed + more;
}

/** Tells what the retriever's searches have cost since now; undefined where they cost nothing but time. */
function billing({ spent }: Retriever): () => number | undefined {
  const before = spent?.().dollars ?? 0;
  return () => spent && spent().dollars - before;
}

/** Items in order; what the searches were billed is divided by the number of queries, which a cache may have answered. */
function scoreAll(trajectories: readonly Trajectory[], billed: number | undefined): Item[] {
  const counts = trajectories.map(queryCount);
  const total = counts.reduce((sum, count) => sum + count, 0);
  return trajectories.map((trajectory, i) =>
    scoreTrajectory(trajectory, {
      searchDollars: billed === undefined ? undefined : (billed * (counts[i] as number)) / Math.max(1, total),
    }),
  );
}

function requireUniqueKeys(questions: readonly Question[]): void {
  const seen = new Set<string>();
  for (const question of questions) {
    const key = questionKey(question);
    if (seen.has(key))
      throw new ForagerError(
        "data-format",
        `question ${key} appears twice; ids must be unique within a data set, and files of one name are one data set: name each file once, and rename one of two`,
      );
    seen.add(key);
  }
}
