/**
 * One evaluated question. An episode that the world broke is an item without scores: it is counted, and never
 * taken for a wrong answer. The schemas read `evaluation/*.json` back; unknown keys of later versions are dropped.
 */
import { z } from "zod";
import { stopReasons } from "../environment/stop-reason.ts";
import { type DeficiencyName, deficiencyNames } from "../reward/deficiencies.ts";

const share = z.number().min(0).max(1);
const common = {
  dataset: z.string(),
  /** Unique within its data set. */
  id: z.string(),
  hops: z.exactOptional(z.number()),
  kind: z.exactOptional(z.string()),
  stopReason: z.enum(stopReasons as readonly [(typeof stopReasons)[number]]),
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
  /** 1 when a passage that was found holds a gold answer, else 0. */
  answerRetrieved: share,
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

/** What an item is measured by, in the order of tables. */
export const metricNames = [
  "em",
  "coverEm",
  "f1",
  "retrievalRecall",
  "answerRetrieved",
  "wellFormed",
  "searches",
  "policyTokens",
  "contextTokens",
  "timeMs",
  "modelCalls",
  "promptTokens",
  "cachedTokens",
  "dollars",
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
  ...deficiencyNames,
]);

/** The key that identifies the question of an item, equal to `questionKey`. */
export function itemKey(item: Pick<Item, "dataset" | "id">): string {
  return `${item.dataset}/${item.id}`;
}
