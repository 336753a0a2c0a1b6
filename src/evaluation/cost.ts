/**
 * What the episodes of an evaluation took: tokens, time and money of every part that worked for them, the agent, a
 * generator, a ranker, the retriever and a judge. A judge is what measuring costs, not what answering does, so it is left
 * out of the totals of an item.
 */
import { z } from "zod";
import type { Trajectory } from "../rollout/trajectory.ts";
import { policyTokenCount, queries } from "../rollout/trajectory-view.ts";
import { addUsage, noUsage, type PolicyUsage } from "../rollout/usage.ts";
import type { ScoredItem } from "./item.ts";

const count = z.int().min(0);

export const costParts = ["agent", "generator", "ranker", "retrieval", "judge"] as const;
export type CostPart = (typeof costParts)[number];

const partSchema = z.object({
  /** Completions; of the retriever, queries. */
  calls: count,
  promptTokens: count,
  completionTokens: count,
  /** Waited for it, summed over episodes that were played at once. */
  seconds: z.number().min(0),
  /** Absent where it has no price. */
  dollars: z.exactOptional(z.number().min(0)),
});
type Part = z.infer<typeof partSchema>;

/** What all episodes together took, failed ones among them. */
export const costSchema = z.object({
  /** Completions of all models, judges among them. */
  calls: count,
  promptTokens: count,
  /** Prompt tokens that a server found in its cache. */
  cachedTokens: count,
  completionTokens: count,
  /** Of models and searches together; 0 where nothing has a price. */
  dollars: z.number().min(0),
  /** `partly`: some model that was asked has no price, and counts as 0. */
  pricing: z.enum(["priced", "partly", "unpriced"]),
  /** Parts that did something; absent in older results, whose cost was the agent's alone. */
  parts: z.exactOptional(z.partialRecord(z.enum(costParts), partSchema)),
});

export type EvaluationCost = Readonly<z.infer<typeof costSchema>>;

/** The cost of an evaluation; `searchDollars` is what all its searches were billed, where that is known. */
export function costOf(
  trajectories: readonly Trajectory[],
  searchDollars: number | undefined,
): EvaluationCost {
  const used = modelParts(trajectories);
  const total = Object.values(used).reduce((sum, { usage }) => addUsage(sum, usage), noUsage);
  const { contextTokens: _, dollars: modelDollars, ...counts } = total;
  const asked = Object.values(used).filter(({ usage: { calls } }) => calls > 0);
  const priced = asked.filter(({ usage }) => usage.dollars !== undefined).length;
  const parts: Partial<Record<CostPart, Part>> = {};
  for (const [name, { usage, ms }] of Object.entries(used))
    if (usage.calls > 0) parts[name as CostPart] = partOf(usage, ms);
  const searches = sum(trajectories.map(queryCount));
  if (searches > 0)
    parts.retrieval = {
      ...partOf(noUsage, sum(trajectories.map(({ time }) => time.retrievalMs))),
      calls: searches,
      ...(searchDollars !== undefined && { dollars: searchDollars }),
    };
  return {
    ...counts,
    dollars: (modelDollars ?? 0) + (searchDollars ?? 0),
    pricing:
      priced === 0 && searchDollars === undefined ? "unpriced" : priced < asked.length ? "partly" : "priced",
    parts,
  };
}

interface Used {
  readonly usage: PolicyUsage;
  readonly ms: number;
}

function modelParts(
  trajectories: readonly Trajectory[],
): Readonly<Record<Exclude<CostPart, "retrieval">, Used>> {
  const of = (each: (trajectory: Trajectory) => readonly (Used | undefined)[]): Used => {
    const all = trajectories.flatMap(each).filter((used) => used !== undefined);
    return {
      usage: all.map(({ usage }) => usage).reduce(addUsage, noUsage),
      ms: sum(all.map(({ ms }) => ms)),
    };
  };
  return {
    agent: of(({ usage, time }) => [usage && { usage, ms: time.policyMs }]),
    generator: of(({ generated }) => [generated]),
    ranker: of(({ rankings = [] }) =>
      rankings.map(({ usage, time }) => usage && { usage, ms: time.policyMs }),
    ),
    judge: of(({ assessment }) => [assessment && { usage: assessment.usage, ms: assessment.ms ?? 0 }]),
  };
}

function partOf({ calls, promptTokens, completionTokens, dollars }: PolicyUsage, ms: number): Part {
  return {
    calls,
    promptTokens,
    completionTokens,
    seconds: ms / 1000,
    ...(dollars !== undefined && { dollars }),
  };
}

/** Queries that were searched, the question itself among them where the environment searches with it. */
export function queryCount(trajectory: Trajectory): number {
  const own = trajectory.turns.filter(
    ({ action, passages }) =>
      passages !== undefined && action.type !== "search" && action.type !== "searches",
  );
  const given = trajectory.turns.filter((turn) => turn.given !== undefined);
  return queries(trajectory).length + own.length + given.length;
}

type CostScores = Pick<
  ScoredItem,
  | "retrievalMs"
  | "retrievalDollars"
  | "judgeTokens"
  | "judgeMs"
  | "judgeDollars"
  | "totalTokens"
  | "totalDollars"
>;

/** What one episode took; `searchDollars` is its share of what the searches were billed. */
export function costScores(trajectory: Trajectory, searchDollars: number | undefined): CostScores {
  const { usage = noUsage, generated, rankings = [], assessment, time } = trajectory;
  const others = [generated?.usage ?? noUsage, ...rankings.map((ranking) => ranking.usage ?? noUsage)];
  const written = usage.completionTokens || policyTokenCount(trajectory);
  const dollars = [usage, ...others].flatMap((each) => each.dollars ?? []);
  const isPriced = dollars.length > 0 || searchDollars !== undefined;
  return {
    retrievalMs: time.retrievalMs,
    ...(searchDollars !== undefined && { retrievalDollars: searchDollars }),
    totalTokens: written + sum(others.map(tokensOf)),
    ...(isPriced && { totalDollars: sum(dollars) + (searchDollars ?? 0) }),
    ...(assessment && {
      judgeTokens: tokensOf(assessment.usage),
      judgeMs: assessment.ms ?? 0,
      ...(assessment.usage.dollars !== undefined && { judgeDollars: assessment.usage.dollars }),
    }),
  };
}

function tokensOf({ promptTokens, completionTokens }: PolicyUsage): number {
  return promptTokens + completionTokens;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
