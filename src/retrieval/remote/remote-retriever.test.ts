import { describe, expect, test } from "vitest";
import { corpusHash } from "../../corpus/corpus-hash.ts";
import type { Passage } from "../../corpus/passage.ts";
import { ConfigError, RetrieverError } from "../../errors.ts";
import type { Fetch } from "../../shared/network-world.ts";
import { cutOff, deadUrl, startServer, testWorld } from "../../shared/server.fixture.ts";
import { buildBm25Index } from "../lexical/bm25.ts";
import { describeRetriever } from "../retriever.suite.ts";
import type { Retriever } from "../retriever.ts";
import { type DialectName, dialectNames } from "./dialects.ts";
import { contentsOf } from "./document.ts";
import { optionsFor, plainServer } from "./remote.fixture.ts";
import { remoteSourceSchema } from "./remote-options.ts";
import { createRemoteRetriever } from "./remote-retriever.ts";

const garda: Passage = { id: "1", title: "Lake Garda", text: "The largest lake in Italy." };
const como: Passage = { id: "2", title: "Lake Como", text: "A lake in Lombardy." };

const documents = [
  { document: { id: "1", contents: contentsOf(garda) }, score: 2.5 },
  { document: { id: "2", contents: contentsOf(como) }, score: 1.5 },
];

/** For each dialect: a reply to one query, and what the request for it must be. */
const replies: Record<
  DialectName,
  { readonly reply: unknown; readonly path: string; readonly body?: unknown }
> = {
  "search-r1": {
    path: "/retrieve",
    body: { queries: ["lake"], topk: 2, return_scores: true },
    reply: { result: [documents] },
  },
  skyrl: {
    path: "/retrieve",
    body: { query: "lake", topk: 2, return_scores: true },
    reply: { result: [documents] },
  },
  rllm: {
    path: "/retrieve",
    body: { query: "lake", top_k: 2 },
    reply: {
      query: "lake",
      method: "dense",
      results: documents.map(({ document, score }) => ({
        id: document.id,
        content: document.contents,
        score,
      })),
      num_results: 2,
    },
  },
  recall: {
    path: "/batch_search",
    body: { query: ["lake"], top_n: 2, return_score: true },
    reply: [[documents.map(({ document }) => document)], [documents.map(({ score }) => score)]],
  },
  pyserini: {
    path: "/v1/wiki%2018/search?query=lake&hits=2",
    reply: {
      api: "v1",
      candidates: documents.map(({ document, score }, rank) => ({
        docid: document.id,
        score,
        rank: rank + 1,
        doc: { contents: document.contents },
      })),
    },
  },
};

describe.each(dialectNames)("dialect %s", (dialect) => {
  const { reply, path, body } = replies[dialect];

  test("sends what its clients send and reads passages and scores", async () => {
    const server = await plainServer(() => ({ json: reply }));
    const retriever = await createRemoteRetriever(optionsFor(server.url, { dialect }), testWorld());
    const [answer = []] = await retriever.retrieve(["lake"], 2);
    expect(server.asked()[0]).toMatchObject({ path, ...(body !== undefined && { body }) });
    expect(answer).toEqual([
      { passage: garda, score: 2.5 },
      { passage: como, score: 1.5 },
    ]);
  });

  test("answers many queries in order", async () => {
    const answerTo = (query: string) => ({ id: query, contents: `"${query}"\ntext` });
    const server = await plainServer(({ body: sent, path: at }) => {
      const { queries, query } = (sent ?? {}) as { queries?: string[]; query?: string | string[] };
      const asked = queries ?? [query ?? new URLSearchParams(at.split("?")[1]).get("query") ?? ""].flat();
      if (dialect === "rllm") return { json: { results: [{ id: asked[0], content: asked[0], score: 1 }] } };
      if (dialect === "recall") return { json: asked.map((one) => [answerTo(one)]) };
      if (dialect === "pyserini")
        return {
          json: {
            candidates: [{ docid: asked[0], score: 1, doc: JSON.stringify(answerTo(asked[0] ?? "")) }],
          },
        };
      return { json: { result: asked.map((one) => [answerTo(one)]) } };
    });
    const given = { dialect, batchSize: 3, concurrency: 4 };
    const retriever = await createRemoteRetriever(optionsFor(server.url, given), testWorld());
    const queries = Array.from({ length: 20 }, (_, i) => `query ${i % 10}`);
    const answers = await retriever.retrieve(queries, 1);
    expect(answers.map(([first]) => first?.passage.id)).toEqual(queries);
    const isBatched = dialect === "search-r1" || dialect === "recall";
    expect(server.asked()).toHaveLength(isBatched ? 4 : 10);
    expect(server.mostOpen()).toBeLessThanOrEqual(4);
  });

  const misfits = [
    { detail: "not found" },
    [],
    {},
    null,
    "text",
    { result: [[{ score: 1 }]] },
    { result: [] },
  ];
  test.each(misfits)("reports a reply that is not of it, with an excerpt: %j", async (json) => {
    const server = await plainServer(() => ({ json }));
    const retriever = await createRemoteRetriever(optionsFor(server.url, { dialect }), testWorld());
    const asking = retriever.retrieve(["lake"], 2);
    await expect(asking).rejects.toThrow(RetrieverError);
    await expect(asking).rejects.toThrow(new RegExp(`dialect ${dialect}.*got .*check the dialect`));
  });
});

