/**
 * The lock of an unfinished build: a file with the process that writes there. A lock whose process has ended (kill
 * -9, power cut) is taken over; a process of another host cannot be asked, its lock stands until a person removes it.
 * A lock is written aside and linked to its name, so that nobody ever sees one without its owner.
 */
import { link, readFile, rename, rm, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { dirname, join } from "node:path";
import { z } from "zod";
import { FileError } from "../errors.ts";
import { fileError, makeFolder } from "../shared/files.ts";

/** Name of the lock in the folder of a build. */
export const LOCK = "lock";
const ownerSchema = z.object({ pid: z.int(), host: z.string() });
type Owner = z.output<typeof ownerSchema>;
/** Locks that this process has or is about to take; one on disk with our process id is else from an earlier life. */
const held = new Set<string>();
let written = 0;

/** Takes the lock of `work`, made where missing, and returns how to release it. Throws `FileError` while another build has it. */
export async function lockBuild(work: string, target: string): Promise<() => Promise<void>> {
  const path = join(work, LOCK);
  const self: Owner = { pid: process.pid, host: hostname() };
  if (held.has(path)) throw isTaken(target, self, path);
  held.add(path);
  try {
    await takeLock(path, { work, target, self });
  } catch (error) {
    held.delete(path);
    throw error;
  }
  let isReleased = false;
  return async () => {
    if (isReleased) return;
    isReleased = true;
    await rm(path, { force: true });
    held.delete(path);
  };
}

interface Taking {
  readonly work: string;
  readonly target: string;
  readonly self: Owner;
}

async function takeLock(path: string, { work, target, self }: Taking): Promise<void> {
  for (let attempt = 0; attempt < 5; attempt++) {
    if (await tryLock(path, self)) return;
    const content = await readFile(path, "utf8").catch(() => undefined);
    if (content === undefined) continue;
    const owner = ownerOf(content);
    if (owner !== undefined && isAlive(owner)) throw isTaken(target, owner, path);
    await removeStale(path, content);
  }
  throw new FileError(`cannot lock ${work}: other processes take ${path} again and again`);
}

function isTaken(target: string, { pid, host }: Owner, path: string): FileError {
  return new FileError(
    `${target} is being built by process ${pid} on ${host}; wait for it or stop it. If it is gone for sure, remove ${path}`,
  );
}

/** False when there is a lock, or when another build took the folder away meanwhile. */
async function tryLock(path: string, self: Owner): Promise<boolean> {
  const aside = `${path}.${process.pid}.${written++}.new`;
  try {
    await makeFolder(dirname(path));
    await writeFile(aside, JSON.stringify(self));
    await link(aside, path);
    return true;
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === "EEXIST" || code === "ENOENT") return false;
    throw fileError(`cannot write ${path}`, cause);
  } finally {
    await rm(aside, { force: true });
  }
}

/** Undefined for a lock that was cut off while it was written. */
function ownerOf(content: string): Owner | undefined {
  try {
    return ownerSchema.safeParse(JSON.parse(content)).data;
  } catch {
    return undefined;
  }
}

function isAlive({ pid, host }: Owner): boolean {
  if (host !== hostname()) return true;
  if (pid === process.pid) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** Moves the stale lock away; when another process took the folder meanwhile, its lock is put back. */
async function removeStale(path: string, content: string): Promise<void> {
  const aside = `${path}.${process.pid}.stale`;
  try {
    await rename(path, aside);
  } catch {
    return;
  }
  if ((await readFile(aside, "utf8")) !== content) await link(aside, path).catch(() => undefined);
  await rm(aside, { force: true });
}
