/**
 * A policy that writes down what another one answers, for replay without it. A completion is given only when it is on
 * the disk. One recorder a file at a time; another session appends, when the policy is the same.
 */
import { PolicyError } from "../../errors.ts";
import { isBudgetSpent } from "../../shared/budget.ts";
import { appendRecordedLines } from "../../shared/recording-lines.ts";
import type { Completion, Context, Policy, SamplingOptions } from "../policy.ts";
import {
  completionKey,
  completionLine,
  headLine,
  type RecordedCompletion,
  type RecordingHead,
  readPolicyRecording,
  requireSameHead,
} from "./recording-file.ts";

export interface RecordingPolicy extends Policy {
  /** What was left out of a file that was cut short. */
  readonly warnings: readonly string[];
  /** Finishes the file; afterwards nothing can be completed. */
  close(): Promise<void>;
}

/** What contexts depend on besides the policy; a replay must have the same. */
export type RecordingSetting = Omit<RecordingHead, "identity">;

/**
 * Answers as `policy` does and appends each completion, or the message of a `PolicyError`, to `file` (gzipped when it ends
 * in `.gz`). Each context is asked for by itself. Aborted calls and those that no budget was left for leave no trace.
 * Throws `FileError`, and `DataFormatError` when the file holds something else or another policy's completions.
 */
export async function recordPolicy(
  policy: Policy,
  file: string,
  setting: RecordingSetting = {},
): Promise<RecordingPolicy> {
  const head: RecordingHead = { identity: policy.identity, ...setting };
  const before = await readPolicyRecording(file);
  requireSameHead(file, undefined, { recorded: before.head, came: head });
  const writer = await appendRecordedLines(file, before);
  await writer.write(headLine(head));
  let next = before.nextCall;
  const complete = async (
    context: Context,
    options: SamplingOptions,
    signal: AbortSignal | undefined,
  ): Promise<Completion> => {
    const call = next++;
    const named = { call, key: completionKey(context, options), episode: context.episode ?? "" };
    const note = (outcome: RecordedCompletion["outcome"]): Promise<void> =>
      writer.write(completionLine({ ...named, outcome }));
    try {
      const [completion] = await policy.complete([context], options, signal);
      if (completion === undefined)
        throw new PolicyError("expected one completion for one context, got none");
      await note({ completion });
      return completion;
    } catch (error) {
      if (error instanceof PolicyError && !isBudgetSpent(error)) await note({ error: error.message });
      throw error;
    }
  };
  return {
    identity: policy.identity,
    warnings: before.warnings,
    complete: async (contexts, options, signal) => {
      signal?.throwIfAborted();
      return await Promise.all(contexts.map((context) => complete(context, options, signal)));
    },
    ...(policy.forget && { forget: () => policy.forget?.() }),
    close: () => writer.close(),
  };
}
