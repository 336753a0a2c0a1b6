/**
 * The file of recorded completions: JSON Lines, optionally gzipped (`.gz`). A head line opens each session and names the
 * policy; each completion is one line, written when it has ended and numbered by when it began:
 *   {"recording":"forager-policy","version":1,"identity":{…},"tokenizer":"HASH","contextLength":4096}
 *   {"call":0,"key":"HASH","episode":"nq/1#0","completion":{…}}   or   {…,"error":"…"}
 * The key is a hash of everything a completion depends on but the policy: context, sampling options and seed.
 */
import { z } from "zod";
import { DataFormatError } from "../../errors.ts";
import { canonicalJson, sha256 } from "../../shared/hash.ts";
import { parseRecordingLine, type RecordedLines, readRecordedLines } from "../../shared/recording-lines.ts";
import type { Completion, Context, PolicyIdentity, SamplingOptions } from "../policy.ts";

export const RECORDING_VERSION = 1;

/** Whose completions are recorded, and what contexts depend on besides. */
export interface RecordingHead {
  readonly identity: PolicyIdentity;
  /** Hash of the tokenizer that contexts were made with, where there was one. */
  readonly tokenizer?: string;
  /** Whether that tokenizer's chat template opened contexts, where it has one. */
  readonly hasTemplate?: boolean;
  /** Most tokens of an episode, which shortens what a turn may have. */
  readonly contextLength?: number;
}

export interface RecordedCompletion {
  readonly call: number;
  readonly key: string;
  /** Empty for a context without one. */
  readonly episode: string;
  readonly outcome: { readonly completion: Completion } | { readonly error: string };
}

export interface PolicyRecording extends RecordedLines {
  /** Absent in a file that holds nothing yet. */
  readonly head: RecordingHead | undefined;
  /** In the order in which the calls began. */
  readonly completions: readonly RecordedCompletion[];
  /** The number for the next call. */
  readonly nextCall: number;
}

const headSchema = z.strictObject({
  recording: z.literal("forager-policy"),
  version: z.literal(RECORDING_VERSION),
  identity: z.strictObject({
    type: z.string(),
    model: z.string(),
    weights: z.exactOptional(z.string()),
    version: z.exactOptional(z.int()),
  }),
  tokenizer: z.exactOptional(z.string()),
  hasTemplate: z.exactOptional(z.boolean()),
  contextLength: z.exactOptional(z.int().min(1)),
});
const count = z.int().min(0);
const entrySchema = z
  .strictObject({
    call: count,
    key: z.string(),
    episode: z.string(),
    completion: z.exactOptional(
      z.strictObject({
        text: z.string(),
        tokens: z.exactOptional(z.array(count)),
        logprobs: z.exactOptional(z.array(z.number())),
        finishReason: z.enum(["stop", "endOfText", "length"]),
        usage: z.strictObject({
          promptTokens: count,
          completionTokens: count,
          cachedTokens: z.exactOptional(count),
          dollars: z.exactOptional(z.number().min(0)),
        }),
      }),
    ),
    error: z.exactOptional(z.string()),
  })
  .refine(
    ({ completion, error }) => (completion === undefined) !== (error === undefined),
    "expected a completion or an error",
  );

/** SHA-256 of what a completion depends on besides the policy. The episode's name and the parts of the text do not count. */
export function completionKey({ text, tokens, seed }: Context, options: SamplingOptions): string {
  const { maxTokens, temperature, topP, topK, stop } = options;
  return sha256(
    canonicalJson({ text, tokens: tokens ?? null, seed, maxTokens, temperature, topP, topK, stop }),
  );
}

export function headLine(head: RecordingHead): string {
  return JSON.stringify({ recording: "forager-policy", version: RECORDING_VERSION, ...head });
}

export function completionLine({ call, key, episode, outcome }: RecordedCompletion): string {
  return JSON.stringify({ call, key, episode, ...outcome });
}

/**
 * Reads a recording. Throws `FileError` when it cannot be read, `DataFormatError` (file, line) for a line in its midst
 * that is damaged and for sessions of different policies. A file that does not exist is read as an empty one.
 */
export async function readPolicyRecording(file: string): Promise<PolicyRecording> {
  const recorded = await readRecordedLines(file);
  const completions: RecordedCompletion[] = [];
  let head: RecordingHead | undefined;
  for (const [index, text] of recorded.lines.entries()) {
    const line = index + 1;
    const value = parseRecordingLine(
      text,
      { file, line, version: RECORDING_VERSION },
      { head: headSchema, entry: entrySchema },
    );
    if ("recording" in value) {
      const { recording: _, version: __, ...came } = value;
      requireSameHead(file, line, { recorded: head, came: came as unknown as RecordingHead });
      head = came as unknown as RecordingHead;
    } else if (head === undefined)
      throw new DataFormatError(file, line, "expected the head of a recording, got a completion");
    else completions.push(entryOf(value));
  }
  return {
    ...recorded,
    head,
    completions: completions.sort((a, b) => a.call - b.call),
    nextCall: completions.reduce((next, { call }) => Math.max(next, call + 1), 0),
  };
}

function entryOf(value: Readonly<Record<string, unknown>>): RecordedCompletion {
  const { call, key, episode, ...outcome } = value;
  return { call, key, episode, outcome } as RecordedCompletion;
}

/** Throws `DataFormatError` when a recording belongs to another policy, tokenizer or context length than the one at hand. */
export function requireSameHead(
  file: string,
  line: number | undefined,
  { recorded, came }: { readonly recorded: RecordingHead | undefined; readonly came: RecordingHead },
): void {
  if (recorded === undefined) return;
  const [left, right] = [flat(recorded), flat(came)];
  const keys = [...new Set([...Object.keys(left), ...Object.keys(right)])];
  const differences = keys.filter((key) => left[key] !== right[key]);
  if (differences.length === 0) return;
  const shown = differences.map((key) => `${key} (${left[key] ?? "none"} and ${right[key] ?? "none"})`);
  throw new DataFormatError(
    file,
    line,
    `expected the recording of one policy, got two that differ in ${shown.join(", ")}; record into another file`,
  );
}

function flat({ identity, ...rest }: RecordingHead): Record<string, unknown> {
  return { ...identity, ...rest };
}
