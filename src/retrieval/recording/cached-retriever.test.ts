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
