/** What a recipe can say about evaluation. */
import { z } from "zod";

export const evaluationOptionsSchema = z.strictObject({
  split: z
    .enum(["validation", "test"])
    .optional()
    .describe("Split of a built-in world that questions are taken from; absent: test."),
  n: z
    .int()
    .min(1)
    .default(256)
    .describe(
      "Most questions that are asked: the first ones of a world's split, or an even choice over all files of data.questions.evaluation; fewer when there are fewer.",
    ),
  everySteps: z
    .int()
    .min(1)
    .optional()
    .describe("Steps of a reinforcement stage between two evaluations; absent: only before and after it."),
  sampling: z
    .strictObject({
      temperature: z.number().min(0).default(0).describe("Divides the logits before sampling; 0 is greedy."),
      topP: z
        .number()
        .gt(0)
        .max(1)
        .default(1)
        .describe("Nucleus mass that is sampled from, 0 to 1; 1 is all."),
      topK: z.int().min(0).default(0).describe("Most likely tokens that are sampled from; 0 is all."),
    })
    .prefault({})
    .describe("How the policy decodes; greedy by default."),
});

export type EvaluationOptions = z.infer<typeof evaluationOptionsSchema>;
