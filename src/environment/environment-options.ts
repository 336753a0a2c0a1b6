/** What a recipe can say about the environment. */
import { z } from "zod";
import { codecNames } from "./codecs.ts";
import { passageTemplateNames } from "./passage-template.ts";
import { promptNames } from "./prompt.ts";

export const environmentOptionsSchema = z.strictObject({
  codec: z
    .enum(codecNames)
    .default("search-r1")
    .describe(
      "How actions are written: `search-r1` as published; `compact` has the same tags with the fewest tokens around them.",
    ),
  prompt: z
    .enum(promptNames)
    .default("search-r1")
    .describe("What opens an episode: `search-r1` explains the format; `bare` is the question alone."),
  passageTemplate: z
    .enum(passageTemplateNames)
    .default("search-r1")
    .describe("How passages are shown: `search-r1` with rank and title, `numbered`, or `text` alone."),
  k: z.int().min(1).default(3).describe("Passages of one search, at least 1."),
  maxSearches: z
    .int()
    .min(0)
    .default(4)
    .describe(
      "Turns that may search; an invalid turn uses one up as well. After them comes one last turn that can only answer. 0 = answer at once.",
    ),
  maxTurnTokens: z.int().min(1).default(500).describe("Most tokens that the policy may write in one turn."),
  maxObservationTokens: z
    .int()
    .min(1)
    .default(500)
    .describe("Most tokens of one observation; passages are shortened to fit."),
  tellBudget: z
    .boolean()
    .default(false)
    .describe(
      "True: after each turn the environment says how many searches are left, and asks for the answer before the last turn.",
    ),
});

export type EnvironmentOptions = z.infer<typeof environmentOptionsSchema>;
