/** The bodies that existing clients send, and what each of them reads from the answer. */
import { describe, expect, test } from "vitest";
import { appOf, get, passages, post, wordRetriever } from "./serving.fixture.ts";

const [france, italy, japan] = passages.map(({ id, title, text, extra }) => ({
  id,
  contents: `"${title}"\n${text}`,
  title,
  text,
  url: id,
  ...extra,
}));

describe("Search-R1, verl, slime: queries", () => {
  test("pairs documents with scores, a list for each query in order", async () => {
    const retriever = wordRetriever();
    const queries = ["capital of France", "nothing shared", "Italy"];
    const answer = await post(appOf(retriever), "/retrieve", { queries, topk: 2, return_scores: true });
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-type")).toBe("application/json");
    expect(answer.json).toEqual({
      result: [
        [
          { document: france, score: 3 },
          { document: italy, score: 2 },
        ],
        [],
        [{ document: italy, score: 1 }],
      ],
    });
    expect(retriever.calls).toEqual([{ queries, k: 2 }]);
  });

  test.each([
    ["false", { return_scores: false }],
    ["absent", {}],
    ["null", { return_scores: null }],
    ["the text of Python", { return_scores: "False" }],
  ])("gives plain documents when return_scores is %s", async (_, scores) => {
    const answer = await post(appOf(wordRetriever()), "/retrieve", {
      queries: ["Italy", "Italy"],
      ...scores,
    });
    expect(answer).toMatchObject({ status: 200, json: { result: [[italy], [italy]] } });
  });

  test.each([
    ["null", { topk: null }, 3],
    ["absent", {}, 3],
    ["a text", { topk: "2" }, 2],
    ["called k", { k: 4 }, 4],
    ["given twice alike", { topk: 2, top_k: 2 }, 2],
  ])("takes a topk that is %s", async (_, topk, k) => {
    const retriever = wordRetriever();
    expect(await post(appOf(retriever), "/retrieve", { queries: ["Italy"], ...topk })).toMatchObject({
      status: 200,
    });
    expect(retriever.calls[0]?.k).toBe(k);
  });

  test("answers a training batch of 512 queries by one call of the retriever", async () => {
    const retriever = wordRetriever();
    const queries = Array.from({ length: 512 }, (_, i) => (i % 2 === 0 ? "France" : "Italy"));
    const answer = await post(appOf(retriever), "/retrieve", { queries, topk: 1, return_scores: true });
    const { result } = answer.json as { result: { document: { id: string } }[][] };
    expect(result.map((found) => found[0]?.document.id)).toEqual(
      queries.map((query) => query.slice(0, 2).toLowerCase()),
    );
    expect(retriever.calls).toHaveLength(1);
  });

  test("answers no queries, empty queries and every script", async () => {
    const app = appOf(wordRetriever());
    expect(await post(app, "/retrieve", { queries: [] })).toMatchObject({ json: { result: [] } });
    const queries = ["", "Tōkyō 🗼", "\u0000", "\\ud83d".slice(0, 6)];
    const answer = await post(app, "/retrieve", { queries });
    expect(answer.json).toEqual({ result: [[], [japan], [], []] });
  });

  test("takes a body with a lone surrogate, a byte order mark, and keys that nobody knows", async () => {
    const body = '\ufeff{"queries":["Italy \\ud83d"],"user":"x","__proto__":{"topk":9},"topk":1}';
    expect(await post(appOf(wordRetriever()), "/retrieve", body)).toMatchObject({
      json: { result: [[italy]] },
    });
  });

  test("is read by ASearcher: contents and url of each document, then the page of that url", async () => {
    const app = appOf(wordRetriever());
    const found = await post(app, "/retrieve", { queries: ["Italy"], topk: 5, return_scores: false });
    const { result } = found.json as { result: { contents: string; url: string }[][] };
    const urls = result[0]?.map(({ url }) => url);
    expect(urls).toEqual(["https://example.org/italy"]);
    const pages = await post(app, "/access", {
      urls: [...(urls ?? []), "fr", "https://example.org/unknown"],
    });
    expect(pages.json).toEqual({ result: [italy, france, null] });
  });
});

test("SkyRL: one query gives the same envelope with one list", async () => {
  const body = { query: "Italy", topk: 3, return_scores: true };
  const answer = await post(appOf(wordRetriever()), "/retrieve", body);
  expect(answer).toMatchObject({ status: 200, json: { result: [[{ document: italy, score: 1 }]] } });
});

test.each([{ top_k: 1 }, { k: 1 }])(
  "rLLM: a query with %j gives a flat list for both of its clients",
  async (count) => {
    const answer = await post(appOf(wordRetriever()), "/retrieve", {
      query: 'the "capital" of Italy',
      ...count,
    });
    expect(answer.json).toEqual({
      query: 'the "capital" of Italy',
      method: "words",
      results: [{ id: "it", content: italy?.contents, document: italy, score: 4 }],
      num_results: 1,
    });
  },
);

