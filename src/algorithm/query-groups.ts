/**
 * Semantic grouping of the queries that a ranker was called for (CoSearch, arXiv 2604.17555, section 3.3, Eq. 5, and
 * algorithm 2 of appendix C): the calls of one question, over all its rollouts, are split by whether a gold answer is
 * among the candidates and clustered greedily by the token F1 with a cluster's first query. Advantages compare the calls
 * of a group. Calls with different candidates may share one; the paper does so too.
 */
import { z } from "zod";

export const queryGroupingSchema = z.strictObject({
  type: z
    .enum(["tokenF1", "exact", "off"])
    .default("tokenF1")
    .describe(
      "Which calls are compared: `tokenF1` those with similar queries, `exact` with equal ones after normalisation, `off` all of a question.",
    ),
  threshold: z
    .number()
    .min(0)
    .max(1)
    .default(0.8)
    .describe("Least token F1 with the first query of a group, for tokenF1; δ of the paper."),
  answerability: z
    .boolean()
    .default(true)
    .describe("Whether calls with and without a gold answer among their candidates are kept apart."),
  minMembers: z
    .int()
    .min(1)
    .default(3)
    .describe("Smaller groups are left out; 3 in the paper, 4 as released."),
});

export type QueryGrouping = z.output<typeof queryGroupingSchema>;

export interface GroupedCall {
  readonly query: string;
  /** Whether a gold answer is among the candidates. */
  readonly isAnswerable: boolean;
}

export interface QueryGroup<Call extends GroupedCall> {
  /** Unique among the groups of a question, such as `easy/0`. */
  readonly name: string;
  readonly members: readonly Call[];
}

/** The groups of the calls of one question, in order; each call is in at most one. */
export function groupQueries<Call extends GroupedCall>(
  calls: readonly Call[],
  options: QueryGrouping,
): QueryGroup<Call>[] {
  const { answerability, minMembers } = options;
  const sides = answerability
    ? [
        { side: "easy", members: calls.filter(({ isAnswerable }) => isAnswerable) },
        { side: "hard", members: calls.filter(({ isAnswerable }) => !isAnswerable) },
      ]
    : [{ side: "all", members: calls }];
  return sides.flatMap(({ side, members }) =>
    clusters(members, options)
      .map((cluster, index) => ({ name: `${side}/${index}`, members: cluster }))
      .filter((group) => group.members.length >= minMembers),
  );
}

/** Each call joins the first cluster whose first query is close enough, else opens one. */
function clusters<Call extends GroupedCall>(
  calls: readonly Call[],
  { type, threshold }: QueryGrouping,
): Call[][] {
  if (type === "off") return calls.length === 0 ? [] : [[...calls]];
  const found: { readonly first: readonly string[]; readonly members: Call[] }[] = [];
  for (const call of calls) {
    const words = queryWords(call.query);
    const isNear = ({ first }: { readonly first: readonly string[] }): boolean =>
      type === "exact" ? words.join(" ") === first.join(" ") : wordF1(words, first) >= threshold;
    const cluster = found.find(isNear);
    if (cluster) cluster.members.push(call);
    else found.push({ first: words, members: [call] });
  }
  return found.map(({ members }) => members);
}

const articles = /(?<![\p{L}\p{N}_])(?:a|an|the)(?![\p{L}\p{N}_])/gu;
const symbols = /[^\p{L}\p{N}_\s]/gu;

/**
 * The words of a query as the released grouping compares them: articles go before punctuation does, so that `U.S.A.`
 * becomes `u s`. It is not the normal form of answers.
 */
export function queryWords(query: string): string[] {
  const text = query.toLowerCase().replace(articles, " ").replace(symbols, " ");
  return text.split(/\s+/).filter((word) => word !== "");
}

/** F1 of two bags of words; 0 where one is empty. */
export function wordF1(a: readonly string[], b: readonly string[]): number {
  const left = new Map<string, number>();
  for (const word of b) left.set(word, (left.get(word) ?? 0) + 1);
  let common = 0;
  for (const word of a) {
    const count = left.get(word) ?? 0;
    if (count > 0) common++;
    left.set(word, count - 1);
  }
  return common === 0 ? 0 : (2 * common) / (a.length + b.length);
}
