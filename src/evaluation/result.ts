/** What `evaluation/*.json` holds: the contract, the numbers, and one item for each question. */
import { z } from "zod";
import { summarySchema } from "./aggregate.ts";
import { contractSchema } from "./contract.ts";
import { itemSchema } from "./item.ts";
import { riskCoverageSchema } from "./risk-coverage.ts";

const count = z.int().min(0);

/** What the policy used for all episodes together, failed ones among them. */
export const costSchema = z.object({
  /** Completions. */
  calls: count,
  promptTokens: count,
  /** Prompt tokens that a server found in its cache. */
  cachedTokens: count,
  completionTokens: count,
  /** 0 where the policy has no price. */
  dollars: z.number().min(0),
  pricing: z.enum(["priced", "unpriced"]),
});

export type EvaluationCost = Readonly<z.infer<typeof costSchema>>;

export const evaluationResultSchema = z.object({
  contract: contractSchema,
  summary: summarySchema,
  /** Absent in older results. */
  cost: z.exactOptional(costSchema),
  /** Selective answering; absent in older results, and where nothing was answered. */
  selective: z.exactOptional(riskCoverageSchema),
  items: z.array(itemSchema),
});

export type EvaluationResult = Readonly<z.infer<typeof evaluationResultSchema>>;
