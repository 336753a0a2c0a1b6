/** What a recipe can say about the `lab` world. */
import { z } from "zod";
import { MAX_NAME_WORDS, RELATIONS } from "./lab-facts.ts";

const count = z.int().min(1);

export const labOptionsSchema = z.strictObject({
  name: z.literal("lab").describe("Invented names, any size."),
  seed: z
    .int()
    .min(0)
    .default(1)
    .describe("Decides names, facts, split and questions; independent of the training's seed."),
  entities: z
    .int()
    .min(20)
    .max(1_000_000)
    .default(1000)
    .describe("How many entities there are, each with one passage of facts."),
  nameWords: z
    .int()
    .min(5)
    .max(MAX_NAME_WORDS)
    .default(300)
    .describe("How many words names are made of; a name is two of them. At least the root of entities."),
  sharedWords: z
    .number()
    .min(0)
    .max(1)
    .default(0)
    .describe(
      "How hard names are to tell apart: with 0 all nameWords are in use, with 1 only as many as are needed to name every entity, so that each word is in as many names as possible.",
    ),
  relations: z.int().min(1).max(RELATIONS.length).default(3).describe("How many relations there are."),
  hops: z.array(z.int().min(1).max(6)).min(1).default([1, 2]).describe("Which numbers of hops are asked."),
  distractors: z
    .int()
    .min(0)
    .max(10)
    .default(0)
    .describe("Passages per entity that name it beside others but hold none of the facts asked."),
  familiar: z
    .int()
    .min(0)
    .default(0)
    .describe(
      "How many questions of one hop are the same in every split, so that a policy can know their answers by heart as a language model knows what it has often read. They ask the last relation, which the other questions then leave alone: in training a kind of their own, which takes its turn, in the held-out splits as many as the others, up to this number.",
    ),
  trainQuestions: count.default(4000).describe("At most so many training questions."),
  validationQuestions: count.default(300).describe("At most so many validation questions."),
  testQuestions: count.default(600).describe("At most so many test questions."),
});
export type LabOptions = z.output<typeof labOptionsSchema>;
