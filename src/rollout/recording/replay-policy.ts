/**
 * A policy that answers from a recording, offline. The n-th time that a context is completed with the same options and seed
 * it gets the n-th recorded answer, afterwards the last one again. Usage and money are those of the recording.
 */
import { z } from "zod";
import { DataFormatError, FileError, PolicyError } from "../../errors.ts";
import { exists } from "../../shared/files.ts";
import type { Completion, Context, Policy, SamplingOptions } from "../policy.ts";
import { completionKey, type RecordedCompletion, readPolicyRecording } from "./recording-file.ts";

export const replayPolicySchema = z.strictObject({
  type: z
    .literal("replay")
    .describe("Completions that were recorded before (`recordPolicy`), without network and cost."),
  file: z
    .string()
    .min(1, "a path must not be empty")
    .describe("The recording, JSON Lines, gzipped when it ends in .gz. Relative to the recipe's folder."),
  tokenizer: z
    .string()
    .min(1)
    .optional()
    .describe(
      "The tokenizer that was used when it was recorded: a source as for `pretrained`. Relative to the recipe's folder.",
    ),
});

export type ReplayPolicyOptions = z.output<typeof replayPolicySchema>;

export interface ReplayPolicy extends Policy {
  /** What was left out of a file that was cut short. */
  readonly warnings: readonly string[];
  /** Most tokens of an episode when it was recorded; undefined where there was no limit. */
  readonly contextLength: number | undefined;
  /** Whether the tokenizer's chat template opened contexts. */
  readonly hasTemplate: boolean;
}

/** The answers to one context with one set of options. */
interface Track {
  readonly answers: RecordedCompletion["outcome"][];
  asked: number;
}

/**
 * Opens the recording `file`; `tokenizerHash` is that of the tokenizer contexts are made with. Its identity is that of the
 * recorded policy. Throws `FileError` when it is not there, `DataFormatError` when it is no recording or was made with
 * another tokenizer; a completion that was not recorded is a `PolicyError`.
 */
export async function replayPolicy(file: string, tokenizerHash?: string): Promise<ReplayPolicy> {
  if (!(await exists(file)))
    throw new FileError(`cannot read ${file}: no such recording; record one first, or check the path`);
  const { head, completions, warnings } = await readPolicyRecording(file);
  if (head === undefined)
    throw new DataFormatError(file, undefined, "expected a recording, got an empty file");
  if (head.tokenizer !== tokenizerHash)
    throw new DataFormatError(
      file,
      undefined,
      `expected ${hashText(head.tokenizer)}, with which it was recorded, got ${hashText(tokenizerHash)}; correct model.tokenizer`,
    );
  const tracks = new Map<string, Track>();
  for (const { key, outcome } of completions) {
    const track = tracks.get(key) ?? { answers: [], asked: 0 };
    track.answers.push(outcome);
    tracks.set(key, track);
  }
  const next = (context: Context, options: SamplingOptions): Completion => {
    const track = tracks.get(completionKey(context, options));
    if (track === undefined) throw missing(file, context, completions);
    const outcome = track.answers[
      Math.min(track.asked, track.answers.length - 1)
    ] as Track["answers"][number];
    track.asked++;
    if ("error" in outcome) throw new PolicyError(outcome.error);
    return outcome.completion;
  };
  return {
    identity: head.identity,
    warnings,
    contextLength: head.contextLength,
    hasTemplate: head.hasTemplate ?? false,
    complete: async (contexts, options, signal) => {
      signal?.throwIfAborted();
      return contexts.map((context) => next(context, options));
    },
  };
}

function hashText(hash: string | undefined): string {
  return hash === undefined ? "no tokenizer" : `the tokenizer ${hash.slice(0, 12)}`;
}

function missing(
  file: string,
  { episode = "", text }: Context,
  completions: readonly RecordedCompletion[],
): PolicyError {
  const start = JSON.stringify(text.length <= 200 ? text : `…${text.slice(-200)}`);
  const turns = completions.filter((recorded) => recorded.episode === episode).length;
  const known =
    turns === 0
      ? "nothing of this question was recorded"
      : `${turns} completions of it were, with another context, other options or another seed`;
  return new PolicyError(
    `${file}: no completion for question ${episode.replace(/#\d+$/, "") || "(unnamed)"} after ${start}: ${known}; record again with these questions and settings`,
  );
}
