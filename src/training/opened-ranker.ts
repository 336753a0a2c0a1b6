/** A ranker that is open, and what a checkpoint holds of it. */
import { join } from "node:path";
import type { RankerOptions } from "../config/ranker-options.ts";
import type { Engine } from "../engine/engine.ts";
import type { ModelOptions } from "../engine/model-options.ts";
import type { SamplingOptions } from "../rollout/policy.ts";
import type { Ranker } from "../rollout/ranked-search.ts";
import { makeFolder } from "../shared/files.ts";
import type { RankingGrader } from "./ranking-grader.ts";

type Sampling = Pick<SamplingOptions, "temperature" | "topP" | "topK">;

export interface OpenedRanker {
  readonly options: RankerOptions;
  /** What is trained; absent for the oracle and a served model. With shared weights the agent's engine. */
  readonly engine?: Engine | undefined;
  /** Shape of a model of its own. */
  readonly model?: ModelOptions | undefined;
  /** Whether the engine is not the agent's, and so has checkpoints and an optimiser of its own. */
  readonly isOwn: boolean;
  /** Who grades rankings while they are trained on, for the reward `combine: judge`. */
  readonly judge?: Omit<RankingGrader, "seed"> | undefined;
  /** The ranker of the rollouts that start now. */
  sampling(options: Sampling): Ranker;
}

/** The ranker while trajectories are gathered to learn from; `sampling` is the agent's, for one without its own. */
export function exploringRanker(opened: OpenedRanker | undefined, sampling: Sampling): Ranker | undefined {
  const options = opened?.options;
  return opened?.sampling(options?.type === "generative" ? options.sampling : sampling);
}

/** Where a ranker lies within a checkpoint. */
export function rankerFolder(checkpoint: string): string {
  return join(checkpoint, "ranker");
}

/** Writes the ranker's own weights and optimiser into a checkpoint. */
export async function saveRanker(ranker: OpenedRanker | undefined, checkpoint: string): Promise<void> {
  if (!ranker?.isOwn) return;
  await makeFolder(rankerFolder(checkpoint));
  await ranker.engine?.save(rankerFolder(checkpoint));
}

/** Takes them from a checkpoint. Throws `CheckpointError`. */
export async function loadRanker(ranker: OpenedRanker | undefined, checkpoint: string): Promise<void> {
  if (ranker?.isOwn) await ranker.engine?.load(rankerFolder(checkpoint));
}
