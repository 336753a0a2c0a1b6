/** What a recipe can say about a search planner: who answers in its place, and what it is rewarded for. */
import { z } from "zod";
import { judgeFields } from "../reward/judge.ts";
import { plannerRewardFields } from "../reward/planner-reward.ts";
import { generatorFields } from "../rollout/generator.ts";
import { defaultType } from "../shared/default-type.ts";
import { modelSchema } from "./model-source-options.ts";

/** The generator: a text names its model alone. */
export const generatorSchema = z.preprocess(
  (value) => (typeof value === "string" ? { model: value } : value),
  z.strictObject({
    model: modelSchema.describe(
      "Who answers, never trained: a source as for `model`, a run (its newest checkpoint), or a server (`type: openai`).",
    ),
    ...generatorFields,
  }),
);

const judgeSchema = z.discriminatedUnion("type", [
  z.strictObject({
    type: defaultType("rule").describe("Answers are compared with the gold answers by `rule`."),
    ...judgeFields,
  }),
  z.strictObject({
    type: z
      .literal("model")
      .describe("A language model says yes or no; anything else is counted and scores 0."),
    model: modelSchema
      .optional()
      .describe(
        "Who judges: a source as for `generator.model`; absent, in mode planner: the generator itself.",
      ),
    maxTokens: z.int().min(1).default(32).describe("Most tokens of a judgement or a grade."),
    ...judgeFields,
  }),
]);

/** Who judges answers of recipes without a planner: as for one, but a model must be named. */
export const answerJudgeSchema = judgeSchema.superRefine((judge, context) => {
  if (judge.type === "model" && judge.model === undefined)
    context.addIssue({
      code: "custom",
      path: ["model"],
      message: "without a generator no model is at hand to judge; name one, or use type: rule",
    });
});
export type AnswerJudge = z.infer<typeof answerJudgeSchema>;

export const plannerSchema = z.strictObject({
  ...plannerRewardFields,
  process: z
    .enum(["none", "model", "goldRecall"])
    .default("model")
    .describe(
      "Who grades the search from 1 to 5 (Eq. 3): `model` the judge's model, or the generator where a rule judges; `goldRecall` a rule, by the share of gold passages found; `none` nobody, as an ablation.",
    ),
  judge: judgeSchema.prefault({}).describe("Who decides whether an answer is right."),
});

export type GeneratorRecipe = z.infer<typeof generatorSchema>;
export type PlannerRecipe = z.infer<typeof plannerSchema>;
