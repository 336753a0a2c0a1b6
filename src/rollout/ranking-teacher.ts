/**
 * Demonstrations for a ranker: for a query of a question's plan, or the question itself, the candidates that the retriever
 * really finds, and the ranking that puts gold passages first and leaves the others in the retriever's order. A query
 * that finds no gold passage is dropped: nothing could be shown. Built-in worlds and data with gold passages have them.
 */
import { z } from "zod";
import type { Question } from "../corpus/question.ts";
import { renderRanking } from "../environment/ranking-codec.ts";
import type { Retriever, ScoredPassage } from "../retrieval/retriever.ts";
import { random } from "../shared/random.ts";
import { type GenerativeRanker, RankedSearch } from "./ranked-search.ts";
import type { RolloutRequest } from "./rollout.ts";
import { scriptedPolicy } from "./scripted-policy.ts";
import type { Demonstrations } from "./teacher.ts";
import type { Trajectory } from "./trajectory.ts";

export const rankingTeacherSchema = z.strictObject({
  type: z
    .literal("ranking")
    .describe(
      "Trains the ranker instead of the agent: rankings of what a query of the plan, else the question, finds; gold passages come first.",
    ),
  randomShare: z
    .number()
    .min(0)
    .max(1)
    .default(0)
    .describe(
      "Share of the demonstrations that rank at random, 0 to 1: for a warm start that knows the grammar and ranks poorly, which reinforcement is to improve.",
    ),
});

export interface RankingTeacherSetting {
  readonly retriever: Retriever;
  readonly ranker: Omit<GenerativeRanker, "policy">;
  /** Passages that are shown: K. */
  readonly k: number;
  readonly randomShare: number;
  readonly signal?: AbortSignal | undefined;
}

/** A demonstration for each request that can be served. Throws `RetrieverError` and the signal's reason. */
export async function demonstrateRankings(
  requests: readonly RolloutRequest[],
  setting: RankingTeacherSetting,
): Promise<Demonstrations> {
  const shown = await Promise.all(requests.map((request) => demonstrateOne(request, setting)));
  const trajectories = shown.filter((each) => typeof each !== "string");
  const dropped = requests.flatMap((request, index) => {
    const reason = shown[index];
    return typeof reason === "string" ? [{ request, reason }] : [];
  });
  return { trajectories, dropped };
}

type Dropped = Demonstrations["dropped"][number]["reason"];

async function demonstrateOne(
  request: RolloutRequest,
  { retriever, ranker, k, randomShare, signal }: RankingTeacherSetting,
): Promise<Trajectory | Dropped> {
  const { question } = request;
  if (question.goldPassages.length === 0) return "noGoldPassages";
  const query = queryOf(request);
  const [candidates = []] = await retriever.retrieve([query], Math.max(k, ranker.candidates), signal);
  const best = goldFirst(candidates, question);
  if (best.length === 0 || !isGold(candidates[(best[0] as number) - 1], question)) return "goldNotFound";
  const order = withChance(best, randomShare, request).slice(0, k);
  const found: Retriever = { identity: retriever.identity, retrieve: async () => [candidates] };
  const policy = scriptedPolicy(() => renderRanking(order), ranker.tokenizer);
  const search = new RankedSearch({
    ...request,
    ranker: { ...ranker, policy },
    retriever: found,
    turn: () => 0,
    now: () => 0,
  });
  await search.retriever.retrieve([query], k, signal);
  const [ranking] = search.rankings;
  return ranking === undefined || ranking.answer === undefined ? "tooLong" : ranking;
}

function queryOf({ question, group, sample, seed }: RolloutRequest): string {
  const { plan = [], text } = question;
  return plan.length === 0 ? text : random(seed, "ranking teacher", group, sample).pick(plan);
}

/** `best`, or with the probability `share` the same numbers in random order. */
function withChance(
  best: readonly number[],
  share: number,
  { seed, group, sample }: RolloutRequest,
): number[] {
  const chance = random(seed, "random ranking", group, sample);
  return chance.next() < share ? chance.shuffle(best) : [...best];
}

/** The numbers of all candidates, those of gold passages first. */
function goldFirst(candidates: readonly ScoredPassage[], question: Question): number[] {
  const numbers = candidates.map((_, index) => index + 1);
  const isGoldNumber = (number: number): boolean => isGold(candidates[number - 1], question);
  return [...numbers.filter(isGoldNumber), ...numbers.filter((number) => !isGoldNumber(number))];
}

function isGold(candidate: ScoredPassage | undefined, { goldPassages }: Question): boolean {
  return candidate !== undefined && goldPassages.includes(candidate.passage.id);
}