describe("the start", () => {
  test("tells a server that is down from one without a health route", async () => {
    await expect(createRemoteRetriever(optionsFor(await deadUrl()), testWorld())).rejects.toThrow(
      /\/health: no connection: nothing listens there/,
    );
    const { url } = await plainServer(() => ({ json: {} }));
    await expect(createRemoteRetriever(optionsFor(url), testWorld())).resolves.toBeDefined();
  });

  test("waits for a server that is loading, and gives up on one that is not well", async () => {
    const loading = await startServer((_request, count) => ({ status: count < 3 ? 503 : 200, text: "{}" }));
    await createRemoteRetriever(optionsFor(loading.url), testWorld());
    const broken = await startServer(() => ({ status: 503, text: "no index" }));
    await expect(createRemoteRetriever(optionsFor(broken.url), testWorld())).rejects.toThrow(
      '/health: got 503: "no index" (attempt 5 of 5)',
    );
  });

  test("takes into the identity what the server says of the corpus, no counters, and no credentials", async () => {
    const server = await startServer(({ path }) =>
      path === "/stats"
        ? {
            json: {
              requests: 17,
              uptime: 3.5,
              retriever: { corpusHash: "c0ffee", method: "bm25" },
              corpus_size: 2,
              passages: 9,
            },
          }
        : { json: { status: "ok", model: "e5" } },
    );
    const url = server.url.replace("http://", "http://user:pa%20ss@");
    const { identity } = await createRemoteRetriever(optionsFor(`${url}/retrieve`), testWorld());
    expect(server.requests[0]?.headers.authorization).toBe(
      `Basic ${Buffer.from("user:pa ss").toString("base64")}`,
    );
    expect(identity).toMatchObject({ method: "bm25", corpusHash: "c0ffee" });
    expect(identity.parameters).toEqual({
      url: server.url,
      dialect: "search-r1",
      maxQueryCharacters: 2000,
      scores: "server",
      "stated.model": "e5",
      "stated.corpus_size": 2,
    });
  });

  test("gives two servers that say nothing different corpora", async () => {
    const [a, b] = await Promise.all([plainServer(() => ({ json: {} })), plainServer(() => ({ json: {} }))]);
    const one = await createRemoteRetriever(optionsFor(a.url), testWorld());
    const other = await createRemoteRetriever(optionsFor(b.url), testWorld());
    expect(one.identity.corpusHash).toMatch(/^unstated:/);
    expect(one.identity.corpusHash).not.toBe(other.identity.corpusHash);
  });
});

