/**
 * A retriever that answers from a recording, offline. Queries are found one by one, so that a replay may batch them
 * otherwise than the recording did. The n-th time that a query is asked it gets its n-th recorded answer, afterwards
 * the last one again. An answer recorded for a larger k is cut, as the contract of retrievers allows.
 */
import { z } from "zod";
import { DataFormatError, FileError, RetrieverError } from "../../errors.ts";
import { exists } from "../../shared/files.ts";
import type { Retriever, ScoredPassage } from "../retriever.ts";
import { checkK } from "../retriever.ts";
import { type RecordedCall, readRecording } from "./recording-file.ts";

export const replaySourceSchema = z.strictObject({
  type: z.literal("replay").describe("Answers that were recorded before, without network and cost."),
  file: z
    .string()
    .min(1, "a path must not be empty")
    .describe("The recording, JSON Lines, gzipped when it ends in .gz. Relative to the recipe's folder."),
});

export type ReplayOptions = z.output<typeof replaySourceSchema>;

export interface ReplayRetriever extends Retriever {
  /** What was left out of a file that was cut short. */
  readonly warnings: readonly string[];
  /** Recorded calls. */
  readonly calls: number;
}

type Answer = { readonly results: readonly ScoredPassage[] } | { readonly error: string };

/** The answers of one query for one k, in the order in which they were asked for. */
interface Track {
  readonly answers: Answer[];
  asked: number;
}

/**
 * Opens the recording `file`. Its identity is that of the recorded retriever. Throws `FileError` when it is not
 * there, `DataFormatError` when it is no recording; a query that was not recorded is a `RetrieverError`.
 */
export async function replayRetriever(file: string): Promise<ReplayRetriever> {
  if (!(await exists(file)))
    throw new FileError(`cannot read ${file}: no such recording; record one first, or check the path`);
  const { identity, calls, warnings } = await readRecording(file);
  if (identity === undefined)
    throw new DataFormatError(file, undefined, "expected a recording, got an empty file");
  const tracks = tracksOf(calls);
  return {
    identity,
    warnings,
    calls: calls.length,
    retrieve: async (queries, k, signal) => {
      checkK(k);
      signal?.throwIfAborted();
      return queries.map((query) => answer(query, k, { tracks, file }));
    },
  };
}

type Tracks = ReadonlyMap<string, ReadonlyMap<number, Track>>;

function tracksOf(calls: readonly RecordedCall[]): Tracks {
  const tracks = new Map<string, Map<number, Track>>();
  for (const { queries, k, outcome } of calls)
    for (const [index, query] of queries.entries()) {
      const byK = tracks.get(query) ?? new Map<number, Track>();
      const track = byK.get(k) ?? { answers: [], asked: 0 };
      track.answers.push("error" in outcome ? outcome : { results: outcome.results[index] ?? [] });
      tracks.set(query, byK.set(k, track));
    }
  return tracks;
}

function answer(
  query: string,
  k: number,
  { tracks, file }: { readonly tracks: Tracks; readonly file: string },
): ScoredPassage[] {
  const byK = tracks.get(query);
  const larger = [...(byK?.keys() ?? [])].filter((recorded) => recorded >= k).sort((a, b) => a - b);
  const track = larger[0] === undefined ? undefined : byK?.get(larger[0]);
  if (track === undefined) {
    const shown = JSON.stringify(query.length <= 200 ? query : `${query.slice(0, 200)}…`);
    const recorded = byK === undefined ? "" : ` (it was with k ${[...byK.keys()].join(", ")})`;
    throw new RetrieverError(
      `${file}: the query ${shown} with k ${k} was not recorded${recorded}; record again with it`,
    );
  }
  const next = track.answers[Math.min(track.asked, track.answers.length - 1)] as Answer;
  track.asked++;
  if ("error" in next) throw new RetrieverError(next.error);
  return next.results.slice(0, k);
}
