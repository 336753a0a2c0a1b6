/** What `evaluation/*.json` holds: the contract, the numbers, and one item for each question. */
import { z } from "zod";
import { summarySchema } from "./aggregate.ts";
import { contractSchema } from "./contract.ts";
import { itemSchema } from "./item.ts";

export const evaluationResultSchema = z.object({
  contract: contractSchema,
  summary: summarySchema,
  items: z.array(itemSchema),
});

export type EvaluationResult = Readonly<z.infer<typeof evaluationResultSchema>>;
