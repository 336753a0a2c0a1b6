/**
 * Trains one variant with one seed, or takes it from its folder. Variants whose supervised stages agree start from one
 * warm start of each seed, so that they differ in their reinforcement alone. An unfinished run is resumed.
 */
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { loadRecipe, resolvedYaml } from "../../src/config/load-recipe.ts";
import type { Recipe } from "../../src/config/recipe.ts";
import { evaluate } from "../../src/evaluation/evaluate.ts";
import { type EvaluationResult, evaluationResultSchema } from "../../src/evaluation/result.ts";
import { RunFolder } from "../../src/reporting/run-folder.ts";
import { Closers } from "../../src/shared/closers.ts";
import { exists, writeFileAtomic } from "../../src/shared/files.ts";
import { sha256 } from "../../src/shared/hash.ts";
import { openAssessor } from "../../src/training/open-assessor.ts";
import { openEngine } from "../../src/training/open-engine.ts";
import { silentReporter } from "../../src/training/reporter.ts";
import { loadData } from "../../src/training/setup.ts";
import { train } from "../../src/training/train.ts";
import { warmStartOf } from "../../src/training/warm-start.ts";
import type { Study, Variant } from "./study.ts";

export interface RunSetting {
  readonly seed: number;
  /** Folder of all runs of the study. */
  readonly out: string;
  /** Of every variant, after its own. */
  readonly overrides: readonly string[];
  /** True: `overrides` may name stages that a variant lacks. */
  readonly isSmall: boolean;
  readonly note: (text: string) => void;
}

/** The final evaluation of a variant with one seed. Throws what training throws. */
export async function runVariant(
  study: Study,
  variant: Variant,
  setting: RunSetting,
): Promise<EvaluationResult> {
  if (variant.isUntrained) {
    const recipe = { ...(await recipeOf(study, variant, setting)), stages: [] };
    return await evaluated(recipe, folderOf(variant.name, recipe, setting), setting);
  }
  const run = await trained(study, variant, setting);
  const after = (await run.readEvaluations()).find(({ name }) => name === "after");
  if (!after) throw new Error(`${run.path} has no final evaluation; remove it and run again`);
  return after.result;
}

async function trained(study: Study, variant: Variant, setting: RunSetting): Promise<RunFolder> {
  const recipe = await recipeOf(study, variant, setting);
  const start = warmStartOf(recipe);
  const isSupervised = recipe.stages.every(({ type }) => type === "supervised");
  if (start === undefined && !(isSupervised && recipe.stages.length > 0))
    return await finished(recipe, folderOf(variant.name, recipe, setting), setting);
  const warm: Recipe = start?.recipe ?? { ...recipe, name: "warm-start" };
  const run = await finished(warm, folderOf("warm-start", warm, setting), setting);
  if (start === undefined || variant.supervisedOnly) return run;
  const rest = start.rest(await newestCheckpoint(run));
  return await finished(rest, folderOf(variant.name, rest, setting), setting);
}

async function recipeOf(study: Study, variant: Variant, setting: RunSetting): Promise<Recipe> {
  const own: string[] = [];
  for (const override of variant.overrides) own.push(await filledIn(study, override, setting));
  const all = [`seed=${setting.seed}`, ...own];
  if (!setting.isSmall)
    return await loadRecipe(variant.recipe, { overrides: [...all, ...setting.overrides] });
  // What makes a study small is said once for variants whose stages have different names.
  const stages = new Set(
    (await loadRecipe(variant.recipe, { overrides: all })).stages.map(({ name }) => name),
  );
  const fitting = setting.overrides.filter((override) => {
    const [key, stage] = override.split(/[.=]/);
    return key !== "stages" || stages.has(stage ?? "");
  });
  return await loadRecipe(variant.recipe, { overrides: [...all, ...fitting] });
}

/** Puts the checkpoints of prepared runs in their places. */
async function filledIn(study: Study, override: string, setting: RunSetting): Promise<string> {
  let filled = override;
  for (const [place, name, seed] of override.matchAll(/\{checkpoint:([^@}]+)(?:@(\d+))?\}/g)) {
    const prepared = study.prepared?.find((candidate) => candidate.name === name);
    if (!prepared) throw new Error(`${study.name} prepares no run named "${name}"`);
    const own = seed === undefined ? setting.seed : Number(seed);
    const run = await trained(study, prepared, { ...setting, seed: own });
    filled = filled.replace(place, await newestCheckpoint(run));
  }
  return filled;
}

/** The hash keeps runs of changed recipes apart. */
function folderOf(name: string, recipe: Recipe, { out, seed }: RunSetting): string {
  const slug = name.replaceAll(/[^a-z0-9]+/gi, "-").toLowerCase();
  // Where the warm start lies changes no result; its own hash is in its folder's name.
  const described = resolvedYaml(recipe).replaceAll(out, "");
  return join(out, `${slug}-seed${seed}-${sha256(described).slice(0, 8)}`);
}

async function newestCheckpoint(run: RunFolder): Promise<string> {
  const checkpoint = await run.latestCheckpoint();
  if (!checkpoint) throw new Error(`${run.path} has no checkpoint; remove it and run again`);
  return checkpoint.path;
}

/** The evaluation of the model that a recipe names, made now unless it is in `folder` already. */
async function evaluated(recipe: Recipe, folder: string, { note }: RunSetting): Promise<EvaluationResult> {
  const file = join(folder, "result.json");
  if (await exists(file)) return evaluationResultSchema.parse(JSON.parse(await readFile(file, "utf8")));
  if (recipe.model.type !== "pretrained") throw new Error(`${folder}: there is no model to evaluate`);
  note(`${folder} is evaluated`);
  const opened = new Closers();
  try {
    const { evaluation: questions, retriever, split, close } = await loadData(recipe);
    opened.defer(close);
    const engine = await openEngine(recipe.model.source, recipe);
    opened.defer(() => engine.close());
    const { seed, environment, evaluation } = recipe;
    const { result } = await evaluate({
      policy: engine.policy(),
      planner: await openAssessor(recipe, { retriever }, { closers: opened }),
      ...{ retriever, environment, questions, split, seed },
      sampling: evaluation.sampling,
      tokenizer: engine.tokenizer,
      contextLength: engine.contextLength,
      codeVersion: "reproduce",
      now: () => performance.now(),
    });
    await mkdir(folder, { recursive: true });
    await writeFileAtomic(file, `${JSON.stringify(result)}\n`);
    return result;
  } finally {
    await opened.close();
  }
}

/** The run of a recipe in `folder`, trained now unless it is there already. */
async function finished(recipe: Recipe, folder: string, { note }: RunSetting): Promise<RunFolder> {
  if (!(await exists(join(folder, "evaluation", "after.json")))) {
    const resume = await exists(folder);
    note(`${folder} ${resume ? "goes on" : "starts"}`);
    const now = (): number => performance.now();
    const started = now();
    await train({ recipe, folder, resume, reporter: silentReporter, now, codeVersion: "reproduce" });
    note(`${folder} took ${((now() - started) / 60_000).toFixed(1)} minutes`);
  }
  return await RunFolder.open(folder);
}
