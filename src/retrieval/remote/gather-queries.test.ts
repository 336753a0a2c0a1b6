import { expect, test } from "vitest";
import type { ScoredPassage } from "../retriever.ts";
import { type BatchCall, QueryGatherer } from "./gather-queries.ts";

const found = (query: string): ScoredPassage[] => [
  { passage: { id: query, title: query, text: query }, score: 1 },
];

/** A server whose calls wait until they are let go. */
function server() {
  const calls: { readonly queries: readonly string[]; readonly signal: AbortSignal }[] = [];
  const release: ((error?: Error) => void)[] = [];
  const call: BatchCall = (queries, _, signal) =>
    new Promise((resolve, reject) => {
      calls.push({ queries, signal });
      release.push((error) => (error ? reject(error) : resolve(queries.map(found))));
    });
  return { call, calls, release };
}

const settled = async (): Promise<void> => {
  for (let i = 0; i < 5; i++) await new Promise(setImmediate);
};

test("callers share a call once every connection is busy, and each gets its own answers", async () => {
  const { call, calls, release } = server();
  const gatherer = new QueryGatherer(call, { batchSize: 3, concurrency: 1 });
  const answers = ["a", "b", "c", "b", "d", "e"].map((query) => gatherer.ask([query], 2, undefined));
  for (let i = 0; i < 3; i++) {
    await settled();
    release[i]?.();
  }
  expect((await Promise.all(answers)).map(([list]) => list?.[0]?.passage.id)).toEqual([
    "a",
    "b",
    "c",
    "b",
    "d",
    "e",
  ]);
  expect(calls.map(({ queries }) => queries)).toEqual([["a"], ["b", "c", "d"], ["e"]]);
});

test("queries for other numbers of passages are another call", async () => {
  const { call, calls, release } = server();
  const gatherer = new QueryGatherer(call, { batchSize: 8, concurrency: 1 });
  const answers = [1, 2, 3, 2].map((k, i) => gatherer.ask([`${i}`], k, undefined));
  for (let i = 0; i < 3; i++) {
    await settled();
    release[i]?.();
  }
  await Promise.all(answers);
  expect(calls.map(({ queries }) => queries)).toEqual([["0"], ["1", "3"], ["2"]]);
});

test("a failed call fails those who share it, and the next goes on", async () => {
  const { call, calls, release } = server();
  const gatherer = new QueryGatherer(call, { batchSize: 2, concurrency: 1 });
  const answers = ["a", "b", "c", "d"].map((query) => gatherer.ask([query], 1, undefined));
  const outcomes = Promise.allSettled(answers);
  release[0]?.();
  await settled();
  release[1]?.(new Error("down"));
  await settled();
  release[2]?.();
  expect((await outcomes).map(({ status }) => status)).toEqual([
    "fulfilled",
    "rejected",
    "rejected",
    "fulfilled",
  ]);
  expect(calls).toHaveLength(3);
});

test("what is left of a caller whose call failed is not sent", async () => {
  const { call, calls, release } = server();
  const gatherer = new QueryGatherer(call, { batchSize: 1, concurrency: 1 });
  const asked = gatherer.ask(["a", "b", "c"], 1, undefined);
  release[0]?.(new Error("down"));
  await expect(asked).rejects.toThrow("down");
  await settled();
  expect(calls.map(({ queries }) => queries)).toEqual([["a"]]);
});

test("a caller who leaves holds nobody up, and a call that nobody waits for is given up", async () => {
  const { call, calls, release } = server();
  const gatherer = new QueryGatherer(call, { batchSize: 2, concurrency: 1 });
  const stop = new AbortController();
  const first = gatherer.ask(["a"], 1, stop.signal);
  const second = gatherer.ask(["b"], 1, stop.signal);
  const third = gatherer.ask(["c"], 1, undefined);
  stop.abort(new Error("enough"));
  await expect(first).rejects.toThrow("enough");
  await expect(second).rejects.toThrow("enough");
  expect(calls[0]?.signal.aborted).toBe(true);
  release[0]?.(new Error("aborted"));
  await settled();
  release[1]?.();
  expect((await third)[0]?.[0]?.passage.id).toBe("c");
  expect(calls.map(({ queries }) => queries)).toEqual([["a"], ["c"]]);
});
