/**
 * JSON lines that survive a kill: a line is appended with one write, so only the last line can be torn (cut off
 * in the middle, without a line end). Readers skip a torn last line; writers cut it off before they append.
 */
import { type FileHandle, open, readFile } from "node:fs/promises";
import type { ZodType } from "zod";
import { DataFormatError } from "../errors.ts";
import { exists, fileError, writeFileAtomic } from "../shared/files.ts";

/** Appends one line for each value, all with one write. Throws `FileError`. */
export async function appendJsonLines(path: string, values: readonly unknown[]): Promise<void> {
  if (values.length === 0) return;
  const text = values.map((value) => `${JSON.stringify(value)}\n`).join("");
  await withFile(path, "a", (handle) => handle.appendFile(text));
}

/** Makes `path` safe to append to: a torn last line is cut off, a whole one gets its line end. */
export async function repairJsonLines(path: string): Promise<void> {
  if (!(await exists(path))) return;
  await withFile(path, "r+", async (handle) => {
    const data = await handle.readFile();
    const tail = data.lastIndexOf(0x0a) + 1;
    if (tail === data.length) return;
    if (isJson(data.subarray(tail).toString("utf8"))) await handle.write("\n", data.length);
    else await handle.truncate(tail);
    await handle.sync();
  });
}

/**
 * Every record of `path`, checked by `schema`; empty when there is no such file. A torn last line is left out.
 * Throws `DataFormatError` with file and line for any other line that is not what was expected.
 */
export async function readJsonLines<T>(path: string, schema: ZodType<T>): Promise<T[]> {
  if (!(await exists(path))) return [];
  const text = await readText(path);
  const lines = text.split("\n");
  const records: T[] = [];
  for (const [index, line] of lines.entries()) {
    if (line === "") continue;
    const isUnterminated = index === lines.length - 1;
    if (isUnterminated && !isJson(line)) continue;
    records.push(parseRecord(line, schema, { file: path, line: index + 1 }));
  }
  return records;
}

/** Replaces `path` by these records in one step. Throws `FileError`. */
export async function writeJsonLines(path: string, values: readonly unknown[]): Promise<void> {
  await writeFileAtomic(path, values.map((value) => `${JSON.stringify(value)}\n`).join(""));
}

/** The whole text of a file. Throws `FileError` with advice. */
export async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (cause) {
    throw fileError(`cannot read ${path}`, cause);
  }
}

/** One JSON text checked by `schema`. Throws `DataFormatError` that names the place and the wrong key. */
export function parseRecord<T>(
  text: string,
  schema: ZodType<T>,
  place: { readonly file: string; readonly line?: number },
): T {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new DataFormatError(place.file, place.line, "expected one JSON object, got text that is not JSON", {
      cause,
    });
  }
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const key = issue?.path.map(String).join(".") || "the record";
  throw new DataFormatError(place.file, place.line, `${key}: ${issue?.message ?? "not as expected"}`, {
    cause: parsed.error,
  });
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

async function withFile(
  path: string,
  flags: string,
  use: (handle: FileHandle) => Promise<unknown>,
): Promise<void> {
  try {
    const handle = await open(path, flags);
    try {
      await use(handle);
    } finally {
      await handle.close();
    }
  } catch (cause) {
    throw fileError(`cannot write ${path}`, cause);
  }
}
