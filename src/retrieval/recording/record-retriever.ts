/**
 * A retriever that writes down what another one answers, for replay without it. An answer is given only when it is
 * on the disk. One recorder a file at a time; another session appends, when the retriever is the same.
 */
import { RetrieverError } from "../../errors.ts";
import { isBudgetSpent } from "../../shared/budget.ts";
import { canonicalJson } from "../../shared/hash.ts";
import { appendRecordedLines } from "../../shared/recording-lines.ts";
import type { Retriever } from "../retriever.ts";
import { callLine, headLine, otherRetriever, type RecordedCall, readRecording } from "./recording-file.ts";

export interface RecordingRetriever extends Retriever {
  /** What was left out of a file that was cut short. */
  readonly warnings: readonly string[];
  /** Finishes the file; afterwards nothing can be retrieved. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Answers as `retriever` does and appends each call to `file` (gzipped when it ends in `.gz`): queries, k, and the
 * results or the message of a `RetrieverError`. Aborted calls and those that no budget was left for leave no trace.
 * Throws `FileError`, and `DataFormatError` when the file holds something else or another retriever's answers.
 */
export async function recordRetriever(retriever: Retriever, file: string): Promise<RecordingRetriever> {
  const { identity } = retriever;
  const before = await readRecording(file);
  if (before.identity !== undefined && canonicalJson(before.identity) !== canonicalJson(identity))
    throw otherRetriever(file, undefined, { recorded: before.identity, came: identity });
  const writer = await appendRecordedLines(file, before);
  await writer.write(headLine(identity));
  let next = before.nextCall;
  const close = once(() => writer.close());
  return {
    identity,
    spent: retriever.spent,
    warnings: before.warnings,
    close,
    [Symbol.asyncDispose]: close,
    retrieve: async (queries, k, signal) => {
      const call = next++;
      const note = (outcome: RecordedCall["outcome"]): Promise<void> =>
        writer.write(callLine(call, { queries, k, outcome }));
      try {
        const results = await retriever.retrieve(queries, k, signal);
        await note({ results });
        return results;
      } catch (error) {
        if (error instanceof RetrieverError && !isBudgetSpent(error) && Number.isInteger(k) && k >= 1)
          await note({ error: error.message });
        throw error;
      }
    },
  };
}

function once(work: () => Promise<void>): () => Promise<void> {
  let done: Promise<void> | undefined;
  return () => {
    done ??= work();
    return done;
  };
}
