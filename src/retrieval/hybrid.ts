/**
 * One ranking out of several over the same corpus. A weighted sum of scores that are first scaled to 0..1 within each ranking
 * (1 when all are equal), or reciprocal rank fusion (Cormack, Clarke and Büttcher 2009):
 *   score(p) = sum over the rankings that hold p of 1 / (k + rank of p).
 * A passage that a ranking does not hold gets nothing from it. Scores tell how much better the first passages are, which
 * ranks leave out: on 1,998 training questions equal weights had 0.9 points of MRR more than k = 60.
 *
 * Ranks alone tie often: first and second here, second and first there. Equal sums go by the sum of the scaled scores,
 * which tells how far apart the rankings had the two (on 1,998 training questions 0.6 points of MRR more than the order of
 * the first ranking); what is equal in that too keeps the order of the first ranking, then of the next.
 */
import { z } from "zod";
import { ConfigError, RetrieverError } from "../errors.ts";
import { canonicalJson, sha256 } from "../shared/hash.ts";
import {
  explainRetrieval,
  rankedOf,
  type Stage,
  type StagedAnswer,
  type StagedRetriever,
  type Watch,
} from "./explain-retrieval.ts";
import type { Retriever, RetrieverIdentity, ScoredPassage } from "./retriever.ts";

const variants = z.discriminatedUnion("type", [
  z.strictObject({
    type: z.literal("rrf").default("rrf"),
    k: z.number().min(0).max(10_000).default(60).describe("How little the first ranks stand out."),
  }),
  z.strictObject({
    type: z.literal("weighted"),
    weights: z
      .record(z.string(), z.number().min(0))
      .optional()
      .describe(
        "How much each part counts, by its name; absent: all alike. Given without a type they mean weighted.",
      ),
  }),
]);
type GivenFusion = z.input<typeof variants> | Omit<Extract<Fusion, { type: "weighted" }>, "type">;

const fusionSchema = z.preprocess(
  (given: GivenFusion) =>
    given instanceof Object && "weights" in given && !("type" in given)
      ? { type: "weighted", ...given }
      : given,
  variants,
);

export const hybridOptionsSchema = z.strictObject({
  fusion: fusionSchema
    .prefault({ type: "weighted" })
    .describe("How rankings become one: rrf (by rank) or weighted (by scaled score)."),
  depth: z
    .int()
    .min(1)
    .max(10_000)
    .default(100)
    .describe("Passages taken from each part at least; k where that is more."),
});
export type HybridOptions = z.output<typeof hybridOptionsSchema>;
export type Fusion = z.output<typeof variants>;

export interface HybridPart {
  /** Names the part in weights, explanations and the identity, such as `bm25`. */
  readonly name: string;
  readonly retriever: Retriever;
}

/**
 * A retriever over several of the same corpus. Throws `ConfigError` for options that cannot be used or parts that are
 * not named apart, `RetrieverError` when the parts are of different corpora.
 */
export function hybridRetriever(
  parts: readonly HybridPart[],
  options: z.input<typeof hybridOptionsSchema> = {},
): StagedRetriever {
  const parsed = hybridOptionsSchema.safeParse(options);
  if (!parsed.success) throw new ConfigError(`options of hybrid retrieval: ${z.prettifyError(parsed.error)}`);
  const { fusion, depth } = parsed.data;
  checkParts(parts, fusion);
  return {
    identity: identityOf(parts, parsed.data),
    spent: spentBy(parts),
    retrieve: async (queries, k, signal) => {
      const rankings = await Promise.all(
        parts.map(({ retriever }) => retriever.retrieve(queries, deep(depth, k), signal)),
      );
      return queries.map((_, i) =>
        fuse(
          parts.map(({ name }, part) => ranking(name, rankings[part]?.[i] ?? [], deep(depth, k))),
          fusion,
        ).slice(0, k),
      );
    },
    retrieveInStages: (query, k, watch) => inStages({ parts, fusion, depth }, { query, k }, watch),
  };
}

/** What the parts cost together; undefined where none costs money. */
function spentBy(parts: readonly HybridPart[]): Retriever["spent"] {
  const meters = parts.flatMap(({ retriever: { spent } }) => spent ?? []);
  if (meters.length === 0) return undefined;
  return () =>
    meters
      .map((spent) => spent())
      .reduce((sum, one) => ({
        calls: sum.calls + one.calls,
        tokens: sum.tokens + one.tokens,
        dollars: sum.dollars + one.dollars,
      }));
}

/** A `k` that is no whole number goes on to the parts, which refuse it. */
function deep(depth: number, k: number): number {
  return Number.isInteger(k) && k >= 1 ? Math.max(depth, k) : k;
}

async function inStages(
  { parts, fusion, depth }: HybridOptions & { readonly parts: readonly HybridPart[] },
  { query, k }: { readonly query: string; readonly k: number },
  watch: Watch,
): Promise<StagedAnswer> {
  const stages: Stage[] = [];
  const rankings: Ranking[] = [];
  const last: Stage[] = [];
  for (const { name, retriever } of parts) {
    const found = await explainRetrieval(retriever, { query, k: deep(depth, k), name }, watch);
    const inner =
      found.stages.length > 1 ? found.stages.map((s) => ({ ...s, name: `${name}/${s.name}` })) : found.stages;
    stages.push(...inner);
    last.push({ ...(inner.at(-1) as Stage), name });
    rankings.push(ranking(name, found.answer, deep(depth, k)));
  }
  const start = watch.now();
  const answer = fuse(rankings, fusion).slice(0, k);
  const milliseconds = watch.now() - start;
  return { stages: [...stages, { name: "fusion", milliseconds, ranked: rankedOf(answer, last) }], answer };
}

