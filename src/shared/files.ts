/**
 * Files that are never half written: a temporary name beside the target, fsync, then rename. Everything that a
 * user waited for (checkpoints, results, indexes) goes through here.
 */
import { type FileHandle, mkdir, open, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { FileError } from "../errors.ts";

/** Replaces `path` by `data` in one step; a crash leaves the old file or the new one. Throws `FileError`. */
export async function writeFileAtomic(
  path: string,
  data: string | Uint8Array | Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
): Promise<void> {
  const temporary = join(dirname(path), `.${basename(path)}.${process.pid}.partial`);
  try {
    await makeFolder(dirname(path));
    const handle = await open(temporary, "w");
    try {
      if (typeof data === "string" || data instanceof Uint8Array) await handle.writeFile(data);
      else for await (const piece of data) await handle.appendFile(piece);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, path);
    await syncFolder(dirname(path));
  } catch (cause) {
    await rm(temporary, { force: true }).catch(() => undefined);
    throw fileError(`cannot write ${path}`, cause);
  }
}

/**
 * Makes the folder `path` appear with all its content at once: `fill` writes into a temporary folder that is
 * then renamed. `path` must not exist. Throws `FileError`, or what `fill` throws.
 */
export async function createFolderAtomic(
  path: string,
  fill: (folder: string) => Promise<void>,
): Promise<void> {
  if (await exists(path)) throw new FileError(`${path} exists already; choose another folder or remove it`);
  const temporary = join(dirname(path), `.${basename(path)}.${process.pid}.partial`);
  try {
    await rm(temporary, { recursive: true, force: true });
    await makeFolder(temporary);
    await fill(temporary);
    await syncFolder(temporary);
    await rename(temporary, path);
    await syncFolder(dirname(path));
  } catch (cause) {
    await rm(temporary, { recursive: true, force: true }).catch(() => undefined);
    throw fileError(`cannot write ${path}`, cause);
  }
}

/**
 * Makes the folder `path` and those above it; one that is there is fine. Throws `FileError` where a folder takes no new
 * ones, else the error of the file system. In place of Node's recursive `mkdir`, which never returns below a folder such
 * as /proc that refuses new ones as if it were missing itself.
 */
export async function makeFolder(path: string): Promise<void> {
  for (let attempt = 0; attempt < 5; attempt++) {
    try {
      await mkdir(path);
      return;
    } catch (error) {
      const parent = dirname(path);
      const { code } = error as NodeJS.ErrnoException;
      const found = await stat(path).catch(() => undefined);
      if (found?.isDirectory()) return;
      if (found !== undefined || (code !== "ENOENT" && code !== "EEXIST")) throw error;
      if (await exists(parent)) continue;
      await makeFolder(parent);
    }
  }
  throw new FileError(
    `cannot make the folder ${path}: ${dirname(path)} takes no new folders; choose another place`,
  );
}

/**
 * Waits for all of several writes into one folder and then throws what the first of them threw: a write that still went on
 * would put its file back into a folder that was cleared because another failed.
 */
export async function allWritten(writes: readonly Promise<unknown>[]): Promise<void> {
  const outcomes = await Promise.allSettled(writes);
  for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
}

export async function exists(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (error) {
    if (isSystemError(error) && (error.code === "ENOENT" || error.code === "ENOTDIR")) return false;
    throw error;
  }
}

/** Turns an error of the file system into a `FileError` with advice; other errors are returned as they are. */
export function fileError(what: string, cause: unknown): unknown {
  if (!isSystemError(cause)) return cause;
  const advice: Record<string, string> = {
    ENOSPC: "the disk is full; free some space and run again",
    EDQUOT: "the disk quota is used up; free some space and run again",
    EFBIG:
      "files may not be that large here (ulimit -f, or the file system); raise the limit or choose another folder",
    EACCES: "permission denied; choose a folder you may write to",
    EPERM: "permission denied; choose a folder you may write to",
    EROFS: "the file system is read-only; choose another folder",
    ENOENT: "no such file or folder; check the path",
    // Making the folders of a path ends so when one of them is a file.
    EEXIST: "a part of the path is a file, not a folder; check the path",
    ENOTDIR: "a part of the path is a file, not a folder; check the path",
    EISDIR: "it is a folder, a file was expected; check the path",
    EMFILE: "too many open files; raise the limit with ulimit -n",
  };
  return new FileError(`${what}: ${advice[cause.code ?? ""] ?? cause.message}`, { cause });
}

function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return (
    error instanceof Error && typeof (error as NodeJS.ErrnoException).code === "string" && "syscall" in error
  );
}

/** Makes a rename durable; file systems that cannot sync a folder are left alone. */
async function syncFolder(folder: string): Promise<void> {
  let handle: FileHandle | undefined;
  try {
    handle = await open(folder, "r");
    await handle.sync();
  } catch (error) {
    if (!isSystemError(error) || !["EISDIR", "EINVAL", "EPERM", "ENOTSUP"].includes(error.code ?? ""))
      throw error;
  } finally {
    await handle?.close();
  }
}
