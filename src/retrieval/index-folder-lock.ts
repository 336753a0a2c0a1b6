/**
 * The lock of an unfinished build: a file with the process that writes there. A lock whose process has ended (kill
 * -9, power cut) is taken over; a process of another host cannot be asked, its lock stands until a person removes it.
 */
import { link, readFile, rename, rm, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { FileError } from "../errors.ts";
import { fileError } from "../shared/files.ts";

const LOCK = "lock";
const ownerSchema = z.object({ pid: z.int(), host: z.string() });
/** Locks of this process; a lock with our process id that is not here is from an earlier life. */
const held = new Set<string>();

/** Takes the lock of `work` and returns how to release it. Throws `FileError` while another build has it. */
export async function lockBuild(work: string, target: string): Promise<() => Promise<void>> {
  const path = join(work, LOCK);
  for (let attempt = 0; attempt < 5; attempt++) {
    if (await tryLock(path)) {
      held.add(path);
      return async () => {
        if (held.delete(path)) await rm(path, { force: true });
      };
    }
    const content = await readFile(path, "utf8").catch(() => undefined);
    if (content === undefined) continue;
    const owner = ownerOf(content);
    if (owner !== undefined && isAlive(owner, path))
      throw new FileError(
        `${target} is being built by process ${owner.pid} on ${owner.host}; wait for it or stop it. If it is gone for sure, remove ${path}`,
      );
    await removeStale(path, content);
  }
  throw new FileError(`cannot lock ${work}: other processes take ${path} again and again`);
}

async function tryLock(path: string): Promise<boolean> {
  try {
    await writeFile(path, JSON.stringify({ pid: process.pid, host: hostname() }), { flag: "wx" });
    return true;
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw fileError(`cannot write ${path}`, cause);
  }
}

/** Undefined for a lock that was cut off while it was written. */
function ownerOf(content: string): z.output<typeof ownerSchema> | undefined {
  try {
    return ownerSchema.safeParse(JSON.parse(content)).data;
  } catch {
    return undefined;
  }
}

function isAlive({ pid, host }: z.output<typeof ownerSchema>, path: string): boolean {
  if (host !== hostname()) return true;
  if (pid === process.pid) return held.has(path);
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
