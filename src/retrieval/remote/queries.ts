/** Queries as they are sent: each once, none that is empty, and none that is too long or that UTF-8 cannot carry. */
import type { ScoredPassage } from "../retriever.ts";

/**
 * Answers `queries` by asking each distinct one once; a query of white space alone finds nothing and is not asked.
 * `prepare` gives what is really sent, such as a shortened query.
 */
export async function answerDistinct(
  queries: readonly string[],
  prepare: (query: string) => string,
  ask: (distinct: readonly string[]) => Promise<readonly (readonly ScoredPassage[])[]>,
): Promise<ScoredPassage[][]> {
  const sent = queries.map((query) => prepare(query));
  const distinct = [...new Set(sent)].filter((query) => query.trim() !== "");
  const answers = distinct.length === 0 ? [] : await ask(distinct);
  const answerOf = new Map(distinct.map((query, index) => [query, answers[index] ?? []]));
  return sent.map((query) => [...(answerOf.get(query) ?? [])]);
}

/** `query` as text that UTF-8 can carry (half surrogate pairs become U+FFFD), at most `maxCharacters` long. */
export function sendableQuery(query: string, maxCharacters: number): string {
  const whole = query.length <= maxCharacters ? query : query.slice(0, maxCharacters).trimEnd();
  return Buffer.from(whole, "utf8").toString("utf8");
}
