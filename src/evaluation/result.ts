/** What `evaluation/*.json` holds: the contract, the numbers, and one item for each question. */
import { z } from "zod";
import { summarySchema } from "./aggregate.ts";
import { contractSchema } from "./contract.ts";
import { costSchema } from "./cost.ts";
import { itemSchema } from "./item.ts";
import { riskCoverageSchema } from "./risk-coverage.ts";

export const evaluationResultSchema = z.object({
  contract: contractSchema,
  summary: summarySchema,
  /** Absent in older results. */
  cost: z.exactOptional(costSchema),
  /** Selective answering; absent in older results, and where nothing was answered. */
  selective: z.exactOptional(riskCoverageSchema),
  items: z.array(itemSchema),
});

export type { EvaluationCost } from "./cost.ts";
export type EvaluationResult = Readonly<z.infer<typeof evaluationResultSchema>>;
