/**
 * Where an agent's score is lost: the same agent, prompts and limits with searches that find nothing, as they are, and with
 * the gold passages first. What oracle retrieval gains over the real one could not be found; what stays wrong with it
 * could not be used. Agents that were trained with one retriever may be at their worst with another, which this shows too.
 */
import { answerMatcher, isVerdict } from "../corpus/answer-match.ts";
import type { Passage } from "../corpus/passage.ts";
import type { Question } from "../corpus/question.ts";
import type { Retriever, ScoredPassage } from "../retrieval/retriever.ts";
import { bootstrapMean, type Estimate } from "./bootstrap.ts";
import { itemKey, type ScoredItem } from "./item.ts";
import { type PairedDifference, pairedTest } from "./paired-test.ts";
import type { EvaluationResult } from "./result.ts";

export const retrievalConditions = ["none", "real", "oracle"] as const;
export type RetrievalCondition = (typeof retrievalConditions)[number];

/** Candidates among which passages with a gold answer are looked for where a question marks no gold passage. */
const candidates = 50;

/**
 * The retriever under a condition, for one question: nothing, itself, or gold passages first and then its own best. Where k has
 * no room for all gold passages, those come first that the query finds, so that each hop can be shown its own.
 */
export function underCondition(
  retriever: Retriever,
  condition: RetrievalCondition,
  { question, passages }: { readonly question: Question; readonly passages: ReadonlyMap<string, Passage> },
): Retriever {
  const { identity } = retriever;
  if (condition === "real") return retriever;
  if (condition === "none") return { identity, retrieve: async (queries) => queries.map(() => []) };
  const gold = question.goldPassages.flatMap((id) => passages.get(id) ?? []);
  return {
    identity,
    retrieve: async (queries, k, signal) => {
      const isRoomy = gold.length > 0 && gold.length <= k;
      const found = await retriever.retrieve(queries, isRoomy ? k : Math.max(k, candidates), signal);
      return found.map((list) =>
        goldFirst(gold.length > 0 ? inOrderOf(list, gold) : holders(list, question), list, k),
      );
    },
  };
}

/** Those that hold a gold answer; words such as yes and no stand in passages for other reasons and mark none. */
function holders(list: readonly ScoredPassage[], { goldAnswers }: Question): Passage[] {
  const holds = answerMatcher(isVerdict(goldAnswers) ? [] : goldAnswers);
  return list.map(({ passage }) => passage).filter(holds);
}

/** The gold passages that a query found in its order, then the others. */
function inOrderOf(list: readonly ScoredPassage[], gold: readonly Passage[]): Passage[] {
  const place = new Map(list.map(({ passage }, i) => [passage.id, i]));
  const rank = ({ id }: Passage): number => place.get(id) ?? list.length;
  return gold.toSorted((a, b) => rank(a) - rank(b));
}

function goldFirst(gold: readonly Passage[], list: readonly ScoredPassage[], k: number): ScoredPassage[] {
  const ids = new Set(gold.map(({ id }) => id));
  const others = list.map(({ passage }) => passage).filter(({ id }) => !ids.has(id));
  return [...gold, ...others].slice(0, k).map((passage, i) => ({ passage, score: 1 / (i + 1) }));
}

export interface Decomposition {
  /** Questions that were scored under all three conditions. */
  readonly n: number;
  /** Exact match under each. */
  readonly em: Readonly<Record<RetrievalCondition, Estimate>>;
  /** What the searches gain over none. */
  readonly gained: PairedDifference;
  /** What oracle retrieval would gain: could not be found. */
  readonly notFound: PairedDifference;
  /** What stays wrong with oracle retrieval: could not be used. */
  readonly notUsed: Estimate;
}

/** Splits the loss of an agent; undefined when no question is scored under all conditions. */
export function decompose(
  results: Readonly<Record<RetrievalCondition, EvaluationResult>>,
  { seed }: { readonly seed: number },
): Decomposition | undefined {
  const [none, real, oracle] = retrievalConditions.map((condition) => scoresOf(results[condition])) as [
    ReadonlyMap<string, number>,
    ReadonlyMap<string, number>,
    ReadonlyMap<string, number>,
  ];
  const keys = [...real.keys()].filter((key) => none.has(key) && oracle.has(key));
  if (keys.length === 0) return undefined;
  const of = (scores: ReadonlyMap<string, number>): number[] => keys.map((key) => scores.get(key) as number);
  const mean = (values: readonly number[]): Estimate => bootstrapMean(values, { seed }) as Estimate;
  return {
    n: keys.length,
    em: { none: mean(of(none)), real: mean(of(real)), oracle: mean(of(oracle)) },
    gained: pairedTest(of(none), of(real), { seed }) as PairedDifference,
    notFound: pairedTest(of(real), of(oracle), { seed }) as PairedDifference,
    notUsed: mean(of(oracle).map((score) => 1 - score)),
  };
}

function scoresOf({ items }: EvaluationResult): ReadonlyMap<string, number> {
  const scored = items.filter((item): item is ScoredItem => !item.failed);
  return new Map(scored.map((item) => [itemKey(item), item.em]));
}
