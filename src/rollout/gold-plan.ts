/**
 * The searches of a teacher for a question whose gold passages are known, found by trying: at each turn the candidate
 * query that finds most of the missing passages is taken, the first of equals. A question whose passages cannot all be
 * found within the budget has no plan; nothing is shown that did not happen.
 */
import type { Passage } from "../corpus/passage.ts";
import type { Question } from "../corpus/question.ts";
import type { Retriever, ScoredPassage } from "../retrieval/retriever.ts";
import { candidateQueries } from "./candidate-queries.ts";

export interface PlannedSearch {
  readonly query: string;
  /** What it finds, best first. */
  readonly passages: readonly Passage[];
  /** The same as the environment shows it, shortened where it is long. */
  readonly shown: string;
}

export interface PlanSetting {
  readonly retriever: Retriever;
  /** Passages of one search. */
  readonly k: number;
  readonly maxSearches: number;
  /** Titles of gold passages by id; one that is absent is not searched for by its title. */
  readonly titles: ReadonlyMap<string, string>;
  /** How the environment shows what a search found. */
  readonly show: (passages: readonly ScoredPassage[]) => string;
  readonly signal?: AbortSignal | undefined;
}

export type NoPlan = "noGoldPassages" | "goldNotFound";

/** The searches in order, or why there are none. Throws `RetrieverError` and the signal's reason. */
export async function findGoldPlan(
  question: Question,
  setting: PlanSetting,
): Promise<readonly PlannedSearch[] | NoPlan> {
  const missing = new Set(question.goldPassages);
  if (missing.size === 0) return "noGoldPassages";
  const plan: PlannedSearch[] = [];
  while (missing.size > 0) {
    const search =
      plan.length < setting.maxSearches ? await bestSearch(question, missing, { plan, setting }) : undefined;
    if (search === undefined) return "goldNotFound";
    plan.push(search);
    for (const { id } of search.passages) missing.delete(id);
  }
  return plan;
}

/** The candidate that finds most of what is missing; undefined when none finds any. */
async function bestSearch(
  question: Question,
  missing: ReadonlySet<string>,
  { plan, setting }: { readonly plan: readonly PlannedSearch[]; readonly setting: PlanSetting },
): Promise<PlannedSearch | undefined> {
  const asked = new Set(plan.map(({ query }) => query));
  const candidates = candidateQueries({
    question: question.text,
    seen: plan.map(({ shown }) => shown).join("\n"),
    missingTitles: [...missing].flatMap((id) => setting.titles.get(id) ?? []),
  }).filter((query) => !asked.has(query));
  if (candidates.length === 0) return undefined;
  const results = await setting.retriever.retrieve(candidates, setting.k, setting.signal);
  let best: { query: string; found: readonly ScoredPassage[] } | undefined;
  let most = 0;
  for (const [index, query] of candidates.entries()) {
    const found = results[index] ?? [];
    const count = found.filter(({ passage }) => missing.has(passage.id)).length;
    if (count <= most) continue;
    most = count;
    best = { query, found };
  }
  if (best === undefined) return undefined;
  const { query, found } = best;
  return { query, passages: found.map(({ passage }) => passage), shown: setting.show(found) };
}
