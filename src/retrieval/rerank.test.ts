import { describe, expect, test } from "vitest";
import type { Passage } from "../corpus/passage.ts";
import { ConfigError } from "../errors.ts";
import { explainRetrieval } from "./explain-retrieval.ts";
import { buildBm25Index } from "./lexical/bm25.ts";
import { type Reranker, type RerankPair, rerankingRetriever } from "./rerank.ts";
import { describeRetriever } from "./retriever.suite.ts";
import { scriptedRetriever } from "./scripted-retriever.ts";

/** Scores by a rule and keeps what it was asked. */
function ruledBy(rule: (pair: RerankPair) => number): Reranker & { readonly calls: RerankPair[][] } {
  const calls: RerankPair[][] = [];
  return {
    identity: { name: "rule", hash: "0".repeat(64) },
    calls,
    score: async (pairs, signal) => {
      signal?.throwIfAborted();
      calls.push([...pairs]);
      return Float32Array.from(pairs, rule);
    },
  };
}

/** Words that query and passage share. */
function overlap({ query, passage }: RerankPair): number {
  const words = new Set(query.toLowerCase().split(/\W+/));
  return `${passage.title} ${passage.text}`
    .toLowerCase()
    .split(/\W+/)
    .filter((word) => words.has(word)).length;
}

describeRetriever("reranking", async (passages) =>
  rerankingRetriever(await buildBm25Index(passages), ruledBy(overlap), { depth: 8 }),
);

const passages: Passage[] = [5, 2, 9, 9, 1].map((n, i) => ({ id: `p${i}`, title: `${n}`, text: "" }));
const first = scriptedRetriever(() => passages);
const byTitle = () => ruledBy(({ passage }) => Number(passage.title));

describe("a reranking retriever", () => {
  test("orders the passages that it sees by the reranker, equal ones as they came", async () => {
    const [answer = []] = await rerankingRetriever(first, byTitle()).retrieve(["q"], 4);
    expect(answer.map(({ passage, score }) => [passage.id, score])).toEqual([
      ["p2", 9],
      ["p3", 9],
      ["p0", 5],
      ["p1", 2],
    ]);
  });

  test("sees as many as it is told, or k where that is more", async () => {
    const reranking = rerankingRetriever(first, byTitle(), { depth: 2 });
    expect((await reranking.retrieve(["q"], 1))[0]?.[0]?.passage.id).toBe("p0");
    expect((await reranking.retrieve(["q"], 3))[0]?.[0]?.passage.id).toBe("p2");
    expect(() => rerankingRetriever(first, byTitle(), { depth: 0 })).toThrow(ConfigError);
  });

  test("scores every query against its own passages only, in calls of bounded size", async () => {
    const answers = scriptedRetriever((query) => [{ id: query, title: query, text: "" }]);
    const reranker = ruledBy(({ query, passage }) => (query === passage.title ? 1 : Number.NaN));
    const queries = Array.from({ length: 40 }, (_, i) => `q${i}`);
    const found = await rerankingRetriever(answers, reranker).retrieve(queries, 1);
    expect(found.map((answer) => answer[0]?.passage.id)).toEqual(queries);
    expect(found.flat().every(({ score }) => score === 1)).toBe(true);
    expect(reranker.calls.map(({ length }) => length)).toEqual([16, 16, 8]);
  });

  test("explains what moved", async () => {
    let time = 0;
    const reranking = rerankingRetriever(first, byTitle());
    const { stages, answer } = await explainRetrieval(
      reranking,
      { query: "q", k: 2 },
      { now: () => (time += 3) },
    );
    expect(stages.map(({ name, milliseconds }) => [name, milliseconds])).toEqual([
      ["scripted", 3],
      ["rerank", 3],
    ]);
    expect(stages[1]?.ranked).toEqual([
      { id: "p2", score: 9, rank: 1, before: { scripted: 3 } },
      { id: "p3", score: 9, rank: 2, before: { scripted: 4 } },
    ]);
    expect(answer).toHaveLength(2);
  });

  test("names the reranker and the first stage in its identity", () => {
    const { identity } = rerankingRetriever(first, byTitle(), { depth: 7 });
    expect(identity).toMatchObject({
      method: "scripted+rerank",
      parameters: { reranker: "rule", rerankDepth: 7 },
    });
    expect(identity.indexHash).not.toBe(rerankingRetriever(first, byTitle()).identity.indexHash);
  });
});
