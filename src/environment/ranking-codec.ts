/**
 * The output grammar of CoSearch's generative ranker (arXiv 2604.17555, section 3.3 and appendix A.2):
 *   <reason>…</reason><rerank>[i1] > [i2] > … > [iK]</rerank>
 * with exactly K distinct numbers from 1 to N, best first: a choice of the best K, not a permutation of all N.
 *
 * What is accepted follows the released validator: one reason block, perhaps empty and perhaps after other text; then,
 * but for white space, nothing but the rerank block; spaces around `>` are free.
 */

export const rankingTags: readonly string[] = ["reason", "rerank"].flatMap((name) => [
  `<${name}>`,
  `</${name}>`,
]);

/** A ranking ends after this; it is part of its text. */
export const rankingStopStrings: readonly string[] = ["</rerank>"];

export interface RankingShape {
  /** Numbers that a ranking must hold: K. */
  readonly count: number;
  /** The greatest number: N. */
  readonly candidates: number;
}

const reasonBlock = /<reason>[\s\S]*?<\/reason>/g;
const rerankBlock = /^\s*<rerank>\s*(\[\d+\](?:\s*>\s*\[\d+\])*)\s*<\/rerank>\s*$/;

/** The numbers of a ranking, best first, each in 1..candidates; undefined for text that breaks the grammar. */
export function parseRanking(
  text: string,
  { count, candidates }: RankingShape,
): readonly number[] | undefined {
  if (text.match(reasonBlock)?.length !== 1) return undefined;
  const rest = text.slice(text.lastIndexOf("</reason>") + "</reason>".length);
  const list = rerankBlock.exec(rest)?.[1];
  if (list === undefined) return undefined;
  const numbers = [...list.matchAll(/\d+/g)].map(([digits]) => Number(digits));
  const isComplete = numbers.length === count && new Set(numbers).size === count;
  return isComplete && numbers.every((number) => number >= 1 && number <= candidates) ? numbers : undefined;
}

/** The numbers as they stand between the rerank tags. */
export function renderOrder(numbers: readonly number[]): string {
  return numbers.map((number) => `[${number}]`).join(" > ");
}

/** The shortest text that parses to `numbers`, with an empty reason unless one is given. */
export function renderRanking(numbers: readonly number[], reason = ""): string {
  return `<reason>${reason}</reason><rerank>${renderOrder(numbers)}</rerank>`;
}
