/** What a recipe can say about the environment. */
import { z } from "zod";
import { codecNames } from "./codecs.ts";
import { passageTemplateNames } from "./passage-template.ts";
import { episodeModes, findTemplate, promptNames } from "./prompt.ts";

const fields = z.strictObject({
  mode: z
    .enum(episodeModes)
    .default("search")
    .describe(
      "`search`: the policy searches and answers. The baselines `direct` (answers at once) and `rag` (answers after the k passages that the question itself finds) give any policy one turn.",
    ),
  codec: z
    .enum(codecNames)
    .default("search-r1")
    .describe(
      "How actions are written: `search-r1` as published; `compact` has the same tags with the fewest tokens around them; `plain` has none: the first line is the answer (modes direct and rag).",
    ),
  prompt: z
    .enum(promptNames)
    .default("search-r1")
    .describe(
      "What opens an episode: `search-r1` explains the format; `bare` is the question alone; `answer` asks for a few words without tags (codec plain).",
    ),
  chat: z
    .union([z.literal("auto"), z.boolean()])
    .default("auto")
    .describe(
      "Whether the prompt goes through the model's chat template, as one message of the user; `auto`: where the model has one.",
    ),
  today: z.iso
    .date()
    .optional()
    .describe(
      "Day that chat templates are told which ask for it, such as 2026-01-31; absent: those are refused.",
    ),
  examples: z
    .array(
      z.strictObject({
        question: z.string().min(1).describe("Asked before."),
        answer: z.string().min(1).describe("As the policy should write it."),
      }),
    )
    .default([])
    .describe(
      "Answered questions that are shown first, in modes direct and rag: as earlier turns of a chat, else within the prompt.",
    ),
  passageTemplate: z
    .enum(passageTemplateNames)
    .default("search-r1")
    .describe("How passages are shown: `search-r1` with rank and title, `numbered`, or `text` alone."),
  k: z
    .int()
    .min(1)
    .default(3)
    .describe("Passages of one search, at least 1; in mode rag, those of the prompt."),
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

export const environmentOptionsSchema = fields.superRefine((options, context) => {
  const { mode, codec, prompt, examples } = options;
  const issue = (key: string, message: string): void =>
    context.addIssue({ code: "custom", path: [key], message });
  if (mode === "search" && codec === "plain")
    issue("codec", "plain has no tags to search with; use it in mode direct or rag");
  else if (findTemplate({ prompt, mode }) === undefined)
    issue("prompt", `${prompt} does not explain mode ${mode}; use it in mode direct or rag`);
  else if (codec === "plain" && prompt === "search-r1")
    issue("prompt", "search-r1 asks for tags, which codec plain takes for text; use prompt answer");
  else if (codec !== "plain" && prompt === "answer")
    issue("codec", `prompt answer asks for plain text, ${codec} reads tags; use codec plain`);
  if (mode === "search" && examples.length > 0)
    issue("examples", "mode search shows no examples; leave them out, or use mode direct or rag");
});

export type EnvironmentOptions = z.infer<typeof environmentOptionsSchema>;