describe("ReCall and ReSearch", () => {
  const app = appOf(wordRetriever());

  test("/search gives documents, or documents and scores", async () => {
    expect((await post(app, "/search", { query: "Italy", top_n: 2 })).json).toEqual([italy]);
    const scored = await post(app, "/search", { query: "Italy", top_n: 2, return_score: true });
    expect(scored.json).toEqual([[italy], [1]]);
    expect((await post(app, "/search", { query: "zebra" })).json).toEqual([]);
  });

  test("/batch_search does so for each query", async () => {
    const query = ["Italy", "zebra"];
    expect((await post(app, "/batch_search", { query, top_n: 2 })).json).toEqual([[italy], []]);
    const scored = await post(app, "/batch_search", { query, top_n: 2, return_score: true });
    expect(scored.json).toEqual([
      [[italy], []],
      [[1], []],
    ]);
  });
});

describe("Pyserini", () => {
  const app = appOf(wordRetriever(), { name: "my index" });

  test("searches with hits, and gives candidates with ranks", async () => {
    const answer = await get(app, "/v1/my%20index/search?query=capital%20of%20Italy&hits=1&k1=1.2&b=0.75");
    expect(answer.json).toEqual({
      api: "v1",
      index: "my index",
      query: { text: "capital of Italy" },
      candidates: [{ docid: "it", score: 3, rank: 1, doc: italy }],
    });
  });

  test("refuses parameters that the index was not built with, and other indexes", async () => {
    expect(await get(app, "/v1/my%20index/search?query=x&k1=0.9")).toMatchObject({
      status: 422,
      json: { expected: "the k1 of this index: k1 = 1.2", got: "0.9" },
    });
    expect(await get(app, "/v1/msmarco/search?query=x")).toMatchObject({
      status: 404,
      json: { expected: 'the index "my index"', got: '"msmarco"' },
    });
    expect(await get(app, "/v1/my%20index/search")).toMatchObject({ status: 422, json: { got: "nothing" } });
  });

  test("gives a document by id, also one with a slash, as an object or a text", async () => {
    const path = `/v1/my%20index/doc/${encodeURIComponent("日本/1")}`;
    expect((await get(app, path)).json).toEqual({
      api: "v1",
      index: "my index",
      docid: "日本/1",
      doc: japan,
    });
    const text = (await get(app, `${path}?parse=false`)).json as { doc: string };
    expect(JSON.parse(text.doc)).toEqual(japan);
    expect(await get(app, "/v1/my%20index/doc/none")).toMatchObject({ status: 404, json: { got: '"none"' } });
  });
});

describe("rerank", () => {
  const rerank = async (query: string, documents: readonly string[]) =>
    documents.map((document) => (document.includes(query) ? 1 : 0));

  test("sorts the documents of each query and sends back what was sent", async () => {
    const app = appOf(wordRetriever(), { rerank });
    const body = {
      queries: ["Rome", "Paris"],
      documents: [
        [france, { document: italy, score: 0.1 }],
        ["Paris", "Rome"],
      ],
      rerank_topk: 1,
      return_scores: true,
    };
    expect((await post(app, "/rerank", body)).json).toEqual({
      result: [[{ document: italy, score: 1 }], [{ document: "Paris", score: 1 }]],
    });
    const plain = await post(app, "/rerank", { ...body, rerank_topk: null, return_scores: false });
    expect(plain.json).toEqual({
      result: [
        [italy, france],
        ["Paris", "Rome"],
      ],
    });
  });

  test("gives back all documents, also more than a search gives, and refuses long queries", async () => {
    const app = appOf(wordRetriever(), { rerank, limits: { k: 2, passages: 9, queryCharacters: 5 } });
    const send = (query: string, count: number) =>
      post(app, "/rerank", { queries: [query], documents: [Array(count).fill("a")] });
    expect((await send("a", 9)).json).toEqual({ result: [Array(9).fill("a")] });
    expect(await send("a", 10)).toMatchObject({ status: 422, json: { got: "10" } });
    expect(await send("a".repeat(6), 1)).toMatchObject({
      status: 422,
      json: { got: "6 characters in query 0" },
    });
  });

  test("says what to do without a reranker, and what is wrong with a body", async () => {
    const failures: unknown[] = [];
    const without = appOf(wordRetriever(), { onFailure: (failure) => failures.push(failure) });
    const none = await post(without, "/rerank", { queries: [], documents: [] });
    expect(none).toMatchObject({ status: 501, json: { advice: "start the server with a reranking model" } });
    expect(failures).toEqual([]);
    const app = appOf(wordRetriever(), { rerank });
    expect(await post(app, "/rerank", { queries: ["a"], documents: [] })).toMatchObject({ status: 422 });
    expect(await post(app, "/rerank", { queries: ["a"], documents: [[7]] })).toMatchObject({
      status: 422,
      json: {
        expected: 'a document at documents[0][0]: a text, or an object with "contents" or "text"',
        got: "7",
      },
    });
  });
});
