/**
 * A file of recorded calls as lines: JSON Lines, optionally gzipped (`.gz`), with a head line that opens each session. A
 * kill can only cut the last line short; that line is left out and said. A file is read as a whole into memory.
 */
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { dirname } from "node:path";
import { createGunzip, gzipSync } from "node:zlib";
import type { z } from "zod";
import { DataFormatError, FileError } from "../errors.ts";
import { exists, fileError, makeFolder, writeFileAtomic } from "./files.ts";
import { type LineWriter, openLineWriter } from "./line-writer.ts";

export interface RecordedLines {
  /** The whole lines, as they stand in the file. */
  readonly lines: readonly string[];
  /** Whether the end of the file must be taken off before anything is appended. */
  readonly isCutShort: boolean;
  /** What was left out, for the user. */
  readonly warnings: readonly string[];
}

/** The whole lines of `file`; none where it does not exist. Throws `FileError`, `DataFormatError` for damaged gzip. */
export async function readRecordedLines(file: string): Promise<RecordedLines> {
  const { text, isBroken } = (await exists(file)) ? await readText(file) : { text: "", isBroken: false };
  const lines = text.split("\n");
  const rest = lines.pop() ?? "";
  const isCutShort = isBroken || rest !== "";
  const cut = `${file}: the last line is cut short, by a kill or a full disk; it is left out`;
  return { lines, isCutShort, warnings: isCutShort ? [cut] : [] };
}

/** Opens `file` for appending after the lines that were read of it; folders are made. Throws `FileError`. */
export async function appendRecordedLines(file: string, before: RecordedLines): Promise<LineWriter> {
  if (before.isCutShort) {
    const text = before.lines.map((line) => `${line}\n`).join("");
    await writeFileAtomic(file, file.endsWith(".gz") ? gzipSync(text) : text);
  } else
    try {
      await makeFolder(dirname(file));
    } catch (cause) {
      throw fileError(`cannot write ${file}`, cause);
    }
  return await openLineWriter(file);
}

export interface RecordingPlace {
  readonly file: string;
  /** From 1. */
  readonly line: number;
  /** That is understood. */
  readonly version: number;
}

/**
 * The value of one line as it was written, after its check against `head`, where it has a key `recording`, or `entry`.
 * Throws `DataFormatError`.
 */
export function parseRecordingLine(
  text: string,
  { file, line, version }: RecordingPlace,
  { head, entry }: { readonly head: z.ZodType; readonly entry: z.ZodType },
): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    const came = JSON.stringify(text.slice(0, 60));
    throw new DataFormatError(file, line, `expected a line of a recording, got ${came}`, { cause });
  }
  const isHead = value !== null && typeof value === "object" && "recording" in value;
  const parsed = (isHead ? head : entry).safeParse(value);
  if (parsed.success) return value as Readonly<Record<string, unknown>>;
  const [issue] = parsed.error.issues;
  throw new DataFormatError(
    file,
    line,
    `expected a line of a recording, version ${version}, got one in which ${issue?.path.join(".") || "it"}: ${issue?.message}`,
  );
}

/** The text up to where the file breaks off. */
async function readText(file: string): Promise<{ text: string; isBroken: boolean }> {
  const chunks: Buffer[] = [];
  // A device such as /dev/zero would never end.
  if (!(await stat(file)).isFile())
    throw new FileError(
      `cannot read ${file}: expected a file, got a folder or a device; choose another path`,
    );
  const source = createReadStream(file);
  const stream = file.endsWith(".gz") ? source.pipe(createGunzip()) : source;
  // A pipe does not hand on the errors of its source.
  source.on("error", (error) => stream.destroy(error));
  let isBroken = false;
  try {
    for await (const chunk of stream) chunks.push(chunk as Buffer);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== "Z_BUF_ERROR") throw readError(file, cause);
    isBroken = true;
  }
  return { text: Buffer.concat(chunks).toString("utf8"), isBroken };
}

function readError(file: string, cause: unknown): unknown {
  const { code = "" } = cause as NodeJS.ErrnoException;
  if (code.startsWith("Z_"))
    return new DataFormatError(file, undefined, `expected gzipped text, got other bytes (${code})`, {
      cause,
    });
  return fileError(`cannot read ${file}`, cause);
}
