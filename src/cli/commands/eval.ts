/** `forager eval`: scores a trained model on held-out questions, under a contract that says what the score depends on. */
import { loadRecipe, resolvedYaml } from "../../config/load-recipe.ts";
import { UsageError } from "../../errors.ts";
import type { EvaluationResult } from "../../evaluation/result.ts";
import type { Trajectory } from "../../rollout/trajectory.ts";
import { withBudgetLeft } from "../budget-left.ts";
import { type CommandIo, type CommandResult, defineCommand, type OptionValues } from "../command.ts";
import { decomposed, decompositionText, withPassagesOf } from "../eval-conditions.ts";
import { keepFinished, keptBeside, resultFile, writeResult } from "../eval-files.ts";
import { followRun } from "../eval-follow.ts";
import { score } from "../eval-scoring.ts";
import { type EpisodesFile, episodesFile, tellingOf } from "../kept-episodes.ts";
import { resultNote } from "../live-view.ts";
import { modelStamp } from "../model-stamps.ts";
import { findModel, type ModelSource, type SourceOptions } from "../open-model.ts";
import { plannerJson, plannerText } from "../planner-text.ts";
import { askedText, costText, failureText, resultJson, resultTable, searchUseText } from "../result-text.ts";
import { weightsOption, withWeights } from "../weights-option.ts";

const options = {
  recipe: {
    type: "text",
    value: "RECIPE",
    doc: "Rules and data; needed for a model, a run has its own.",
  },
  questions: { type: "list", value: "FILE", doc: "Ask these questions instead of the recipe's; repeatable." },
  index: { type: "text", value: "INDEX", doc: "Search this index instead of the recipe's corpus." },
  weights: weightsOption,
  set: {
    type: "list",
    value: "KEY=VALUE",
    doc: "Override of the recipe, such as evaluation.n=50; repeatable.",
  },
  out: {
    type: "text",
    value: "FILE",
    doc: "New file for the result, trajectories beside it; default: RUN/evaluation/eval-DATE-TIME.json.",
  },
  decompose: {
    type: "flag",
    doc: "Ask with searches that find nothing, as they are, and gold passages first.",
  },
  "k-from": {
    type: "text",
    value: "RESULT",
    doc: "Mode rag: as many passages as the agent of this result saw on average, with room for them.",
  },
  checkpoint: {
    type: "integer",
    value: "STEPS",
    doc: "Of a run: the checkpoint after so many steps of all stages; default: its newest.",
  },
  follow: {
    type: "flag",
    doc: "Of a run: score each checkpoint while it is trained, as STAGE-STEP, until it is over.",
  },
  "dry-run": { type: "flag", doc: "Print the recipe with every default filled in, and stop." },
} as const;

export const evalCommand = defineCommand({
  name: "eval",
  summary: "Score a run or a model on held-out questions.",
  details:
    "Greedy unless the recipe says otherwise. The result names everything it depends on; see forager compare. All\n" +
    "trajectories are kept: RUN/trajectories/eval-DATE-TIME.jsonl, or FILE with the ending .trajectories.jsonl.\n" +
    "With --out, the same command goes on with what is left after an interruption or a spent budget.\n" +
    "--set environment.mode=direct and =rag score the same model as baselines without searches.\n" +
    "--set generator.model=MODEL lets another frozen model answer for a trained planner.",
  args: [
    {
      name: "TARGET",
      doc: "a run (its newest checkpoint), a recipe (the model it starts from), or a model with --recipe",
    },
  ],
  options,
  examples: [
    "eval runs/quickstart",
    "eval runs/quickstart --set environment.k=1 --json",
    "eval runs/nq-7b --follow",
    "eval my-recipe.yaml --set environment.mode=rag --out rag.json",
    "eval models/base --recipe my-recipe.yaml --questions nq.jsonl --index wiki-index --out nq.json",
  ],
  async run({ args, options }, io) {
    const target = args[0] as string;
    const overrides = withWeights(options.set, options.weights);
    if (options["dry-run"]) return await printRecipe(target, { recipePath: options.recipe, overrides }, io);
    if (options.follow) return await follow(target, { ...options, overrides }, io);
    const { recipe: recipePath, checkpoint } = options;
    const found = await findModel(target, { recipePath, overrides, checkpoint });
    const source =
      options["k-from"] === undefined ? found : await withPassagesOf(found, options["k-from"], io);
    const file = await resultFile(source, options.out, io);
    const finished: Trajectory[] = [];
    const kept = options.out === undefined ? undefined : await keptFor(options.out, source, io);
    const scored = await score(source, options, { io, finished, kept: kept && tellingOf(kept, finished) })
      .catch((error: unknown) =>
        keepFinished(error, { finished, file, name: target, isKept: kept !== undefined }),
      )
      .finally(() => kept?.close());
    const { result } = scored;
    if (file !== undefined) await writeResult(file, source, scored);
    await kept?.remove();
    io.print(`${target}: ${resultNote(result)}\n`);
    io.print(resultTable(result));
    io.print(`\n${askedText(result)}`);
    const planned = plannerText(result);
    if (planned !== "") io.print(planned);
    const use = searchUseText(result);
    if (use !== "") io.print(use);
    if (result.cost !== undefined) io.print(`\ncost: ${costText(result.cost)}`);
    if (file !== undefined) io.print(`\nwritten to ${file.path}`);
    const failure = failureText(result);
    if (failure !== undefined) io.note(failure);
    const json = { ...resultJson(result), ...plannerJson(result), file: file?.path ?? null };
    if (result.summary.overall.n === 0) return { json, exitCode: 1 };
    if (!options.decompose) return { json };
    let left = source;
    let last = result;
    const under = async (condition: "none" | "oracle"): Promise<EvaluationResult> => {
      io.note(`once more with ${condition === "none" ? "no" : "oracle"} retrieval`);
      if (last.cost !== undefined) left = withBudgetLeft(left, last.cost);
      last = (await score(left, options, { io, finished: [], condition })).result;
      return last;
    };
    const parts = await decomposed(
      { none: await under("none"), real: result, oracle: await under("oracle") },
      file?.path,
    );
    io.print(`\n${decompositionText(parts)}`);
    return { json: { ...json, decomposition: parts } };
  },
});

/** The episodes of earlier calls with the same `out`. */
async function keptFor(out: string, source: ModelSource, { note }: CommandIo): Promise<EpisodesFile> {
  return episodesFile(keptBeside(out), { stamp: await modelStamp(source), note });
}

/** Throws `UsageError` for what belongs to one result. */
async function follow(
  target: string,
  {
    overrides,
    questions,
    index,
    ...others
  }: OptionValues<typeof options> & { readonly overrides: readonly string[] },
  io: CommandIo,
): Promise<CommandResult> {
  for (const name of ["recipe", "out", "checkpoint", "decompose", "k-from"] as const)
    if (others[name] !== undefined && others[name] !== false)
      throw new UsageError(
        `eval: --follow scores all checkpoints of a run as its recipe says; leave --${name} out`,
      );
  return await followRun(target, { overrides, questions, index }, io);
}

/** What would be evaluated; a recipe is only read, and may name a model that is not here. */
async function printRecipe(
  target: string,
  { recipePath, overrides }: SourceOptions,
  io: CommandIo,
): Promise<CommandResult> {
  const recipe =
    recipePath === undefined && /\.ya?ml$/.test(target)
      ? await loadRecipe(target, { overrides })
      : (await findModel(target, { recipePath, overrides })).recipe;
  io.print(resolvedYaml(recipe).trimEnd());
  return { json: { recipe } };
}
