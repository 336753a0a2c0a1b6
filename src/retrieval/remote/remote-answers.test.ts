import { describe, expect, test } from "vitest";
import { testWorld } from "../../shared/server.fixture.ts";
import { optionsFor, plainServer } from "./remote.fixture.ts";
import { createRemoteRetriever } from "./remote-retriever.ts";

describe("documents", () => {
  test.each([
    [
      { id: 7, contents: '"A "quoted" title"\nText\nmore' },
      { id: "7", title: 'A "quoted" title', text: "Text\nmore" },
    ],
    [
      { _id: "b", title: "T", text: "x", url: "u" },
      { id: "b", title: "T", text: "x", extra: { url: "u" } },
    ],
    [
      { id: "1", title: "T", text: "x", contents: '"T"\nx' },
      { id: "1", title: "T", text: "x" },
    ],
    [
      { id: "1", title: "T", contents: "first\nsecond" },
      { id: "1", title: "T", text: "first\nsecond" },
    ],
    ["just a text", { id: "from its text", title: "", text: "just a text" }],
  ])("are read as %j", async (document, passage) => {
    const server = await plainServer(() => ({ json: { result: [[{ document, score: 1 }]] } }));
    const retriever = await createRemoteRetriever(optionsFor(server.url), testWorld());
    const [[first] = []] = await retriever.retrieve(["q"], 1);
    expect({ ...first?.passage, id: passage.id }).toEqual(passage);
    if (typeof document === "string") expect(first?.passage.id).toMatch(/^text:[0-9a-f]{16}$/);
    else expect(first?.passage.id).toBe(passage.id);
  });
});

describe("scores", () => {
  const server = (scores: readonly (number | undefined)[]) =>
    plainServer(() => ({
      json: { result: [scores.map((score, id) => ({ document: { id: `${id}`, contents: "x" }, score }))] },
    }));

  test("that rise are refused, since they may be distances, and scores: rank takes the order alone", async () => {
    const { url } = await server([0.1, 0.4]);
    const strict = await createRemoteRetriever(optionsFor(url), testWorld());
    await expect(strict.retrieve(["q"], 2)).rejects.toThrow(
      "expected scores that fall, best first, got 0.1 before 0.4",
    );
    const ranked = await createRemoteRetriever(optionsFor(url, { scores: "rank" }), testWorld());
    const [answer = []] = await ranked.retrieve(["q"], 2);
    expect(answer.map(({ passage, score }) => [passage.id, score])).toEqual([
      ["0", 1],
      ["1", 0.5],
    ]);
  });

  test("that are missing are made of the rank, and more than k passages are cut off", async () => {
    const { url } = await server([undefined, undefined, undefined]);
    const retriever = await createRemoteRetriever(optionsFor(url), testWorld());
    const [answer = []] = await retriever.retrieve(["q"], 2);
    expect(answer.map(({ score }) => score)).toEqual([1, 0.5]);
  });
});

describe("queries", () => {
  test("are sent once each, cut to the limit, without half characters; blank ones are not sent", async () => {
    const server = await plainServer(({ body }) => ({
      json: { result: (body as { queries: string[] }).queries.map(() => []) },
    }));
    const retriever = await createRemoteRetriever(
      optionsFor(server.url, { maxQueryCharacters: 10 }),
      testWorld(),
    );
    await retriever.retrieve(["same", "same", " \n", "x".repeat(100), "half \ud83d"], 1);
    expect(server.asked().map(({ body }) => (body as { queries: string[] }).queries)).toEqual([
      ["same", "x".repeat(10), "half \ufffd"],
    ]);
  });

  test("of any length fit into the URL of a GET", async () => {
    const server = await plainServer(() => ({ json: { candidates: [] } }));
    const given = { dialect: "pyserini" as const, maxQueryCharacters: 100_000 };
    const retriever = await createRemoteRetriever(optionsFor(server.url, given), testWorld());
    await retriever.retrieve(["長".repeat(50_000), "😀".repeat(3000)], 1);
    expect(server.asked()).toHaveLength(2);
  });

  test("are answered from the cache when one is asked for", async () => {
    const server = await plainServer(({ body }) => ({
      json: { result: (body as { queries: string[] }).queries.map((id) => [{ id, contents: "x" }]) },
    }));
    const retriever = await createRemoteRetriever(optionsFor(server.url, { cacheEntries: 10 }), testWorld());
    const first = await retriever.retrieve(["a", "b"], 1);
    expect(await retriever.retrieve(["b", "a", "c"], 1)).toHaveLength(3);
    expect(await retriever.retrieve(["a", "b"], 1)).toEqual(first);
    expect(server.asked().map(({ body }) => (body as { queries: string[] }).queries)).toEqual([
      ["a", "b"],
      ["c"],
    ]);
  });
});
