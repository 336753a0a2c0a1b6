/** Reads a JSON file of a checkpoint, with an error that names it. */
import { readFile } from "node:fs/promises";
import { CheckpointError } from "../errors.ts";
import { fileError } from "../shared/files.ts";

/** Throws `FileError` when it cannot be read, `CheckpointError` when it is not JSON. */
export async function readJson(path: string): Promise<unknown> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (cause) {
    throw fileError(`cannot read ${path}`, cause);
  }
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new CheckpointError(`${path} is not JSON: ${(cause as Error).message}`, { cause });
  }
}
