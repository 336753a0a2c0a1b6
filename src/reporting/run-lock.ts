/**
 * The lock of a run folder: a file with the process that writes there, so that two processes never write one
 * run. A lock whose process has ended (kill -9, power cut) is stale and taken over. A process of another host
 * cannot be asked; its lock stands until a person removes the file.
 */
import { link, readFile, rename, rm, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { FileError } from "../errors.ts";
import { fileError } from "../shared/files.ts";

const lockName = "run.lock";
/** Locks held by this process; a lock file with our own process id that is not here is from an earlier life. */
const held = new Set<string>();

export interface RunLock {
  /** Gives the folder free; doing it twice is harmless. */
  release(): Promise<void>;
}

/** Takes the lock of `folder`. Throws `FileError` when another living process has it. */
export async function lockRun(folder: string): Promise<RunLock> {
  const path = join(folder, lockName);
  for (let attempt = 0; attempt < 3; attempt++) {
    if (await createLock(path)) return holdLock(path);
    const content = await readLock(path);
    if (content === undefined) continue;
    if (!isStale(path, content))
      throw new FileError(
        `${folder} is being written by ${describe(content)}; wait, or stop that process. If it is gone for sure, remove ${path}`,
      );
    await removeStale(path, content);
  }
  throw new FileError(`cannot lock ${folder}: other processes take ${path} again and again`);
}

/** Whether a living process has the lock of `folder`; one of another host counts as living. */
export async function isLocked(folder: string): Promise<boolean> {
  const path = join(folder, lockName);
  const content = await readLock(path);
  return content !== undefined && !isStale(path, content);
}

function holdLock(path: string): RunLock {
  held.add(path);
  return {
    release: async () => {
      if (held.delete(path)) await rm(path, { force: true });
    },
  };
}

async function createLock(path: string): Promise<boolean> {
  try {
    await writeFile(path, JSON.stringify({ pid: process.pid, host: hostname() }), { flag: "wx" });
    return true;
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw fileError(`cannot write ${path}`, cause);
  }
}

async function readLock(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw fileError(`cannot read ${path}`, cause);
  }
}

interface LockOwner {
  readonly pid: number;
  readonly host: string;
}

/** Undefined for a lock that was cut off while it was written. */
function parseOwner(content: string): LockOwner | undefined {
  try {
    const { pid, host } = JSON.parse(content) as Partial<LockOwner>;
    return typeof pid === "number" && typeof host === "string" ? { pid, host } : undefined;
  } catch {
    return undefined;
  }
}

function isStale(path: string, content: string): boolean {
  const owner = parseOwner(content);
  if (!owner) return true;
  if (owner.host !== hostname()) return false;
  if (owner.pid === process.pid) return !held.has(path);
  return !isAlive(owner.pid);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** Moves the stale lock away; if another process took the folder meanwhile, its lock is put back. */
async function removeStale(path: string, staleContent: string): Promise<void> {
  const aside = `${path}.${process.pid}.stale`;
  try {
    await rename(path, aside);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") return;
    throw fileError(`cannot remove ${path}`, cause);
  }
  if ((await readLock(aside)) !== staleContent) await link(aside, path).catch(() => undefined);
  await rm(aside, { force: true });
}

function describe(content: string): string {
  const owner = parseOwner(content);
  return owner ? `process ${owner.pid} on ${owner.host}` : "another process";
}
