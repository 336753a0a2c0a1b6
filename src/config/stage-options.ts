/**
 * Options of the stages of a training: supervised warm-up on demonstrations, and reinforcement. A stage starts from
 * the weights the one before left, with a fresh optimiser. Everything an algorithm needs is declared in its own room.
 */
import { z } from "zod";
import { collapseOptionsSchema } from "../algorithm/collapse.ts";
import { algorithmOptionsSchema } from "../algorithm/options.ts";
import { scheduleOptionsSchema } from "../algorithm/schedule.ts";
import { rewardOptionsSchema } from "../reward/reward.ts";
import { rankingTeacherSchema } from "../rollout/ranking-teacher.ts";
import { teacherOptionsSchema } from "../rollout/teacher.ts";

const optimizerOptionsSchema = z.strictObject({
  beta1: z.number().min(0).lt(1).default(0.9).describe("Decay of the mean of gradients, 0 to 1."),
  beta2: z.number().min(0).lt(1).default(0.95).describe("Decay of the mean of squared gradients, 0 to 1."),
  epsilon: z.number().positive().default(1e-8).describe("Added to the root of the second moment."),
  weightDecay: z
    .number()
    .min(0)
    .default(0)
    .describe("Decoupled decay of matrices for each step, times the learning rate; 0 is none."),
  maxGradientNorm: z
    .number()
    .min(0)
    .default(1)
    .describe("A longer gradient is scaled down to this Euclidean norm; 0 never scales."),
});

export const samplingOptionsSchema = z.strictObject({
  temperature: z.number().min(0).default(1).describe("Divides the logits before sampling; 0 is greedy."),
  topP: z.number().gt(0).max(1).default(1).describe("Nucleus mass that is sampled from, 0 to 1; 1 is all."),
  topK: z.int().min(0).default(0).describe("Most likely tokens that are sampled from; 0 is all."),
});

const name = z
  .string()
  .regex(/^[a-z][a-z0-9-]*$/, "lower-case letters, digits and dashes, such as warm-up")
  .describe("Names the stage in metrics, reports and overrides; unique in the recipe.");
const steps = z.int().min(1).describe("Steps of this stage.");
/** What a stage can take over from the one before it. */
export const carried = ["optimizer", "schedule", "reference"] as const;

const carry = z
  .array(z.enum(carried))
  .default([])
  .describe(
    "What goes on from the stage before instead of starting anew: `optimizer` its moments, `schedule` the count of steps behind warm-up and decay, `reference` the frozen policy of the KL term (both stages then need `algorithm.kl`). Absent: all three start anew, as DeSA was released.",
  );

/** What `until` can watch; each is a metric of evaluations. */
export const validationMetrics = ["em", "f1", "answerRetrieved"] as const;

export const untilOptionsSchema = z.strictObject({
  metric: z
    .enum(validationMetrics)
    .default("em")
    .describe(
      "What is watched on validation questions, decoded as for evaluation: exact match, token F1, or the share to which a search found a gold answer.",
    ),
  everySteps: z.int().min(1).default(10).describe("Steps between two measurements."),
  patience: z
    .int()
    .min(1)
    .default(3)
    .describe("Measurements in a row without a better one after which the stage ends."),
  n: z
    .int()
    .min(1)
    .default(256)
    .describe(
      "Most validation questions: of a world's validation split, or of data.questions.validation; no test question is looked at.",
    ),
});

export type UntilOptions = z.infer<typeof untilOptionsSchema>;

const schedule = scheduleOptionsSchema.describe("Learning rate over the steps of this stage.");
const optimizer = optimizerOptionsSchema.prefault({}).describe("AdamW.");

export const supervisedStageSchema = z.strictObject({
  type: z
    .literal("supervised")
    .describe(
      "Next-token training on the trajectories of a scripted teacher, in the mode of the environment.",
    ),
  name,
  steps,
  batchSize: z
    .int()
    .min(1)
    .default(32)
    .describe("Demonstrations for one optimiser update, less those that the teacher cannot give."),
  schedule,
  optimizer,
  teacher: z
    .discriminatedUnion("type", [...teacherOptionsSchema.options, rankingTeacherSchema])
    .prefault({})
    .describe(
      "Who demonstrates, by the questions' plans or by their gold passages; `ranking` demonstrates to the ranker.",
    ),
  firstTurnOnly: z
    .boolean()
    .default(false)
    .describe(
      "True: train on the question and the first turn of each demonstration alone. Short sequences on which a fresh model learns to copy names cheaply.",
    ),
  contextTokenWeight: z
    .number()
    .min(0)
    .max(1)
    .default(0.4)
    .describe(
      "Loss weight of tokens the teacher did not write (question, passages) against 1 for its own; helps a fresh model learn to copy.",
    ),
});

export const reinforcementStageSchema = z.strictObject({
  type: z
    .literal("reinforcement")
    .describe("Policy-gradient training on the reward of sampled trajectories."),
  name,
  steps,
  until: untilOptionsSchema
    .optional()
    .describe(
      "Ends the stage before `steps`, once validation stops rising. Then, and also after `steps`, training goes on from the weights that were best on validation (the first of equals; not those of the stage's start). Absent: the stage takes its steps and goes on from the last weights.",
    ),
  carry,
  questionsPerStep: z
    .int()
    .min(1)
    .describe("Questions sampled for one step; times algorithm.groupSize trajectories."),
  maxStaleness: z
    .int()
    .min(0)
    .default(0)
    .describe(
      "Steps by which the weights that sample may be older than those that are trained. 0: a step samples, then updates. Above: so many later steps are sampled while an update runs, each turn with the newest weights, and the ratio of the loss corrects for the difference (docs/cluster.md); the embedded engine, which does one at a time, refuses it.",
    ),
  maxInFlight: z
    .int()
    .min(1)
    .optional()
    .describe(
      "Most episodes at once; absent: as many as one step has. With `maxStaleness` those of later steps take the places that become free.",
    ),
  episodeRetries: z
    .int()
    .min(0)
    .default(2)
    .describe(
      "How often an episode that retriever or policy failed is played again, with its seed, before it is dropped and counted.",
    ),
  schedule,
  optimizer,
  algorithm: algorithmOptionsSchema.prefault({}).describe("From rewards to the loss."),
  reward: rewardOptionsSchema.prefault({ type: "exactMatch" }).describe("What a finished trajectory earns."),
  sampling: samplingOptionsSchema.prefault({}).describe("How the policy samples while it explores."),
  collapse: collapseOptionsSchema.prefault({}).describe("When to stop because training went wrong."),
});

export const stageSchema = z.discriminatedUnion("type", [supervisedStageSchema, reinforcementStageSchema]);

export type SupervisedStage = z.infer<typeof supervisedStageSchema>;
export type ReinforcementStage = z.infer<typeof reinforcementStageSchema>;
export type Stage = z.infer<typeof stageSchema>;
