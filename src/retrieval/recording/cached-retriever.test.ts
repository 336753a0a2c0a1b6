import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { RetrieverError } from "../../errors.ts";
import { buildBm25Index } from "../lexical/bm25.ts";
import { describeRetriever } from "../retriever.suite.ts";
import type { Retriever } from "../retriever.ts";
import { scriptedRetriever } from "../scripted-retriever.ts";
import { cachedRetriever } from "./cached-retriever.ts";

function scripted() {
  return scriptedRetriever((query) => [1, 2, 3].map((n) => ({ id: `${query}${n}`, title: "", text: "" })));
}

describe("a cached retriever", () => {
  test("asks for what it does not know, each query once", async () => {
    const inner = scripted();
    const cached = cachedRetriever(inner, { maxEntries: 10 });
    await cached.retrieve(["a", "b", "a"], 2);
    const answer = await cached.retrieve(["c", "a", "b"], 2);
    expect(inner.queries).toEqual(["a", "b", "c"]);
    expect(answer).toEqual(await scripted().retrieve(["c", "a", "b"], 2));
    expect(cached.counts).toEqual({ hits: 2, misses: 3 });
    await cached.retrieve(["a"], 1);
    expect(inner.queries).toHaveLength(4);
  });

  test("waits for a query that another call is asking, and asks itself when that call fails", async () => {
    const calls: string[][] = [];
    const inner: Retriever = {
      ...scripted(),
      retrieve: async (queries, k, signal) => {
        const number = calls.push([...queries]);
        await new Promise((resolve) => setTimeout(resolve, 20));
        signal?.throwIfAborted();
        if (number === 3) throw new RetrieverError("down");
        return scripted().retrieve(queries, k);
      },
    };
    const cached = cachedRetriever(inner, { maxEntries: 10 });
    const [one, both] = await Promise.all([cached.retrieve(["a"], 1), cached.retrieve(["a", "b"], 1)]);
    expect(both[0]).toEqual(one[0]);
    expect(calls).toEqual([["a"], ["b"]]);

    const failed = await Promise.allSettled([cached.retrieve(["c"], 1), cached.retrieve(["c"], 1)]);
    expect(failed.map(({ status }) => status)).toEqual(["rejected", "fulfilled"]);

    const reason = new Error("enough");
    const [first, second] = [new AbortController(), new AbortController()];
    const aborted = cached.retrieve(["d"], 1, first.signal);
    const goesOn = cached.retrieve(["d"], 1);
    const waits = cached.retrieve(["d"], 1, second.signal);
    second.abort(reason);
    await expect(waits).rejects.toBe(reason);
    first.abort(reason);
    await expect(aborted).rejects.toBe(reason);
    expect((await goesOn)[0]).toHaveLength(1);
  });

  test("forgets the least recently used first", async () => {
    const inner = scripted();
    const cached = cachedRetriever(inner, { maxEntries: 2 });
    for (const query of ["a", "b", "a", "c", "a", "b"]) await cached.retrieve([query], 1);
    expect(inner.queries).toEqual(["a", "b", "c", "b"]);
  });

  test("does not remember errors, nor what a caller does to an answer", async () => {
    let isDown = true;
    const inner = scriptedRetriever((id) =>
      isDown ? new RetrieverError("down") : [{ id, title: "", text: "" }],
    );
    const cached = cachedRetriever(inner, { maxEntries: 2 });
    await expect(cached.retrieve(["a"], 1)).rejects.toThrow("down");
    isDown = false;
    const [answer = []] = await cached.retrieve(["a"], 1);
    answer.length = 0;
    expect((await cached.retrieve(["a"], 1))[0]).toHaveLength(1);
  });

  test("answers as the other does, whatever its size", async () => {
    const calls = fc.array(
      fc.record({
        queries: fc.array(fc.constantFrom("a", "b", "c", "d")),
        k: fc.integer({ min: 1, max: 3 }),
      }),
    );
    await fc.assert(
      fc.asyncProperty(calls, fc.integer({ min: 1, max: 4 }), async (asked, maxEntries) => {
        const plain: Retriever = scripted();
        const cached = cachedRetriever(scripted(), { maxEntries });
        for (const { queries, k } of asked)
          expect(await cached.retrieve(queries, k)).toEqual(await plain.retrieve(queries, k));
      }),
    );
  });
});

describeRetriever("a cached BM25 index", async (passages) =>
  cachedRetriever(await buildBm25Index(passages), { maxEntries: 100 }),
);
