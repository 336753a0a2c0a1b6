/** Where results will go, looked at before the work is done: hours must not be lost to a wrong path. */
import { access, constants, stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";
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

/** Can `folder` be written, or made? */
export async function inspectFolder(folder: string): Promise<FolderState> {
  let existing = resolve(folder);
  while (!(await exists(existing)) && dirname(existing) !== existing) existing = dirname(existing);
  if (!(await stat(existing)).isDirectory())
    return { existing, problem: `${existing} is a file, not a folder` };
  const isWritable = await access(existing, constants.W_OK | constants.X_OK).then(
    () => true,
    () => false,
  );
  return { existing, problem: isWritable ? undefined : `${existing} may not be written by you` };
}
