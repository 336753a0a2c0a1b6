/**
 * Appends lines to a file so that a line that was acknowledged survives a kill: lines that come together are written
 * and synced together, in the order in which they came. A `.gz` file grows by one gzip member a write.
 */
import { type FileHandle, open } from "node:fs/promises";
import { gzipSync } from "node:zlib";
import { fileError } from "./files.ts";

export interface LineWriter {
  /** Resolves when the line is on the disk; throws `FileError`, then and ever after, when it cannot be. */
  write(line: string): Promise<void>;
  /** Waits for what was written; nothing may be written afterwards. */
  close(): Promise<void>;
}

/** Opens `file` for appending. Throws `FileError`. */
export async function openLineWriter(file: string): Promise<LineWriter> {
  let handle: FileHandle;
  try {
    handle = await open(file, "a");
  } catch (cause) {
    throw fileError(`cannot write ${file}`, cause);
  }
  let waiting: string[] = [];
  let pending: Promise<void> | undefined;
  let failure: unknown;
  let last: Promise<void> = Promise.resolve();
  const flush = async (): Promise<void> => {
    const text = waiting.map((line) => `${line}\n`).join("");
    waiting = [];
    pending = undefined;
    // After a failed write the end of the file is unknown, so that appending would damage it.
    if (failure !== undefined) throw failure;
    try {
      await handle.appendFile(file.endsWith(".gz") ? gzipSync(text) : text);
      await handle.datasync();
    } catch (cause) {
      failure = fileError(`cannot write ${file}`, cause);
      throw failure;
    }
  };
  return {
    write: (line) => {
      waiting.push(line);
      if (pending === undefined) {
        pending = last.then(flush, flush);
        last = pending;
      }
      return pending;
    },
    close: async () => {
      await last.catch(() => undefined);
      await handle.close();
    },
  };
}
