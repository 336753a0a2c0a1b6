/**
 * Short trainings of recipes as a user starts them, in a process of their own, against the plan of the same recipe for episodes
 * as long as they were then: how long they become is the policy's affair, not the machine's.
 */
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { loadRecipe } from "../src/config/load-recipe.ts";
import type { Recipe } from "../src/config/recipe.ts";
import type { ModelOptions } from "../src/engine/model-options.ts";
import type { MetricRow } from "../src/reporting/metric-row.ts";
import { RunFolder } from "../src/reporting/run-folder.ts";
import { type Episode, planMemory, planStages } from "../src/training/plan-training.ts";
import { type Comparison, probedAround } from "./plan-comparison.ts";

export interface RecipeCase {
  readonly name: string;
  readonly recipe: string;
  readonly overrides: readonly string[];
}

/** Two steps of each stage; the second is the one that is timed. */
const short = ["evaluation.n=8", "checkpoint.everySteps=100", "stages.warm-up.steps=2"];
/** A policy that knows nothing yet earns nothing: without this, no group would be trained on. */
const everyGroup = ["stages.grpo.algorithm.rejectGroupsWithoutSignal=false"];
/** SmolLM2-135M's layers with the few pieces of the world's own tokenizer. */
const shape135m = [
  ...["layers=30", "width=576", "heads=9", "keyValueHeads=3", "feedForward=1536", "tieEmbeddings=true"].map(
    (option) => `model.${option}`,
  ),
  "stages.warm-up.batchSize=8",
  "engine.memoryBudget=5GB",
];

export const recipeCases: readonly RecipeCase[] = [
  { name: "lab", recipe: "lab", overrides: [...short, ...everyGroup, "stages.grpo.steps=4"] },
  { name: "lab-ppo", recipe: "lab-ppo", overrides: [...short, "stages.ppo.steps=4"] },
  {
    name: "135m-grpo",
    recipe: "lab",
    overrides: [
      ...short,
      ...everyGroup,
      ...shape135m,
      "stages.grpo.steps=2",
      "stages.grpo.questionsPerStep=4",
    ],
  },
  {
    name: "135m-ppo",
    recipe: "lab-ppo",
    overrides: [
      ...short,
      ...shape135m,
      "stages.ppo.steps=2",
      "stages.ppo.questionsPerStep=32",
      "engine.optimizerState=disk",
    ],
  },
];

export async function measureRecipe(
  { name, recipe: file, overrides }: RecipeCase,
  threads: number,
): Promise<Comparison> {
  const path = fileURLToPath(new URL(`../recipes/${file}.yaml`, import.meta.url));
  const set = [...overrides, `engine.threads=${threads}`];
  const recipe = await loadRecipe(path, { overrides: set });
  const model = freshShape(recipe);
  const { result: rows, speeds } = await probedAround({ model, threads }, () => trainApart(path, set));
  const longest = Math.max(...rows.map((row) => row["length/contextTokensMax"] ?? 0));
  const memory = planMemory(recipe, model, longest);
  const last = rows.at(-1) as MetricRow;
  const planned = planStages(recipe, memory, { ...speeds.wall, episode: episodeOf(last) });
  const measured = Math.max(...rows.map((row) => row["memory/peakBytes"] ?? 0));
  return {
    name,
    planned: { bytes: memory.peak, seconds: planned.at(-1)?.secondsPerStep as number },
    measured: { bytes: measured, seconds: last["time/step"] as number },
  };
}

function freshShape({ model }: Recipe): ModelOptions {
  if (model.type !== "fresh") throw new Error("a case of this bench trains a fresh model");
  const { type: _, ...shape } = model;
  return shape;
}

/** Rows of all steps. */
async function trainApart(recipe: string, set: readonly string[]): Promise<readonly MetricRow[]> {
  const folder = await mkdtemp(join(tmpdir(), "forager-bench-plan-"));
  try {
    const main = fileURLToPath(new URL("../src/cli/main.ts", import.meta.url));
    const run = join(folder, "run");
    const options = set.flatMap((override) => ["--set", override]);
    const args = ["--import", "tsx", main, "train", recipe, "--out", run, ...options, "--json"];
    await promisify(execFile)(process.execPath, args, { maxBuffer: 1e8 });
    return await (await RunFolder.open(run)).readMetrics();
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function episodeOf(row: MetricRow): Episode {
  const tokens = row["length/contextTokens"];
  const policyTokens = row["length/policyTokens"];
  if (tokens === undefined || policyTokens === undefined)
    throw new Error("the last step of a case of this bench samples");
  return { tokens, policyTokens };
}
