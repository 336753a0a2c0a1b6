/** Trains a recipe: opens everything it names, makes or resumes the run folder, and runs its stages (`training.ts`). */
import { resolvedYaml } from "../config/load-recipe.ts";
import { RunFolder } from "../reporting/run-folder.ts";
import { Closers } from "../shared/closers.ts";
import { planCompanions, requireRoomForAll } from "./companions.ts";
import type { Watcher } from "./hub-settings.ts";
import { baselineFile, openAssessor } from "./open-assessor.ts";
import { createEngine, isEmbedded } from "./open-engine.ts";
import { createRanker } from "./open-ranker.ts";
import { planMemory, requireMemory } from "./plan-training.ts";
import { requirePromptsFit } from "./prompt-fit.ts";
import { requireSameContract } from "./same-contract.ts";
import { loadData, type TrainingData, writeWorldFiles } from "./setup.ts";
import { requireCritic } from "./stage-critic.ts";
import { Training } from "./training.ts";
import { trainingContract } from "./training-contract.ts";
import type { TrainingInput, TrainingSummary } from "./training-input.ts";
import { processWorld } from "./world.ts";

export type { TrainingInput, TrainingSummary } from "./training-input.ts";

/**
 * Trains a recipe to its end. Throws `InterruptedError` when stopped on request (the state is saved),
 * `TrainingError` when the training collapsed, and the errors of the rooms for bad data.
 */
export async function train(input: TrainingInput): Promise<TrainingSummary> {
  const { recipe, reporter } = input;
  reporter.message("reading the data and building the index");
  const data = await loadData(recipe, processWorld(watcherOf(input)));
  try {
    return await trainOn(data, input);
  } finally {
    await data.close();
  }
}

/** Who is told of downloads, and what stops them. */
function watcherOf({ signal, reporter }: TrainingInput): Watcher {
  return { signal, note: (text) => reporter.message(text) };
}

async function trainOn(data: TrainingData, input: TrainingInput): Promise<TrainingSummary> {
  const { recipe, folder, resume } = input;
  const watcher = watcherOf(input);
  const opened = new Closers();
  try {
    const engine = await createEngine(recipe, data, { ...watcher, folder });
    opened.defer(() => engine.close());
    const ranker = await createRanker(recipe, data, { watcher, folder, closers: opened, agent: engine });
    const assessor = await openAssessor(recipe, data, { watcher, closers: opened });
    requireCritic(recipe, engine);
    const note = await requirePromptsFit(
      [...data.train, ...data.evaluation, ...data.validation],
      recipe.environment,
      engine,
    );
    if (note !== undefined) input.reporter.message(note);
    if (isEmbedded(engine)) {
      const plan = planMemory(recipe, engine.model);
      requireMemory(recipe, plan);
      requireRoomForAll(plan, await planCompanions(recipe, watcher));
    }
    const { codeVersion } = input;
    const contract = await trainingContract(recipe, { data, engine, assessor, codeVersion, watcher });
    const run = resume
      ? await RunFolder.resume(folder)
      : await RunFolder.create(folder, { recipeYaml: resolvedYaml(recipe), contract });
    try {
      if (resume) {
        const remark = requireSameContract(await run.readContract(), contract, folder);
        if (remark !== undefined) input.reporter.message(remark);
      }
      if (recipe.data.type === "world") await writeWorldFiles(folder, data);
      await assessor?.keepIn(baselineFile(folder), { isReadOnly: false });
      return await new Training(input, { run, data, engine, assessor, ranker }).finish();
    } finally {
      await run.close();
    }
  } finally {
    await opened.close();
  }
}
