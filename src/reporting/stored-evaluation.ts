/** An evaluation as a run folder keeps it: the result, and after which step it was made. */
import { z } from "zod";
import { type EvaluationResult, evaluationResultSchema } from "../evaluation/result.ts";

export interface StoredEvaluation {
  /** Such as `before`, `after`, `grpo-20`; `before` and `after` are what the report compares. */
  readonly name: string;
  readonly stage: string;
  readonly step: number;
  readonly result: EvaluationResult;
}

export const storedEvaluationSchema = z.object({
  name: z.string(),
  stage: z.string(),
  step: z.int(),
  result: evaluationResultSchema,
});
