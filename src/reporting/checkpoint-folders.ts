/**
 * The folders `checkpoints/<step>`: each is whole or absent. What a kill leaves half written or half removed has
 * a name that starts with a dot, is never read, and goes with the next pruning.
 */
import { readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { assert } from "../errors.ts";
import { createFolderAtomic, exists, fileError } from "../shared/files.ts";

export interface Checkpoint {
  /** The number of the folder: optimiser steps over all stages. */
  readonly step: number;
  readonly path: string;
}

/** Whole checkpoints of `folder`, oldest first. */
export async function listCheckpoints(folder: string): Promise<Checkpoint[]> {
  return (await listFolder(folder))
    .filter((name) => /^\d+$/.test(name))
    .map((name) => ({ step: Number(name), path: join(folder, name) }))
    .sort((a, b) => a.step - b.step);
}

/** Lets `fill` write the checkpoint of `step` beside its place and then moves it there, over an older one. */
export async function replaceCheckpoint(
  folder: string,
  step: number,
  fill: (folder: string) => Promise<void>,
): Promise<Checkpoint> {
  assert(Number.isInteger(step) && step >= 0, `step is an integer of at least 0, got ${step}`);
  const path = join(folder, String(step));
  if (!(await exists(path))) {
    await createFolderAtomic(path, fill);
    return { step, path };
  }
  const next = join(folder, `.${step}.next`);
  await rm(next, { recursive: true, force: true });
  await createFolderAtomic(next, fill);
  await removeCheckpoint(folder, step);
  await rename(next, path);
  return { step, path };
}

/** Whole checkpoints beyond the newest `keep` (at least 1) that are not of the steps `best`, oldest first. */
export async function beyondNewest(
  folder: string,
  keep: number,
  best: readonly number[] = [],
): Promise<Checkpoint[]> {
  assert(Number.isInteger(keep) && keep >= 1, `keep is an integer of at least 1, got ${keep}`);
  return (await listCheckpoints(folder)).slice(0, -keep).filter(({ step }) => !best.includes(step));
}

/** Removes all but the newest `keep` (at least 1) checkpoints and those of the steps `best`, and everything that is not whole. */
export async function keepNewestCheckpoints(
  folder: string,
  keep: number,
  best: readonly number[] = [],
): Promise<void> {
  for (const { step } of await beyondNewest(folder, keep, best)) await removeCheckpoint(folder, step);
  for (const name of await listFolder(folder))
    if (name.startsWith(".")) await rm(join(folder, name), { recursive: true, force: true });
}

/** Names in a folder; none when the folder does not exist. Throws `FileError`. */
export async function listFolder(path: string): Promise<string[]> {
  try {
    return await readdir(path);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw fileError(`cannot read ${path}`, cause);
  }
}

/** Renamed first, so that a kill in the middle leaves nothing that looks whole. */
async function removeCheckpoint(folder: string, step: number): Promise<void> {
  const aside = join(folder, `.${step}.removed`);
  await rm(aside, { recursive: true, force: true });
  await rename(join(folder, String(step)), aside);
  await rm(aside, { recursive: true, force: true });
}
