/** What a recipe can say about a search engine that a language model plays. */
import { z } from "zod";
import { noisyTemplate, usefulTemplate } from "./templates.ts";

const probability = z.number().min(0).max(1);
const template = z
  .string()
  .refine((text) => text.includes("{query}"), "must hold {query}")
  .refine((text) => text.includes("{count}"), "must hold {count}");

export const simulatedSourceSchema = z.strictObject({
  type: z.literal("simulated").describe("A language model writes the passages, as in ZeroSearch."),
  documents: z
    .int()
    .min(1)
    .max(50)
    .default(5)
    .describe(
      "Documents that are written for a query; a smaller k takes the first, a larger one gets no more.",
    ),
  words: z.int().min(1).default(30).describe("Words that each document should have, about."),
  noise: z
    .strictObject({
      start: probability.default(0).describe("Probability of a noisy answer at step 0."),
      end: probability.default(0.5).describe("Probability of a noisy answer at the last step."),
      base: z
        .number()
        .positive()
        .default(4)
        .describe("How late the noise rises: 1 is a straight line, 4 as in ZeroSearch."),
      steps: z.int().min(1).describe("Steps over which the noise rises: those of the training."),
    })
    .optional()
    .describe("A curriculum of noise; absent: every answer is useful."),
  seed: z.int().min(0).default(0).describe("Decides which queries are answered with noise first."),
  retries: z.int().min(0).max(10).default(2).describe("Further attempts when a reply cannot be read."),
  usefulTemplate: template
    .default(usefulTemplate)
    .describe("Prompt for useful documents, with {query}, {count}, {words} and {hint}."),
  noisyTemplate: template
    .default(noisyTemplate)
    .describe("Prompt for noisy documents, with {query}, {count}, {words} and {hint}."),
  cacheEntries: z
    .int()
    .min(1)
    .default(10_000)
    .describe("Answers kept in memory, so that a query asked again gets the same documents."),
});

export type SimulatedRetrieverOptions = z.output<typeof simulatedSourceSchema>;
