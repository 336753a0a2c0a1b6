/** What a kill leaves of `createFolderAtomic` and `writeFileAtomic`: `.NAME.PID.partial` beside NAME. */
import { readdir, rm } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";

/** Removes what processes that are gone left half written for `path`; what a living one writes stays. */
export async function removeAbandoned(path: string): Promise<void> {
  const folder = dirname(resolve(path));
  const prefix = `.${basename(path)}.`;
  const names = await readdir(folder).catch(() => []);
  for (const name of names) {
    const [, owner] = /^(\d+)\.partial$/.exec(name.startsWith(prefix) ? name.slice(prefix.length) : "") ?? [];
    if (owner !== undefined && !isAlive(Number(owner)))
      await rm(join(folder, name), { recursive: true, force: true });
  }
}

function isAlive(owner: number): boolean {
  try {
    process.kill(owner, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}