/** The answer of one part to one query, best first. */
export interface Ranking {
  readonly name: string;
  readonly answer: readonly ScoredPassage[];
  /** There are no further passages that the part would find: what it does not hold has no score. */
  readonly isWhole?: boolean;
}

/** The answer of a part that was asked for `wanted` passages. */
function ranking(name: string, answer: readonly ScoredPassage[], wanted: number): Ranking {
  return { name, answer, isWhole: answer.length < wanted };
}

interface Fused {
  readonly passage: ScoredPassage["passage"];
  /** Rank in each ranking; infinite where it is not held. */
  readonly ranks: number[];
  /** Sum of the scaled and weighted scores. */
  scaled: number;
}

/** All passages of the rankings in one order, by the formula above. Passages are the same when their ids are. */
export function fuse(rankings: readonly Ranking[], fusion: Fusion): ScoredPassage[] {
  const fused = new Map<string, Fused>();
  const count = new Set(rankings.flatMap(({ answer }) => answer.map(({ passage }) => passage.id))).size;
  for (const [part, one] of rankings.entries()) {
    const { answer } = one;
    const scaled = scaledScores(one, fusion, count);
    for (const [i, { passage }] of answer.entries()) {
      const ranks = rankings.map(() => Number.POSITIVE_INFINITY);
      const entry = fused.get(passage.id) ?? { passage, ranks, scaled: 0 };
      entry.ranks[part] = i + 1;
      entry.scaled += scaled[i] as number;
      fused.set(passage.id, entry);
    }
  }
  return Array.from(fused.values(), (entry) => ({ ...entry, score: fusedScore(entry, fusion) }))
    .sort((a, b) => b.score - a.score || b.scaled - a.scaled || compareRanks(a.ranks, b.ranks))
    .map(({ passage, score }) => ({ passage, score }));
}

/** Ranks are added in their order, so that the same ranks give the same bits whichever ranking had which. */
function fusedScore({ ranks, scaled }: Fused, fusion: Fusion): number {
  if (fusion.type === "weighted") return scaled;
  return [...ranks].sort((a, b) => a - b).reduce((sum, rank) => sum + 1 / (fusion.k + rank), 0);
}

function compareRanks(a: readonly number[], b: readonly number[]): number {
  const part = a.findIndex((rank, i) => rank !== b[i]);
  return part < 0 ? 0 : (a[part] as number) - (b[part] as number);
}

/**
 * Scores scaled to 0..1 within the answer, times the weight. Where a whole answer lacks some of the `count` passages, these
 * score 0 there and so does the 0 of the scale, or else the last of few good passages would get no more than they.
 */
function scaledScores({ name, answer, isWhole = false }: Ranking, fusion: Fusion, count: number): number[] {
  const weight = fusion.type === "weighted" && fusion.weights !== undefined ? (fusion.weights[name] ?? 0) : 1;
  const scores = answer.map(({ score }) => score);
  const floor = isWhole && answer.length < count ? 0 : Number.POSITIVE_INFINITY;
  const least = scores.reduce((a, b) => Math.min(a, b), floor);
  const range = scores.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY) - least;
  return scores.map((score) => weight * (range > 0 ? (score - least) / range : 1));
}

function checkParts(parts: readonly HybridPart[], fusion: Fusion): void {
  const names = parts.map(({ name }) => name);
  if (parts.length === 0 || new Set(names).size < names.length)
    throw new ConfigError(
      `a hybrid retriever needs parts with names of their own, got ${names.join(", ") || "none"}`,
    );
  if (fusion.type === "weighted" && fusion.weights !== undefined) checkWeights(names, fusion.weights);
  const hashes = parts.map(({ retriever }) => retriever.identity.corpusHash);
  if (new Set(hashes).size === 1) return;
  const described = parts.map(({ name }, i) => `${name} of ${hashes[i]?.slice(0, 12)}…`);
  throw new RetrieverError(
    `the parts of a hybrid retriever must be of one corpus, got ${described.join(", ")}; build them again from the same corpus`,
  );
}

function checkWeights(names: readonly string[], weights: Readonly<Record<string, number>>): void {
  const given = Object.keys(weights);
  const isComplete = given.length === names.length && names.every((name) => given.includes(name));
  if (isComplete && names.some((name) => (weights[name] as number) > 0)) return;
  throw new ConfigError(
    `fusion.weights: expected a weight for each of ${names.join(", ")}, at least one above 0, got ${JSON.stringify(weights)}`,
    { path: "fusion.weights" },
  );
}

function identityOf(parts: readonly HybridPart[], { fusion, depth }: HybridOptions): RetrieverIdentity {
  const described = parts.map(({ name, retriever: { identity } }) => ({ name, identity }));
  return {
    method: "hybrid",
    corpusHash: described[0]?.identity.corpusHash ?? "",
    indexHash: sha256(canonicalJson({ parts: described, fusion, depth, scaling: "from 0 where whole" })),
    parameters: {
      parts: described.map(({ name, identity }) => `${name}:${identity.indexHash.slice(0, 12)}`).join(" "),
      fusion: describeFusion(fusion),
      depth,
    },
  };
}

function describeFusion(fusion: Fusion): string {
  if (fusion.type === "rrf") return `rrf ${fusion.k}`;
  return fusion.weights === undefined ? "equal weights" : canonicalJson(fusion.weights);
}
