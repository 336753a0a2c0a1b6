/** `forager train`: trains a recipe into a new run folder, or goes on with one. */
import { join } from "node:path";
import { loadRecipe, resolvedYaml } from "../../config/load-recipe.ts";
import { trainableModel } from "../../config/model-source-options.ts";
import type { Recipe } from "../../config/recipe.ts";
import { ConfigError, UsageError } from "../../errors.ts";
import { RunFolder } from "../../reporting/run-folder.ts";
import { type CommandIo, type CommandResult, defineCommand } from "../command.ts";
import { newRunFolder, trainWithView } from "../new-run.ts";
import { costSince, summaryJson, summaryText } from "../training-summary.ts";

export const trainCommand = defineCommand({
  name: "train",
  summary: "Train a recipe, or go on with a run.",
  details:
    "An interrupt (Ctrl-C) saves the state and ends with exit code 130; --resume goes on from there with the same\n" +
    "numbers that an uninterrupted run would have had.",
  args: [{ name: "RECIPE", doc: "a recipe file; not with --resume", isOptional: true }],
  options: {
    out: { type: "text", value: "RUN", doc: "New folder of the run; default: runs/NAME-DATE-TIME." },
    resume: {
      type: "text",
      value: "RUN",
      doc: "Go on with this run, by its own recipe.",
    },
    set: {
      type: "list",
      value: "KEY=VALUE",
      doc: "Override of the recipe, such as seed=2; repeatable. With --resume: servers, waits, checkpoints only.",
    },
    "dry-run": { type: "flag", doc: "Print the recipe with every default filled in, and stop." },
  },
  examples: [
    "train recipes/lab.yaml --out runs/lab",
    "train recipes/lab.yaml --out runs/k-1 --set environment.k=1 --set stages.grpo.steps=20",
    "train recipes/search-r1-grpo.yaml --dry-run",
    "train --resume runs/lab",
    "train --resume runs/nq-7b --set engine.url=http://10.0.0.7:8100",
  ],
  async run({ args: [path], options: { out, resume, set, "dry-run": isDry } }, io) {
    if (resume !== undefined) {
      if (path !== undefined || out !== undefined || isDry)
        throw new UsageError(
          "train: --resume RUN takes nothing else but --set; the run knows its recipe and its folder",
        );
      requireMovable(set);
      const { recipePath } = await RunFolder.open(resume);
      const recipe = await loadRecipe(recipePath, { overrides: set });
      return await runTraining({ recipe, folder: resume, resume: true }, io);
    }
    if (path === undefined)
      throw new UsageError("train: name a RECIPE, or --resume RUN (see forager train --help)");
    const recipe = await loadRecipe(path, { overrides: set });
    if (isDry) {
      io.print(resolvedYaml(recipe).trimEnd());
      return { json: { recipe } };
    }
    requireTrainable(recipe, path);
    const folder = await newRunFolder(recipe.name, out, io.now());
    return await runTraining({ recipe, folder, resume: false }, io);
  },
});

/** What says nothing of the training itself: servers that have moved, keys, how long they are waited for, and what is kept. */
const movable =
  /^(engine\.(url|apiKeyEnv|concurrency|chunkBytes|retries|backoffMs|patienceMs|resultTimeoutMs)|retriever\.(url|keyVariable|concurrency|retries|backoffMs|timeoutMs)|checkpoint\.(everySteps|keep))=/;

function requireMovable(overrides: readonly string[]): void {
  const other = overrides.find((override) => !movable.test(override));
  if (other !== undefined)
    throw new UsageError(
      `train: --set ${other} would make another run of the one that is resumed. Only where servers are, how they are waited for and which checkpoints are kept may change: --set engine.url=URL, retriever.url, retriever.timeoutMs, checkpoint.keep and the like`,
    );
}

/** Throws `ConfigError` for a recipe that can only be evaluated. */
function requireTrainable({ model, stages, recordPolicy }: Recipe, path: string): void {
  if (model.type !== "remote") trainableModel(model);
  if (stages.length === 0)
    throw new ConfigError(`${path} has no stages, so there is nothing to train; use forager eval ${path}`, {
      path: "stages",
    });
  if (recordPolicy !== undefined)
    throw new ConfigError(
      "a training records no completions, since its policy changes with every step; leave recordPolicy out, and set it for forager eval",
      { path: "recordPolicy" },
    );
}

async function runTraining(task: Parameters<typeof trainWithView>[0], io: CommandIo): Promise<CommandResult> {
  const started = io.progress.now();
  const summary = await trainWithView(task, io);
  const cost = costSince(started, io.progress.now());
  io.print(summaryText(summary, cost));
  io.print(`report: ${join(summary.folder, "report.html")}`);
  return { json: summaryJson(summary, cost) };
}
