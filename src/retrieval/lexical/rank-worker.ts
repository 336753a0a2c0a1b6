/** A thread of `RankPool`: ranks the queries it is sent over the arrays that it shares with the others. */
import { parentPort, workerData } from "node:worker_threads";
import { assert } from "../../errors.ts";
import { memoryPostings } from "./memory-postings.ts";
import { QueryTerms } from "./query-terms.ts";
import type { RankAnswer, RankRequest, SharedIndex } from "./rank-pool.ts";
import { Ranker } from "./ranking.ts";
import type { Ranking } from "./top-k.ts";
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
  const answer = { number, ...packed(rankings) } satisfies RankAnswer;
  port.postMessage(answer, [answer.lengths.buffer, answer.positions.buffer, answer.scores.buffer]);
});

function packed(rankings: readonly Ranking[]) {
  const lengths = Uint32Array.from(rankings, ({ positions }) => positions.length);
  const total = lengths.reduce((sum, length) => sum + length, 0);
  const positions = new Uint32Array(total);
  const scores = new Float64Array(total);
  let at = 0;
  for (const ranking of rankings) {
    positions.set(ranking.positions, at);
    scores.set(ranking.scores, at);
    at += ranking.positions.length;
  }
  return { lengths, positions, scores };
}