describe("the key", () => {
  test.each([
    ["Authorization", "authorization", "Bearer k3y-value"],
    ["X-API-Key", "x-api-key", "k3y-value"],
  ])("travels in %s and is shown nowhere", async (keyHeader, header, value) => {
    const server = await startServer(({ headers, path }) =>
      path === "/retrieve"
        ? { status: 400, text: `unknown key ${String(headers[header])}` }
        : { json: { model: "e5" } },
    );
    const given = { keyVariable: "MY_KEY", keyHeader };
    const retriever = await createRemoteRetriever(
      optionsFor(server.url, given),
      testWorld({ MY_KEY: "k3y-value" }),
    );
    const error = (await retriever.retrieve(["q"], 1).catch((e: unknown) => e)) as Error;
    expect(server.requests.every(({ headers }) => headers[header] === value)).toBe(true);
    expect(error.message).toContain("unknown key");
    expect(JSON.stringify([retriever.identity, error.message, error.stack])).not.toContain("k3y-value");
  });

  test("is not in the message of a refused /stats either", async () => {
    const { url } = await startServer(({ path, headers }) =>
      path === "/stats"
        ? { status: 403, text: `bad key ${String(headers["x-key"])}` }
        : { status: 404, text: "" },
    );
    const given = optionsFor(url, { keyVariable: "MY_KEY", keyHeader: "x-key" });
    const making = createRemoteRetriever(given, testWorld({ MY_KEY: "k3y-value" }));
    await expect(making).rejects.toThrow('/stats: expected status 200 or 404, got 403: "bad key ***"');
  });

  test("must be there when it is named, and not beside credentials", async () => {
    const given = { keyVariable: "MY_KEY" };
    await expect(createRemoteRetriever(optionsFor("http://h", given), testWorld())).rejects.toThrow(
      "environment variable MY_KEY",
    );
    await expect(createRemoteRetriever(optionsFor("http://u:100%@h"), testWorld())).rejects.toThrow(
      new ConfigError(
        "expected percent-encoded credentials in the URL, got a % that begins no character; write it as %25",
      ),
    );
    await expect(
      createRemoteRetriever(optionsFor("http://u:p@h", given), testWorld({ MY_KEY: "k" })),
    ).rejects.toThrow("got both");
  });
});

test("one failed call fails the answer and stops those that wait", async () => {
  const server = await plainServer(({ body }) => {
    const { query } = body as { query: string };
    return query === "bad" ? { status: 422, text: "bad query" } : cutOff("");
  });
  const given = { dialect: "skyrl" as const, concurrency: 1, retries: 0 };
  const retriever = await createRemoteRetriever(optionsFor(server.url, given), testWorld());
  await expect(retriever.retrieve(["bad", "b", "c", "d"], 1)).rejects.toThrow("bad query");
  expect(server.asked()).toHaveLength(1);
});

test.each([
  ["ftp://host", "must be a URL such as"],
  ["http://host/?key=1", "must be a URL such as"],
  ["host:8000", "must be a URL such as"],
])("the URL %s is refused", (url, message) => {
  expect(() => optionsFor(url)).toThrow(message);
});

test("an index is for pyserini alone", () => {
  expect(() => optionsFor("http://h", { index: "i" })).toThrow("needs index");
  expect(() => remoteSourceSchema.parse({ type: "remote", url: "http://h", dialect: "pyserini" })).toThrow(
    "needs index",
  );
});

/** A Search-R1 server over BM25 that says what it searches; always at the same name. */
async function served(passages: readonly Passage[]): Promise<Retriever> {
  const index = await buildBm25Index(passages);
  const server = await startServer(async ({ path, body }) => {
    if (path === "/health") return { json: { status: "ok" } };
    if (path === "/stats") return { json: { ...index.identity } };
    const { queries, topk } = body as { queries: string[]; topk: number };
    const found = await index.retrieve(queries, topk);
    const result = found.map((list) =>
      list.map(({ passage, score }) => ({
        document: { id: passage.id, contents: contentsOf(passage) },
        score,
      })),
    );
    return { json: { result } };
  });
  const world = {
    ...testWorld(),
    fetch: ((url, init) => fetch(String(url).replace("http://corpus.test", server.url), init)) as Fetch,
  };
  const retriever = await createRemoteRetriever(optionsFor("http://corpus.test"), world);
  expect(retriever.identity.corpusHash).toBe(corpusHash(passages));
  return retriever;
}

describeRetriever("a served BM25 index", served);
