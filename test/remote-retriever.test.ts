/** What serves and what asks agree: every dialect of the remote retriever over the server of `serving/`. */
import { expect, onTestFinished, test } from "vitest";
import type { Passage } from "../src/corpus/passage.ts";
import { buildBm25Index } from "../src/retrieval/lexical/bm25.ts";
import { dialectNames } from "../src/retrieval/remote/dialects.ts";
import { remoteRerankerSchema, remoteSourceSchema } from "../src/retrieval/remote/remote-options.ts";
import { createRemoteReranker } from "../src/retrieval/remote/remote-reranker.ts";
import { createRemoteRetriever } from "../src/retrieval/remote/remote-retriever.ts";
import { createRetrieverApp } from "../src/serving/retriever-app.ts";
import { startServer } from "../src/serving/start-server.ts";

const passages: readonly Passage[] = [
  { id: "1", title: "Lake Garda", text: "The largest lake in Italy." },
  {
    id: "2",
    title: 'The "big" Danube',
    text: "A river of ten countries.\nIt is long.",
    extra: { year: 1998 },
  },
  { id: "日本", title: "", text: "A text without a title, on a lake." },
];
const queries = ["largest lake", "river", "nothing of it", "日本 & title?"];

const world = {
  fetch,
  now: () => 0,
  sleep: async () => undefined,
  random: () => 0.5,
  keys: { FORAGER_TEST_KEY: "the-key" },
};

async function serve() {
  const index = await buildBm25Index(passages);
  const app = createRetrieverApp(index, {
    now: () => 0,
    name: "wiki",
    passages: passages.length,
    apiKey: "the-key",
    rerank: async (query, documents) => documents.map((text) => (text.includes(query) ? 2 : 1)),
  });
  const server = await startServer(app.fetch, { host: "127.0.0.1", port: 0 });
  onTestFinished(() => server.close());
  return { index, url: server.url };
}

test.each(dialectNames)("%s gives the passages of the index, under its hashes", async (dialect) => {
  const { index, url } = await serve();
  const name = dialect === "pyserini" ? { index: "wiki" } : {};
  const make = () =>
    createRemoteRetriever(
      remoteSourceSchema.parse({ type: "remote", url, dialect, keyVariable: "FORAGER_TEST_KEY", ...name }),
      world,
    );
  const retriever = await make();
  const answers = await retriever.retrieve(queries, 2);
  const plain = await index.retrieve(queries, 2);
  const shown = (found: typeof plain) =>
    found.map((list) => list.map(({ passage: { id, title, text } }) => ({ id, title, text })));
  expect(shown(answers)).toEqual(shown(plain));
  const { corpusHash, indexHash, parameters } = retriever.identity;
  expect([corpusHash, indexHash]).toEqual([index.identity.corpusHash, index.identity.indexHash]);
  expect(parameters).toMatchObject({ url, dialect, "stated.corpus_size": 3 });
  expect((await make()).identity).toEqual(retriever.identity);
});

test("a wrong key is said at the start", async () => {
  const { url } = await serve();
  const options = remoteSourceSchema.parse({ type: "remote", url, keyVariable: "FORAGER_TEST_KEY" });
  const making = createRemoteRetriever(options, { ...world, keys: { FORAGER_TEST_KEY: "wrong-key" } });
  await expect(making).rejects.toThrow(/\/stats: .*401/);
  await expect(making).rejects.not.toThrow("wrong-key");
});

test("the reranker scores the passages of each query", async () => {
  const { url } = await serve();
  const options = remoteRerankerSchema.parse({ type: "remote", url, keyVariable: "FORAGER_TEST_KEY" });
  const reranker = await createRemoteReranker(options, world);
  const pairs = ["Italy", "ten"].flatMap((query) => passages.map((passage) => ({ query, passage })));
  expect([...(await reranker.score(pairs))]).toEqual([2, 1, 1, 1, 2, 1]);
});
