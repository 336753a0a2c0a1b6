/**
 * The file of a recording: JSON Lines, optionally gzipped (`.gz`). A head line opens each session of recording and
 * names the retriever; each call is one line, written when it has ended and numbered by when it began:
 *   {"recording":"forager-retrieval","version":1,"identity":{…}}
 *   {"call":0,"queries":["…"],"k":3,"results":[[{"passage":{…},"score":1.5}]]}   or   {…,"error":"…"}
 * A kill can only cut the last line short; that line is left out and said. A file is read as a whole into memory.
 */
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { createGunzip } from "node:zlib";
import { z } from "zod";
import { DataFormatError, FileError } from "../../errors.ts";
import { exists, fileError } from "../../shared/files.ts";
import { canonicalJson } from "../../shared/hash.ts";
import type { RetrieverIdentity, ScoredPassage } from "../retriever.ts";

export const RECORDING_VERSION = 1;

export interface RecordedCall {
  readonly queries: readonly string[];
  readonly k: number;
  /** One list for each query, or the message of the error. */
  readonly outcome: { readonly results: readonly (readonly ScoredPassage[])[] } | { readonly error: string };
}

export interface Recording {
  /** Absent in a file that holds nothing yet. */
  readonly identity: RetrieverIdentity | undefined;
  /** In the order in which the calls began. */
  readonly calls: readonly RecordedCall[];
  /** The number for the next call. */
  readonly nextCall: number;
  /** What was left out, for the user. */
  readonly warnings: readonly string[];
  /** Whether the end of the file must be taken off before anything is appended. */
  readonly isCutShort: boolean;
  /** The whole lines, as they stand in the file. */
  readonly lines: readonly string[];
}

const identitySchema = z.strictObject({
  method: z.string(),
  corpusHash: z.string(),
  indexHash: z.string(),
  parameters: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])),
});
const passageSchema = z.strictObject({
  id: z.string(),
  title: z.string(),
  text: z.string(),
  source: z
    .strictObject({
      document: z.string(),
      start: z.int().min(0),
      end: z.int().min(0),
      page: z.int().min(1).optional(),
    })
    .optional(),
  extra: z.record(z.string(), z.unknown()).optional(),
});
const headSchema = z.strictObject({
  recording: z.literal("forager-retrieval"),
  version: z.literal(RECORDING_VERSION),
  identity: identitySchema,
});
const callSchema = z
  .strictObject({
    call: z.int().min(0),
    queries: z.array(z.string()),
    k: z.int().min(1),
    results: z.array(z.array(z.strictObject({ passage: passageSchema, score: z.number() }))).optional(),
    error: z.string().optional(),
  })
  .refine(
    ({ queries, results, error }) =>
      results === undefined ? error !== undefined : error === undefined && results.length === queries.length,
    "expected results for each query, or an error",
  );

export function headLine(identity: RetrieverIdentity): string {
  return JSON.stringify({ recording: "forager-retrieval", version: RECORDING_VERSION, identity });
}

export function callLine(call: number, { queries, k, outcome }: RecordedCall): string {
  return JSON.stringify({ call, queries, k, ...outcome });
}

/**
 * Reads a recording. Throws `FileError` when it cannot be read, `DataFormatError` (file, line) for a line in its midst
 * that is damaged and for sessions of different retrievers. A file that does not exist is read as an empty one.
 */
export async function readRecording(file: string): Promise<Recording> {
  const { text, isBroken } = (await exists(file)) ? await readText(file) : { text: "", isBroken: false };
  const lines = text.split("\n");
  const rest = lines.pop() ?? "";
  const isCutShort = isBroken || rest !== "";
  const calls: (RecordedCall & { readonly call: number })[] = [];
  let identity: RetrieverIdentity | undefined;
  for (const [index, line] of lines.entries()) {
    const value = parseLine(line, file, index + 1);
    if (!("recording" in value)) calls.push(value);
    else if (identity === undefined || canonicalJson(identity) === canonicalJson(value.identity))
      identity = value.identity;
    else throw otherRetriever(file, index + 1, { recorded: identity, came: value.identity });
    if (identity === undefined)
      throw new DataFormatError(file, index + 1, "expected the head of a recording, got a call");
  }
  const cut = `${file}: the last line is cut short, by a kill or a full disk; it is left out`;
  return {
    identity,
    calls: calls.sort((a, b) => a.call - b.call),
    nextCall: calls.reduce((next, { call }) => Math.max(next, call + 1), 0),
    warnings: isCutShort ? [cut] : [],
    isCutShort,
    lines,
  };
}

/** The error for a recording that belongs to another retriever than the one at hand. */
export function otherRetriever(
  file: string,
  line: number | undefined,
  { recorded, came }: { readonly recorded: RetrieverIdentity; readonly came: RetrieverIdentity },
): DataFormatError {
  const difference = [...new Set([...Object.keys(flat(recorded)), ...Object.keys(flat(came))])]
    .filter((key) => flat(recorded)[key] !== flat(came)[key])
    .map((key) => `${key} ${String(flat(recorded)[key])} and ${String(flat(came)[key])}`);
  return new DataFormatError(
    file,
    line,
    `expected the recording of one retriever, got two that differ in ${difference.join(", ")}; record into another file`,
  );
}

function flat({ parameters, ...identity }: RetrieverIdentity): Record<string, unknown> {
  return { ...identity, ...parameters };
}

function parseLine(line: string, file: string, number: number) {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (cause) {
    throw new DataFormatError(
      file,
      number,
      `expected a line of a recording, got ${JSON.stringify(line.slice(0, 60))}`,
      { cause },
    );
  }
  const isHead = value !== null && typeof value === "object" && "recording" in value;
  const parsed = isHead ? headSchema.safeParse(value) : callSchema.safeParse(value);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new DataFormatError(
      file,
      number,
      `expected a line of a recording, version ${RECORDING_VERSION}, got one in which ${issue?.path.join(".") || "it"}: ${issue?.message}`,
    );
  }
  // Taken from the text itself and not from the schema's copy, so that replayed JSON is equal byte for byte.
  if (isHead) return value as z.infer<typeof headSchema>;
  const { call, queries, k, ...outcome } = value as {
    readonly call: number;
    readonly queries: readonly string[];
    readonly k: number;
  } & RecordedCall["outcome"];
  return { call, queries, k, outcome };
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
