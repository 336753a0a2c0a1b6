/** `forager ask`: one question to a trained agent, with everything it searched and read. */
import { UsageError } from "../../errors.ts";
import { renderTranscript } from "../../reporting/transcript.ts";
import { openSearch } from "../../retrieval/search-folder.ts";
import { citedPassages, hasAbstained } from "../../reward/citations.ts";
import { runRollout } from "../../rollout/rollout.ts";
import type { Trajectory } from "../../rollout/trajectory.ts";
import { Closers } from "../../shared/closers.ts";
import { openFrozenModels } from "../../training/open-generator.ts";
import { requirePromptsFit } from "../../training/prompt-fit.ts";
import { loadData } from "../../training/setup.ts";
import { processWorld } from "../../training/world.ts";
import { defineCommand } from "../command.ts";
import { findModel, openPolicy, openRankerOf } from "../open-model.ts";
import { weightsOption, withWeights } from "../weights-option.ts";

export const askCommand = defineCommand({
  name: "ask",
  summary: "Ask a trained agent a question.",
  details: "The agent plays one episode greedily, by the rules and over the corpus of its run.",
  args: [
    { name: "TARGET", doc: "a run, a recipe (the model it starts from), or a model with --recipe" },
    { name: "QUESTION", doc: "in quotes" },
  ],
  options: {
    recipe: {
      type: "text",
      value: "RECIPE",
      doc: "Rules and data; needed for a model, a run has its own.",
    },
    index: { type: "text", value: "INDEX", doc: "Search this index instead of the run's corpus." },
    weights: weightsOption,
    set: {
      type: "list",
      value: "KEY=VALUE",
      doc: "Override of the recipe, such as environment.k=5; repeatable.",
    },
  },
  examples: ['ask runs/quickstart "In which country is Heathrow?"', 'ask runs/quickstart "..." --json'],
  async run({ args, options: { recipe: recipePath, index, weights, set } }, io) {
    const [target, text] = args as [string, string];
    if (text.trim() === "") throw new UsageError("ask: the question is empty; put it in quotes");
    const source = await findModel(target, { recipePath, overrides: withWeights(set, weights) });
    const { recipe } = source;
    const opened = new Closers();
    try {
      const data =
        index === undefined
          ? await loadData(recipe, processWorld(io))
          : await openSearch(index, {}, processWorld(io));
      opened.defer(() => data.close());
      const { retriever } = data;
      const agent = await openPolicy(source, io, opened);
      const { policy, tokenizer, contextLength } = agent;
      const ranker = await openRankerOf(source, { watcher: io, closers: opened, agent });
      const frozen = await openFrozenModels(recipe, { watcher: io, closers: opened });
      const sampling = { temperature: 0, topP: 1, topK: 0 };
      const question = { id: "asked", dataset: "ask", text, goldAnswers: [], goldPassages: [] };
      if (tokenizer !== undefined && contextLength !== undefined)
        await requirePromptsFit([question], recipe.environment, { tokenizer, contextLength });
      const trajectory = await runRollout({
        policy,
        retriever,
        environment: recipe.environment,
        ranker: ranker?.sampling(sampling),
        generator: frozen?.generator,
        sampling,
        tokenizer,
        contextLength,
        question,
        group: "ask",
        sample: 0,
        seed: recipe.seed,
        now: io.progress.now,
        signal: io.signal,
      });
      io.signal.throwIfAborted();
      io.print(renderTranscript(trajectory, { color: io.color, hidePrompt: true }).trimEnd());
      return { json: trajectoryJson(trajectory), exitCode: trajectory.answer === undefined ? 1 : 0 };
    } finally {
      await opened.close();
    }
  },
});

function trajectoryJson(trajectory: Trajectory): Record<string, unknown> {
  const { question, answer, stopReason, turns, segments, failure, usage } = trajectory;
  const cited = citedPassages(trajectory);
  const searches = turns.flatMap(({ action, passages }) =>
    (action.type === "search" || action.type === "searches") && passages !== undefined
      ? [
          {
            ...(action.type === "search" ? { query: action.query } : { queries: action.queries }),
            passages: passages.map(({ passage: { id, title }, score }) => ({ id, title, score })),
          },
        ]
      : [],
  );
  return {
    question: question.text,
    answer: answer ?? null,
    stopReason,
    ...(hasAbstained(trajectory) && { abstained: true }),
    ...(cited && { cited: cited.map(({ number, passage }) => ({ number, id: passage?.id ?? null })) }),
    ...(failure !== undefined && { failure }),
    searches,
    ...(usage && { usage }),
    segments: segments.map(({ source, text }) => ({ source, text })),
  };
}
