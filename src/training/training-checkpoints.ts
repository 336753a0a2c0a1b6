/**
 * Where a training stands and what of it is on disk: the steps that are done, the newest checkpoint, and those that
 * stay because their weights were best. A checkpoint holds the engine, a ranker of its own and the stage's critic.
 */
import type { Recipe } from "../config/recipe.ts";
import type { Critic } from "../engine/engine.ts";
import { InterruptedError, RetrieverError } from "../errors.ts";
import { resumeCommand } from "./go-on.ts";
import { loadRanker, saveRanker } from "./opened-ranker.ts";
import { lastStep, totalSteps } from "./position.ts";
import { EpisodesFailedError } from "./sample-groups.ts";
import { criticFolder } from "./stage-critic.ts";
import type { TrainingParts } from "./training-input.ts";

export class TrainingCheckpoints {
  /** Of the stage under way; saved with the weights. */
  critic: Critic | undefined;
  readonly #recipe: Recipe;
  readonly #parts: TrainingParts;
  /** Steps of all stages that are done, and the count that the newest checkpoint holds. */
  #done = 0;
  #saved: number | undefined;
  /** The counts after which the weights were at their best, by reward and on validation; their checkpoints are kept. */
  #best: readonly number[] = [];

  constructor(recipe: Recipe, parts: TrainingParts) {
    this.#recipe = recipe;
    this.#parts = parts;
  }

  /** Steps of all stages that are done. */
  get done(): number {
    return this.#done;
  }

  /** The weights are now those after `count` steps of all stages. */
  reach(count: number): void {
    this.#done = count;
  }

  /** Remembers the counts whose checkpoints must stay. */
  keepBest(counts: readonly number[]): void {
    this.#best = counts;
  }

  /** Takes up the newest checkpoint and drops what was written after it; without one, saves the start and returns false. */
  async restore(): Promise<boolean> {
    const { run, engine, ranker } = this.#parts;
    const checkpoint = await run.latestCheckpoint();
    if (checkpoint) {
      await engine.load(checkpoint.path);
      await loadRanker(ranker, checkpoint.path);
      this.#done = checkpoint.step;
      this.#saved = checkpoint.step;
    }
    await run.truncateAfter(lastStep(this.#recipe, this.#done));
    if (!checkpoint) await this.save();
    return checkpoint !== undefined;
  }

  /** Loads the weights, moments included, of after `count` steps. */
  async load(count: number): Promise<void> {
    const { run, engine, ranker } = this.#parts;
    await engine.load(run.checkpointFolder(count));
    await loadRanker(ranker, run.checkpointFolder(count));
  }

  async save(): Promise<void> {
    const { run, engine, ranker } = this.#parts;
    await run.writeCheckpoint(this.#done, async (folder) => {
      await engine.save(folder);
      await saveRanker(ranker, folder);
      await this.critic?.save(criticFolder(folder));
    });
    const { keep } = this.#recipe.checkpoint;
    for (const { path } of await run.prunableCheckpoints(keep, this.#best)) await engine.discard?.(path);
    await run.pruneCheckpoints(keep, this.#best);
    this.#saved = this.#done;
  }

  /** Saves where it is due, and the weights that may be chosen in the end, which must be there then. */
  async saveIf(isDue: boolean): Promise<void> {
    if (isDue || this.#best.includes(this.#done)) await this.save();
  }

  /** Folder of the newest checkpoint up to the best step by reward. */
  async lastGood(): Promise<string> {
    const { run } = this.#parts;
    const kept = (await run.checkpoints()).map(({ step }) => step);
    const good = kept.filter((step) => step <= Math.max(this.#best[0] ?? 0, kept[0] ?? 0)).at(-1);
    return run.checkpointFolder(good ?? 0);
  }

  /**
   * Runs work that changes no weights when it is aborted, or when the retriever fails it or all its episodes; then the state
   * is saved, and on an abort the user told how to go on.
   */
  async savedWhenAborted<T>(work: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    try {
      return await work();
    } catch (error) {
      const isUntouched =
        signal?.aborted || error instanceof EpisodesFailedError || error instanceof RetrieverError;
      if (isUntouched && this.#saved !== this.#done) await this.save();
      if (!signal?.aborted) throw error;
      throw new InterruptedError(
        `stopped after step ${this.#done} of ${totalSteps(this.#recipe)}; go on with: ${resumeCommand(this.#parts.run.path)}`,
        { cause: error },
      );
    }
  }
}
