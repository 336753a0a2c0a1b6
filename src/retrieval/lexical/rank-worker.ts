/** A thread of `RankPool`: ranks the queries it is sent over the arrays that it shares with the others. */
import { parentPort, workerData } from "node:worker_threads";
import { assert } from "../../errors.ts";
import { memoryPostings } from "./memory-postings.ts";
import { QueryTerms } from "./query-terms.ts";
import type { RankAnswer, RankRequest, SharedIndex } from "./rank-pool.ts";
import { Ranker } from "./ranking.ts";
import { Vocabulary } from "./vocabulary.ts";

const { options, passageCount, vocabulary, vocabularyStarts, postings } = workerData as SharedIndex;
const terms = new QueryTerms(
  options,
  new Vocabulary(
    Buffer.from(vocabulary.buffer, vocabulary.byteOffset, vocabulary.byteLength),
    vocabularyStarts,
  ),
);
const ranker = new Ranker(passageCount);
const store = memoryPostings(postings);
assert(parentPort !== null, "the file of a worker runs in a worker");
const port = parentPort;

port.on("message", ({ number, queries, k }: RankRequest) => {
  const rankings = queries.map((query) =>
    ranker.rank(
      terms.weightsOf(query).map(([term, weight]) => store.entriesOf(term, weight)),
      k,
    ),
  );
  port.postMessage({ number, rankings } satisfies RankAnswer);
});
