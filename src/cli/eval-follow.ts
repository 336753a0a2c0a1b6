/**
 * `forager eval RUN --follow`: scores the checkpoints of a run while it is trained, so that training waits for no evaluation. A
 * model elsewhere is a second one on its server, with the weights of the checkpoint. Each result is stored as the training itself
 * would have stored it, `STAGE-STEP`, and is a point of the report's curve; the first and the last weights are left to the training.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { loadRecipe } from "../config/load-recipe.ts";
import type { Recipe } from "../config/recipe.ts";
import { ForagerError, InterruptedError } from "../errors.ts";
import type { Checkpoint } from "../reporting/checkpoint-folders.ts";
import type { RunPosition } from "../reporting/metric-row.ts";
import { RunFolder } from "../reporting/run-folder.ts";
import { exists } from "../shared/files.ts";
import { lastStep, totalSteps } from "../training/position.ts";
import { storeEvaluation } from "../training/store-trajectories.ts";
import type { CommandIo, CommandResult } from "./command.ts";
import { type ScoreOptions, score } from "./eval-scoring.ts";
import { resultNote } from "./live-view.ts";
import { findModel } from "./open-model.ts";
import { resultJson } from "./result-text.ts";

/** How long the folder is left alone after nothing new was found. */
const pauseMs = 5_000;

export interface FollowOptions extends ScoreOptions {
  readonly overrides: readonly string[];
  readonly pauseMs?: number;
}

interface Due {
  readonly checkpoint: Checkpoint;
  readonly at: RunPosition;
  readonly name: string;
}

/** Ends when nothing is left to score and nobody writes the run any more. Throws `FileError` for what is no run. */
export async function followRun(
  target: string,
  { pauseMs: pause = pauseMs, ...options }: FollowOptions,
  io: CommandIo,
): Promise<CommandResult> {
  const run = await RunFolder.open(target);
  const recipe = await loadRecipe(run.recipePath);
  const done: object[] = [];
  const failed = new Set<number>();
  for (;;) {
    // Asked first, so that the last checkpoint of a run that ends meanwhile is not missed.
    const isOver = !(await run.isBeingWritten());
    const due = await nextDue(run, recipe, failed);
    if (due === undefined && isOver) break;
    if (due === undefined) {
      await pauseUntil(pause, io.signal);
      continue;
    }
    try {
      done.push(await scoreCheckpoint(due, { target, run, options, io }));
    } catch (error) {
      if (!(error instanceof ForagerError) || io.signal.aborted) throw error;
      failed.add(due.checkpoint.step);
      const isRemoved = !(await exists(due.checkpoint.path));
      io.note(
        isRemoved
          ? `${due.name} was removed before it was scored; keep more checkpoints (checkpoint.keep)`
          : `${due.name} could not be scored: ${error.message}`,
      );
    }
  }
  io.print(
    `${target}: ${done.length} checkpoints scored${failed.size > 0 ? `, ${failed.size} not` : ""}; see forager report ${target}`,
  );
  return { json: { run: target, scored: done, failed: failed.size }, exitCode: failed.size > 0 ? 1 : 0 };
}

/** The oldest checkpoint between the first and the last that has no result and did not fail. */
async function nextDue(
  run: RunFolder,
  recipe: Recipe,
  failed: ReadonlySet<number>,
): Promise<Due | undefined> {
  const known = new Set((await run.readEvaluations()).map(({ name }) => name));
  const last = totalSteps(recipe);
  for (const checkpoint of await run.checkpoints()) {
    const { step } = checkpoint;
    if (step === 0 || step === last || failed.has(step)) continue;
    const at = lastStep(recipe, step);
    const name = `${at.stage}-${at.step}`;
    if (!known.has(name)) return { checkpoint, at, name };
  }
  return undefined;
}

async function scoreCheckpoint(
  { checkpoint: { step }, at, name }: Due,
  {
    target,
    run,
    options: { overrides, ...asked },
    io,
  }: {
    readonly target: string;
    readonly run: RunFolder;
    readonly options: Omit<FollowOptions, "pauseMs">;
    readonly io: CommandIo;
  },
): Promise<object> {
  const source = await findModel(target, { overrides, checkpoint: step });
  const scored = await score(source, asked, { io, finished: [] });
  await storeEvaluation(run, { ...scored, name, at });
  io.note(`${name}: ${resultNote(scored.result)}`);
  return { name, ...at, ...resultJson(scored.result) };
}

/** Throws `InterruptedError` when the user stops it. */
async function pauseUntil(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await sleep(ms, undefined, { signal });
  } catch (cause) {
    throw new InterruptedError("stopped following; start it again to score what is left", { cause });
  }
}
