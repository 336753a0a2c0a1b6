/**
 * The file of a recording: JSON Lines, optionally gzipped (`.gz`). A head line opens each session of recording and
 * names the retriever; each call is one line, written when it has ended and numbered by when it began:
 *   {"recording":"forager-retrieval","version":1,"identity":{…}}
 *   {"call":0,"queries":["…"],"k":3,"results":[[{"passage":{…},"score":1.5}]]}   or   {…,"error":"…"}
 * A kill can only cut the last line short; that line is left out and said. A file is read as a whole into memory.
 */
import { z } from "zod";
import { DataFormatError } from "../../errors.ts";
import { canonicalJson } from "../../shared/hash.ts";
import { parseRecordingLine, type RecordedLines, readRecordedLines } from "../../shared/recording-lines.ts";
import type { RetrieverIdentity, ScoredPassage } from "../retriever.ts";

export const RECORDING_VERSION = 1;

export interface RecordedCall {
  readonly queries: readonly string[];
  readonly k: number;
  /** One list for each query, or the message of the error. */
  readonly outcome: { readonly results: readonly (readonly ScoredPassage[])[] } | { readonly error: string };
}

export interface Recording extends RecordedLines {
  /** Absent in a file that holds nothing yet. */
  readonly identity: RetrieverIdentity | undefined;
  /** In the order in which the calls began. */
  readonly calls: readonly RecordedCall[];
  /** The number for the next call. */
  readonly nextCall: number;
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
      page: z.int().min(0).optional(),
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
  const { lines, isCutShort, warnings } = await readRecordedLines(file);
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
  return {
    identity,
    calls: calls.sort((a, b) => a.call - b.call),
    nextCall: calls.reduce((next, { call }) => Math.max(next, call + 1), 0),
    warnings,
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
  const place = { file, line: number, version: RECORDING_VERSION };
  const value = parseRecordingLine(line, place, { head: headSchema, entry: callSchema });
  // Taken from the text itself and not from the schema's copy, so that replayed JSON is equal byte for byte.
  if ("recording" in value) return value as unknown as z.infer<typeof headSchema>;
  const { call, queries, k, ...outcome } = value as {
    readonly call: number;
    readonly queries: readonly string[];
    readonly k: number;
  } & RecordedCall["outcome"];
  return { call, queries, k, outcome };
}
