/**
 * One evaluated question. An episode that the world broke is an item without scores: it is counted, and never
 * taken for a wrong answer. The schemas read `evaluation/*.json` back; unknown keys of later versions are dropped.
 */
import { z } from "zod";
import { stopReasons } from "../environment/stop-reason.ts";
import { type DeficiencyName, deficiencyNames } from "../reward/deficiencies.ts";
import { type SearchUseName, searchUseNames } from "./search-use-names.ts";

const share = z.number().min(0).max(1);
const common = {
  dataset: z.string(),
  /** Unique within its data set. */
  id: z.string(),
  hops: z.exactOptional(z.number()),
  kind: z.exactOptional(z.string()),
  stopReason: z.enum(stopReasons as readonly [(typeof stopReasons)[number]]),
};

/** Where somebody judges, who is not exact match: `planner.judge`, else `evaluation.judge`. */
const judgeFields = {
  /** 1 where the judge takes the answer for right, else 0. */
  score: z.exactOptional(share),
  /** 1 where judge and rule agree, else 0; absent where the rule is the judge. */
  judgeAgreement: z.exactOptional(share),
  /** 1 where the judge said neither yes nor no, else 0. */
  judgeUnreadable: z.exactOptional(share),
};

/** What an answer took beside the agent's own part; absent in older results. */
const costFields = {
  /** Of `timeMs` what was waited for the retriever and its reranking. */
  retrievalMs: z.exactOptional(z.number()),
  /** This question's share, by its queries, of what the searches were billed; absent where they cost nothing. */
  retrievalDollars: z.exactOptional(z.number()),
  /** Tokens that the agent wrote, and that a generator and a ranker read and wrote. */
  totalTokens: z.exactOptional(z.number()),
  /** What agent, generator, ranker and searches cost; absent where nothing has a price. */
  totalDollars: z.exactOptional(z.number()),
  /** Tokens of judging, and of a generator's answers without a planner the first time they are needed; in no total. */
  judgeTokens: z.exactOptional(z.number()),
  /** Time waited for the same; not in `timeMs`. */
  judgeMs: z.exactOptional(z.number()),
  /** What the same cost; absent where it has no price. */
  judgeDollars: z.exactOptional(z.number()),
};

/** Of planners alone; scores are the judge's. */
const plannerFields = {
  /** Score of the generator's answer without any passage. */
  directScore: z.exactOptional(share),
  /** Score of its answer with the passages that the question itself finds. */
  ragScore: z.exactOptional(share),
  /** What the answer gained over the better of both: 1, 0 or -1. */
  gain: z.exactOptional(z.number()),
  /** What it gained over the answer with the passages that the question itself finds: 1, 0 or -1. */
  ragGain: z.exactOptional(z.number()),
  /** Utility of Eq. 4: outcome gain and process reward, 0 to 2. */
  utility: z.exactOptional(z.number()),
  /** Sub-queries that were searched. */
  subQueries: z.exactOptional(z.number()),
  /** 1 where the generator was called because the rounds were used up, else 0. */
  forcedCall: z.exactOptional(share),
  /** Tokens of the generator for this answer, prompt and completion together. */
  generatorTokens: z.exactOptional(z.number()),
  /** What the generator cost; absent where it has no price. */
  generatorDollars: z.exactOptional(z.number()),
};

/** What the agent was shown, and of agents with a ranker what ranking took. */
const searchFields = {
  /** Share of the searches whose first passage shown holds a gold answer; absent without a search. */
  hit1: z.exactOptional(share),
  /** The same for one of the first three passages. */
  hit3: z.exactOptional(share),
  /** The same for one of the first five passages. */
  hit5: z.exactOptional(share),
  /** Calls of the ranker. */
  rankings: z.exactOptional(z.number()),
  /** Calls of the ranker that gave no ranking, of all. */
  invalidRankings: z.exactOptional(share),
  /** Tokens that the ranker read and wrote. */
  rankerTokens: z.exactOptional(z.number()),
  /** Time waited for the ranker. */
  rankerMs: z.exactOptional(z.number()),
  /** What the ranker cost; absent where it has no price. */
  rankerDollars: z.exactOptional(z.number()),
};

