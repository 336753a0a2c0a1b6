/**
 * The one schema of a recipe: everything a training depends on, in one file. Each room declares its own options;
 * this file joins them and adds the rules that span several rooms. `docs/recipes.md` is made from it.
 */
import { z } from "zod";
import { loraOptionsSchema } from "../engine/lora-options.ts";
import { tinkerOptionsSchema } from "../engine/tinker/tinker-options.ts";
import { samplingWeights } from "../engine/weight-quantization.ts";
import { environmentOptionsSchema } from "../environment/environment-options.ts";
import { evaluationOptionsSchema } from "../evaluation/evaluation-options.ts";
import { byteSizePattern } from "../shared/byte-size.ts";
import { defaultType } from "../shared/default-type.ts";
import { dataOptionsSchema } from "./data-options.ts";
import { agentModelSchema } from "./model-source-options.ts";
import { answerJudgeSchema, generatorSchema, plannerSchema } from "./planner-options.ts";
import { rankerSchema } from "./ranker-options.ts";
import { checkRecipe } from "./recipe-rules.ts";
import { retrieverSchema } from "./retriever-options.ts";
import { stageSchema } from "./stage-options.ts";

export const embeddedOptionsSchema = z.strictObject({
  type: defaultType("embedded").describe("ONNX Runtime inside this process, on the CPU."),
  threads: z
    .int()
    .min(1)
    .optional()
    .describe("Threads of the engine; absent: one for each physical core. More than cores are slower."),
  memoryBudget: z
    .union([
      z.int().min(1),
      z.string().regex(byteSizePattern, "bytes, or a number with a unit such as 6GB or 500MB"),
    ])
    .optional()
    .describe(
      "Most memory of training, bytes or such as `6GB`: from it the tokens of a micro-batch are chosen, and how much is computed twice instead of kept (docs/training-memory.md); absent: three quarters of this machine's memory.",
    ),
  tokenBudget: z
    .int()
    .min(64)
    .optional()
    .describe(
      "Most tokens of one micro-batch, padding included; absent: chosen from `memoryBudget`, at most 4096.",
    ),
  cacheMemory: z
    .union([
      z.int().min(1),
      z.string().regex(byteSizePattern, "bytes, or a number with a unit such as 2GB or 500MB"),
    ])
    .default("4GB")
    .describe(
      "Most memory of keys and values while sampling, bytes or such as `2GB`; episodes that do not fit wait, and what idle ones left is forgotten.",
    ),
  optimizerState: z
    .enum(["memory", "disk"])
    .default("memory")
    .describe(
      "Where AdamW's two moments lie, 8 bytes for each trained number: `disk` is a file without a name in the run folder, read and written in pieces at every step. Weights and checkpoints are the same bit for bit.",
    ),
  samplingWeights: z
    .enum(samplingWeights)
    .default("f32")
    .describe(
      "Linear layers while sampling: `f32` as trained, or rounded to 8 or 4 bits (docs/models.md). The loss corrects for the difference, which `parity/klDivergence` shows.",
    ),
  lora: loraOptionsSchema
    .optional()
    .describe(
      "Trains low-rank adapters beside frozen weights (LoRA, docs/models.md), which needs far less memory; absent: all weights are trained.",
    ),
});

const engineOptionsSchema = z.discriminatedUnion("type", [embeddedOptionsSchema, tinkerOptionsSchema]);

export type EmbeddedSection = z.infer<typeof embeddedOptionsSchema>;

export const recipeSchema = z
  .strictObject({
    name: z
      .string()
      .regex(/^[a-z0-9][a-z0-9-]*$/, "lower-case letters, digits and dashes, such as my-agent")
      .describe("Names the training in reports and default folders."),
    seed: z.int().min(0).default(1).describe("Everything random derives from it; equal seeds, equal runs."),
    data: dataOptionsSchema.describe("What is asked and what is searched."),
    retriever: retrieverSchema.prefault({}).describe("What is searched, and how passages are ranked."),
    recordRetrieval: z
      .string()
      .min(1)
      .optional()
      .describe("File to which every query and its answer is appended, for `retriever.type: replay`."),
    ranker: rankerSchema
      .optional()
      .describe(
        "Who chooses the passages of each search among more candidates (docs/algorithms/cosearch.md); absent: the retriever's best are shown.",
      ),
    environment: environmentOptionsSchema.prefault({}).describe("The rules of an episode."),
    model: agentModelSchema.describe(
      "What is trained, or only asked: a text names a model that exists (`model: smollm2-135m`), a mapping with `type: fresh` makes one, with `type: openai` it is behind a server, with `type: remote` behind `engine.url`.",
    ),
    recordPolicy: z
      .string()
      .min(1)
      .optional()
      .describe(
        "File to which every completion of `eval` and `ask` is appended, for `model.type: replay`; a training records none.",
      ),
    generator: generatorSchema
      .optional()
      .describe(
        "Mode planner: the frozen model that answers when the planner hands over; a text names its model (docs/algorithms/ai-search-planner.md).",
      ),
    planner: plannerSchema
      .optional()
      .describe(
        "Mode planner: what the reward `planner` is made of, and who judges; `planner: {}` for the paper's values.",
      ),
    engine: engineOptionsSchema.prefault({}).describe("What computes."),
    stages: z
      .array(stageSchema)
      .default([])
      .describe("What is trained on, one stage after the other; none for a recipe that is only evaluated."),
    evaluation: evaluationOptionsSchema
      .safeExtend({
        judge: answerJudgeSchema
          .optional()
          .describe(
            "Who judges answers beside exact match, in the evaluations alone: `score` of each question. Mode planner has `planner.judge` instead; absent: nobody.",
          ),
      })
      .prefault({})
      .describe("How progress is measured on held-out questions."),
    checkpoint: z
      .strictObject({
        everySteps: z
          .int()
          .min(1)
          .default(1)
          .describe("Steps between two checkpoints; the end of a stage always makes one."),
        keep: z.int().min(1).default(3).describe("Newest checkpoints that are kept."),
      })
      .prefault({})
      .describe("When the state is saved; a kill loses the steps since the last checkpoint."),
  })
  .superRefine(checkRecipe);

export type Recipe = z.infer<typeof recipeSchema>;
