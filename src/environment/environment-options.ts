/** What a recipe can say about the environment. */
import { z } from "zod";
import { codecNames } from "./codecs.ts";
import { condenseOptionsSchema } from "./condense-prompt.ts";
import { passageTemplateNames } from "./passage-template.ts";
import { episodeModes, findTemplate, promptNames } from "./prompt.ts";

const fields = z.strictObject({
  mode: z
    .enum(episodeModes)
    .default("search")
    .describe(
      "`search`: the policy searches and answers. `planner`: it searches with several queries at once and hands over to the generator, which answers (docs/algorithms/ai-search-planner.md). The baselines `direct` (answers at once) and `rag` (answers after the k passages that the question itself finds) give any policy one turn.",
    ),
  codec: z
    .enum(codecNames)
    .default("search-r1")
    .describe(
      "How actions are written: `search-r1` as published; `compact` has the same tags with the fewest tokens around them; `plain` has none: the first line is the answer (modes direct and rag); `planner` and the shorter `planner-compact` have several queries a search and no answer (mode planner); `ircot` and `search-o1` are the formats of those baselines (docs/algorithms/baselines.md); `cosearch` calls its search in JSON (docs/algorithms/cosearch.md); `evidence` lets the agent cite passages and say that it does not know (docs/evaluation.md).",
    ),
  prompt: z
    .enum(promptNames)
    .default("search-r1")
    .describe(
      "What opens an episode: `search-r1` explains the format; `bare` is the question alone; `answer` asks for a few words without tags (codec plain); `planner` explains the two tools of mode planner; `reason` asks for a chain of thought before the answer (modes direct and rag); `ircot`, `search-o1`, `evidence` and `cosearch` explain the codecs of those names.",
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
    .describe("Passages of one query, at least 1; in mode rag, those of the prompt."),
  maxSearches: z
    .int()
    .min(0)
    .default(4)
    .describe(
      "Turns that may search; an invalid turn uses one up as well. After them comes one last turn that can only answer, in mode planner the generator. 0 = answer at once.",
    ),
  retrieveFirst: z
    .boolean()
    .default(false)
    .describe(
      "True, in mode search: the prompt shows the passages that the question itself finds, before the first turn (IRCoT; prompt ircot).",
    ),
  refuseRepeats: z
    .boolean()
    .default(false)
    .describe(
      "True: a query that the episode has searched for already is not searched again, and a message says so (Search-o1). It uses up a turn.",
    ),
  condense: condenseOptionsSchema
    .optional()
    .describe(
      "Passages are not shown: in a completion of its own for each search, the policy writes down what of them helps, and that is shown (the reason-in-documents step of Search-o1). No reinforcement trains that completion. Absent: passages are shown.",
    ),
  maxSubQueries: z
    .int()
    .min(1)
    .default(10)
    .describe("Most queries of an episode in mode planner; those beyond are not searched."),
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

type Fields = z.infer<typeof fields>;
type Issue = (key: keyof Fields, message: string) => void;

export const environmentOptionsSchema = fields.superRefine((options, context) => {
  const issue: Issue = (key, message) => context.addIssue({ code: "custom", path: [key], message });
  checkFormat(options, issue);
  checkSearches(options, issue);
});

/** Mode, codec and prompt must speak of the same. */
function checkFormat({ mode, codec, prompt, examples }: Fields, issue: Issue): void {
  const isPlanner = codec === "planner" || codec === "planner-compact";
  if (isPlanner !== (mode === "planner"))
    issue(
      "codec",
      `mode planner and the codecs planner and planner-compact need each other; mode is ${mode}, codec ${codec}`,
    );
  else if (mode === "search" && codec === "plain")
    issue("codec", "plain has no tags to search with; use it in mode direct or rag");
  else if (findTemplate({ prompt, mode }) === undefined)
    issue(
      "prompt",
      `${prompt} does not explain mode ${mode}; ${mode === "planner" ? "use planner or bare" : "see docs/recipes.md for what does"}`,
    );
  else if (codec === "plain" && (prompt === "search-r1" || prompt === "reason"))
    issue("prompt", `${prompt} asks for tags, which codec plain takes for text; use prompt answer`);
  else if (codec !== "plain" && prompt === "answer")
    issue("codec", `prompt answer asks for plain text, ${codec} reads tags; use codec plain`);
  for (const name of ["ircot", "search-o1", "cosearch"] as const)
    if ((codec === name) !== (prompt === name))
      issue("codec", `codec ${name} and prompt ${name} need each other; codec is ${codec}, prompt ${prompt}`);
  if (prompt === "evidence" && codec !== "evidence")
    issue(
      "codec",
      `prompt evidence asks for citations, which codec ${codec} does not read; use codec evidence`,
    );
  if ((mode === "search" || mode === "planner") && examples.length > 0)
    issue("examples", `mode ${mode} shows no examples; leave them out, or use mode direct or rag`);
}

/** What changes the searches must have searches to change, and a place to show them. */
function checkSearches(options: Fields, issue: Issue): void {
  const { mode, codec, prompt } = options;
  if (codec === "evidence" && (options.passageTemplate === "text" || options.condense !== undefined))
    issue(
      "passageTemplate",
      "codec evidence cites passages by number; use passageTemplate search-r1 or numbered, without condense",
    );
  const hasPlace = mode === "search" && findTemplate({ prompt, mode })?.includes("{information}") === true;
  if (options.retrieveFirst !== hasPlace)
    issue(
      "retrieveFirst",
      hasPlace
        ? `prompt ${prompt} shows what the question finds; set retrieveFirst to true`
        : `prompt ${prompt} has no place for passages in mode ${mode}; use prompt ircot, or leave retrieveFirst out`,
    );
  if (mode !== "search" && (options.condense !== undefined || options.refuseRepeats))
    issue(
      options.condense === undefined ? "refuseRepeats" : "condense",
      `only mode search has searches of the policy to change; mode is ${mode}`,
    );
}

export type EnvironmentOptions = z.infer<typeof environmentOptionsSchema>;
