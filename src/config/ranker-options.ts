/**
 * What a recipe can say about who chooses the passages of each search (CoSearch, docs/algorithms/cosearch.md). Nothing:
 * the retriever's best are shown. The rules that span the ranker and other options are here too.
 */
import { z } from "zod";
import { queryGroupingSchema } from "../algorithm/query-groups.ts";
import { scheduleOptionsSchema } from "../algorithm/schedule.ts";
import { rankingPromptSchema } from "../environment/ranking-prompt.ts";
import { rankingRewardSchema } from "../reward/ranking-reward.ts";
import { defaultType } from "../shared/default-type.ts";
import { isServed, modelSchema } from "./model-source-options.ts";
import { type Stage, samplingOptionsSchema } from "./stage-options.ts";

const candidates = z
  .int()
  .min(1)
  .default(50)
  .describe("Passages that are fetched for each search: N; environment.k of them are shown: K.");

const generative = rankingPromptSchema.safeExtend({
  type: defaultType("generative").describe(
    "A model reads question, query and candidates and writes which K are shown, best first.",
  ),
  candidates,
  weights: z
    .enum(["own", "shared"])
    .default("own")
    .describe("`own`: a model and an optimiser of its own; `shared`: the agent's model plays both parts."),
  model: modelSchema
    .optional()
    .describe(
      "What ranks, with `weights: own`; like `model` of the recipe, or a served model that is not trained.",
    ),
  trainable: z
    .boolean()
    .default(true)
    .describe("False: reinforcement leaves the ranker as it is (the frozen ranker of the paper)."),
  maxTokens: z.int().min(1).default(1024).describe("Most tokens of one ranking, reason included."),
  sampling: samplingOptionsSchema
    .prefault({})
    .describe(
      "How rankings are sampled while both explore; temperature 1 in the paper, in effect 0 as released. Evaluations sample as they sample the agent.",
    ),
  grouping: queryGroupingSchema.prefault({}).describe("Which of the ranker's calls are compared."),
  reward: rankingRewardSchema.prefault({}).describe("What a ranking earns."),
  judge: z
    .strictObject({
      model: modelSchema.describe(
        "Who grades: a model that exists, a run (its newest checkpoint), or a server (`type: openai`).",
      ),
      samples: z
        .int()
        .min(1)
        .default(4)
        .describe("Gradings of one ranking, whose mean counts; 4 as released."),
      temperature: z.number().min(0).default(0.7).describe("Of the gradings; 0.7 as released."),
      maxTokens: z.int().min(1).default(64).describe("Most tokens of one grading."),
    })
    .optional()
    .describe("Who grades rankings from 0 to 3, for `reward.combine: judge` (an ablation)."),
  schedule: scheduleOptionsSchema
    .optional()
    .describe("The ranker's own learning rate over the steps of a reinforcement stage; absent: the stage's."),
  averageDuplicates: z
    .boolean()
    .default(false)
    .describe(
      "Whether calls of a group with equal prompts and equal rankings get the mean of their rewards, as released.",
    ),
  rejectEqualRewards: z
    .boolean()
    .default(false)
    .describe("Leave out groups whose rewards are all equal, as released."),
  maxCallsPerTrajectory: z
    .number()
    .positive()
    .optional()
    .describe(
      "Most calls that are trained on, times the agent's trajectories of the step; whole groups in random order; 2 as released, absent: all.",
    ),
});

const oracle = z.strictObject({
  type: z
    .literal("oracle")
    .describe(
      "During the episode, candidates that hold a gold answer are shown first: what better ranking could give at most, nearly.",
    ),
  candidates,
});

const none = z.strictObject({
  type: z
    .literal("none")
    .describe("The retriever's best are shown, as without `ranker`; switches one off from the command line."),
});

export const rankerSchema = z.discriminatedUnion("type", [generative, oracle, none]);

export type RankerOptions = z.output<typeof rankerSchema>;
export type GenerativeRankerOptions = z.output<typeof generative>;

/** What the rules look at. */
export interface CheckedRanker {
  readonly ranker?: RankerOptions | undefined;
  readonly environment: { readonly k: number };
  readonly stages: readonly Stage[];
}

type Context = z.core.$RefinementCtx;

/** Adds an issue for every rule of a ranker that is broken. */
export function checkRanker({ ranker, environment, stages }: CheckedRanker, context: Context): void {
  const issue = (path: readonly (string | number)[], message: string): void =>
    context.addIssue({ code: "custom", path: [...path], message });
  if (ranker === undefined || ranker.type === "none") return;
  if (ranker.candidates < environment.k)
    issue(
      ["ranker", "candidates"],
      `${environment.k} of ${ranker.candidates} candidates cannot be shown (environment.k); raise it`,
    );
  if (ranker.type === "generative") checkGenerative(ranker, stages, issue);
}

function checkGenerative(
  ranker: GenerativeRankerOptions,
  stages: readonly Stage[],
  issue: (path: readonly (string | number)[], message: string) => void,
): void {
  const { weights, model, trainable, schedule, judge, reward } = ranker;
  if ((reward.combine === "judge") !== (judge !== undefined))
    issue(
      ["ranker", "judge"],
      judge === undefined
        ? "reward.combine judge needs a model that grades; name one in ranker.judge"
        : `reward.combine ${reward.combine} asks no judge; leave ranker.judge out, or use judge`,
    );
  if (judge?.model.type === "fresh")
    issue(["ranker", "judge", "model"], "a fresh model knows nothing; name one that exists");
  if (weights === "own" && model === undefined)
    issue(
      ["ranker", "model"],
      "a ranker with weights of its own needs a model; name one, or set weights: shared",
    );
  if (weights === "shared" && model !== undefined)
    issue(["ranker", "model"], "with weights: shared the agent's model ranks; leave model out");
  if (weights === "shared" && schedule !== undefined)
    issue(["ranker", "schedule"], "shared weights have one learning rate; leave schedule out");
  if (model !== undefined && isServed(model) && trainable)
    issue(["ranker", "trainable"], "a served model is not trained; set trainable: false");
  stages.forEach((stage, index) => {
    const isRanking = stage.type === "supervised" && stage.teacher.type === "ranking";
    if (isRanking && model !== undefined && isServed(model))
      issue(["stages", index, "teacher"], "a served ranker is not trained; leave the stage out");
    if (trainable && stage.type === "reinforcement" && stage.algorithm.type !== "grpo")
      issue(
        ["stages", index, "algorithm", "type"],
        "a ranker is trained by comparing its calls; use algorithm.type grpo, or set ranker.trainable: false",
      );
  });
}