export const scoredItemSchema = z.object({
  ...common,
  failed: z.literal(false),
  answer: z.exactOptional(z.string()),
  /** 1 when the answer equals a gold answer after normalisation, else 0. */
  em: share,
  /** 1 when the answer holds a gold answer after normalisation, else 0. */
  coverEm: share,
  /** Token F1 with the best gold answer. */
  f1: share,
  /** Share of the gold passages that any search found; absent where the question marks none. */
  retrievalRecall: z.exactOptional(share),
  /**
   * 1 when a passage that was found holds a gold answer in whole words, else 0; absent for questions whose answers are all
   * yes, no, true or false, words that passages hold for other reasons.
   */
  answerRetrieved: z.exactOptional(share),
  /** 1 when every turn was an action that counted and the last one an answer, else 0; absent in older results. */
  wellFormed: z.exactOptional(share),
  /** Searches that were carried out. */
  searches: z.number(),
  /** Tokens the policy sampled. */
  policyTokens: z.number(),
  /** All tokens of the trajectory. */
  contextTokens: z.number(),
  /** Wall time of the episode; episodes played at once share the machine. */
  timeMs: z.number(),
  /** Completions that the policy gave; absent in older results, as what follows. */
  modelCalls: z.exactOptional(z.number()),
  /** Tokens of all its prompts together, each turn's prompt holding those before. */
  promptTokens: z.exactOptional(z.number()),
  /** Those of them that a server found in its cache. */
  cachedTokens: z.exactOptional(z.number()),
  /** What the policy cost; absent where it has no price. */
  dollars: z.exactOptional(z.number()),
  ...costFields,
  ...searchFields,
  ...judgeFields,
  ...plannerFields,
  /** How the searches were used, see `search-use-names.ts`; absent in older results, and where there is nothing to measure. */
  ...(Object.fromEntries(searchUseNames.map((name) => [name, z.exactOptional(z.number())])) as Record<
    SearchUseName,
    z.ZodExactOptional<z.ZodNumber>
  >),
  /** For each gold passage in the question's order 1 when it was found, else 0. */
  goldFound: z.exactOptional(z.array(share)),
  /** Geometric mean of the probabilities of the answering turn's tokens; absent without an answer or log-probabilities. */
  confidence: z.exactOptional(share),
  /** 1 where the searching has the deficiency, else 0; absent in older results. */
  ...(Object.fromEntries(deficiencyNames.map((name) => [name, z.exactOptional(share)])) as Record<
    DeficiencyName,
    z.ZodExactOptional<typeof share>
  >),
});

export const failedItemSchema = z.object({
  ...common,
  failed: z.literal(true),
  /** What failed. */
  failure: z.string(),
});

export const itemSchema = z.discriminatedUnion("failed", [scoredItemSchema, failedItemSchema]);

export type ScoredItem = Readonly<z.infer<typeof scoredItemSchema>>;
export type FailedItem = Readonly<z.infer<typeof failedItemSchema>>;
export type Item = ScoredItem | FailedItem;

const costNames = Object.keys(costFields) as (keyof typeof costFields)[];
const judgeMetrics = Object.keys(judgeFields) as (keyof typeof judgeFields)[];
const searchMetrics = Object.keys(searchFields) as (keyof typeof searchFields)[];
const plannerMetrics = Object.keys(plannerFields) as (keyof typeof plannerFields)[];

/** What an item is measured by, in the order of tables. */
export const metricNames = [
  "em",
  "coverEm",
  "f1",
  "retrievalRecall",
  "answerRetrieved",
  "wellFormed",
  "searches",
  ...searchUseNames,
  "policyTokens",
  "contextTokens",
  "timeMs",
  "modelCalls",
  "promptTokens",
  "cachedTokens",
  "dollars",
  ...costNames,
  ...searchMetrics,
  ...judgeMetrics,
  ...plannerMetrics,
  ...deficiencyNames,
] as const;
export type MetricName = (typeof metricNames)[number];

/** Metrics of which less is better. */
export const costMetrics: ReadonlySet<MetricName> = new Set<MetricName>([
  "searches",
  "policyTokens",
  "contextTokens",
  "timeMs",
  "modelCalls",
  "promptTokens",
  "dollars",
  "redundantSearches",
  "searchesAfterEvidence",
  "passagesSeen",
  "rankings",
  "invalidRankings",
  "rankerTokens",
  "rankerMs",
  "rankerDollars",
  "judgeUnreadable",
  "subQueries",
  "forcedCall",
  "generatorTokens",
  "generatorDollars",
  ...costNames,
  ...deficiencyNames,
]);

/** The key that identifies the question of an item, equal to `questionKey`. */
export function itemKey(item: Pick<Item, "dataset" | "id">): string {
  return `${item.dataset}/${item.id}`;
}
