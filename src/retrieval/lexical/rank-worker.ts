/** A thread of `RankPool`: ranks the queries that it takes, over the arrays that it shares with the others. */
import { parentPort, workerData } from "node:worker_threads";
import { assert } from "../../errors.ts";
import { memoryPostings } from "./memory-postings.ts";
import { QueryTerms } from "./query-terms.ts";
import { type RankAnswer, type RankRequest, type RankThread, takeNext } from "./rank-pool.ts";
import { Ranker } from "./ranking.ts";
import { SumKernel } from "./sum-kernel.ts";
import type { Ranking } from "./top-k.ts";
import { Vocabulary } from "./vocabulary.ts";

const { options, passageCount, vocabulary, vocabularyStarts, postings, thread } = workerData as RankThread;
const terms = new QueryTerms(
  options,
  new Vocabulary(
    Buffer.from(vocabulary.buffer, vocabulary.byteOffset, vocabulary.byteLength),
    vocabularyStarts,
  ),
);
const ranker = new Ranker(passageCount, { kernel: new SumKernel(postings.memory, thread) });
const store = memoryPostings(postings);
assert(parentPort !== null, "the file of a worker runs in a worker");
const port = parentPort;

port.on("message", ({ number, queries, k, taken }: RankRequest) => {
  const places: number[] = [];
  const rankings: Ranking[] = [];
  for (let place = takeNext(taken); place < queries.length; place = takeNext(taken)) {
    const weights = terms.weightsOf(queries[place] as string);
    const entries = weights.map(([term, weight]) => store.entriesOf(term, weight));
    places.push(place);
    rankings.push(ranker.rank(entries, k));
  }
  if (places.length === 0) return;
  const answer = { number, places: Uint32Array.from(places), ...packed(rankings) } satisfies RankAnswer;
  const { lengths, positions, scores } = answer;
  port.postMessage(answer, [answer.places.buffer, lengths.buffer, positions.buffer, scores.buffer]);
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
