/**
 * The frozen policy of a stage whose loss has a KL term. Its weights are kept in the run folder, from which a resumed
 * stage, and a later one that carries the reference over, take them.
 */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { klOf } from "../algorithm/options.ts";
import type { Stage } from "../config/stage-options.ts";
import type { Engine, ReferencePolicy } from "../engine/engine.ts";
import type { RunFolder } from "../reporting/run-folder.ts";
import { createFolderAtomic } from "../shared/files.ts";
import { rankerFolder } from "./opened-ranker.ts";
import { referenceStage } from "./stage-switch.ts";

export interface ReferenceParts {
  readonly run: RunFolder;
  readonly engine: Engine;
  readonly stages: readonly Stage[];
  /** Index of the stage that starts or goes on. */
  readonly index: number;
  readonly isStart: boolean;
  /** The checkpoint whose weights the engine has. */
  readonly done: number;
  /** True where `engine` is the ranker's own. */
  readonly isRanker?: boolean;
}

/** The reference of a stage, whose weights of now the engine keeps; undefined where its loss has no KL term. */
export async function openReference(parts: ReferenceParts): Promise<ReferencePolicy | undefined> {
  const { run, engine, stages, index, isStart, done, isRanker = false } = parts;
  const stage = stages[index];
  if (stage?.type !== "reinforcement" || !klOf(stage.algorithm)) return undefined;
  const owner = referenceStage(stages, index);
  const folder = join(run.path, "reference", isRanker ? `${owner.name}-ranker` : owner.name);
  if (isStart && owner === stage) {
    await rm(folder, { recursive: true, force: true });
    await createFolderAtomic(folder, (target) => engine.save(target));
    return await engine.snapshot();
  }
  await engine.load(folder);
  const reference = await engine.snapshot();
  const checkpoint = run.checkpointFolder(done);
  await engine.load(isRanker ? rankerFolder(checkpoint) : checkpoint);
  return reference;
}
