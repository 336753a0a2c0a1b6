/** Where results will go, looked at before the work is done: hours must not be lost to a wrong path. */
import { mkdtemp, rmdir, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { FileError } from "../errors.ts";
import { exists } from "../shared/files.ts";

/** Throws `FileError` when there is something at `path`, with `advice`, or when its folder cannot be written. */
export async function requireNewPath(path: string, advice: string): Promise<void> {
  if (await exists(path)) throw new FileError(`${path} exists already; ${advice}`);
  const { problem } = await inspectFolder(dirname(resolve(path)));
  if (problem !== undefined) throw new FileError(`cannot write ${path}: ${problem}; choose another place`);
}

export interface FolderState {
  /** The folder itself, or the nearest above it that exists. */
  readonly existing: string;
  /** Why nothing can be written there; a full disk shows only later. */
  readonly problem: string | undefined;
}

/** Can `folder` be written, or made? Tried with a folder that is removed at once: permissions alone say yes of /proc. */
export async function inspectFolder(folder: string): Promise<FolderState> {
  let existing = resolve(folder);
  while (!(await exists(existing)) && dirname(existing) !== existing) existing = dirname(existing);
  if (!(await stat(existing)).isDirectory())
    return { existing, problem: `${existing} is a file, not a folder` };
  try {
    await rmdir(await mkdtemp(join(existing, ".forager-")));
    return { existing, problem: undefined };
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    return { existing, problem: `${existing} ${refusals[code] ?? "takes nothing new"}` };
  }
}

const refusals: Readonly<Record<string, string>> = {
  EACCES: "may not be written by you",
  EPERM: "may not be written by you",
  EROFS: "is on a file system that is read-only",
  ENOSPC: "is on a disk that is full",
};
