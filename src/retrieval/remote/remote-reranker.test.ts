import { expect, test } from "vitest";
import { type Answer, startServer, testWorld } from "../../shared/server.fixture.ts";
import { rerankingRetriever } from "../rerank.ts";
import { scriptedRetriever } from "../scripted-retriever.ts";
import { remoteRerankerSchema } from "./remote-options.ts";
import { createRemoteReranker } from "./remote-reranker.ts";

interface Sent {
  readonly queries: readonly string[];
  readonly documents: readonly (readonly { readonly id: string; readonly contents: string }[])[];
}

const passages = ["one", "two", "three"].map((title, i) => ({
  id: `p${i}`,
  title,
  text: `text of ${title}`,
}));
const pairsOf = (query: string, count = 3) => passages.slice(0, count).map((passage) => ({ query, passage }));

async function reranker(answer: (sent: Sent) => Answer, options: object = {}) {
  const server = await startServer(({ path, body }) =>
    path === "/rerank" ? answer(body as Sent) : { status: 404, text: "" },
  );
  const parsed = remoteRerankerSchema.parse({ type: "remote", url: server.url, ...options });
  const asked = () => server.requests.filter(({ path }) => path === "/rerank").map(({ body }) => body);
  return { asked, reranker: await createRemoteReranker(parsed, testWorld()) };
}

/** Ranks backwards, with passages as `form` makes them: the last gets 9, the one before 8. */
function backwards(form: (document: Sent["documents"][0][0]) => unknown) {
  return ({ documents }: Sent): Answer => ({
    json: {
      result: documents.map((list) =>
        [...list].reverse().map((document, rank) => ({ document: form(document), score: 9 - rank })),
      ),
    },
  });
}

test.each([
  ["objects", (document: { id: string }) => document],
  ["texts", (document: { contents: string }) => `(Title: ${document.contents.replace("\n", ") ")}`],
])("passages sent back as %s are found again", async (_, form) => {
  const { reranker: it, asked } = await reranker(backwards(form as (d: object) => unknown));
  expect([...(await it.score([...pairsOf("a"), ...pairsOf("b", 1)]))]).toEqual([7, 8, 9, 9]);
  expect(asked()).toHaveLength(2);
  expect(asked()[0]).toEqual({
    queries: ["a"],
    documents: [passages.map(({ title, text }, i) => ({ id: `${i}`, contents: `"${title}"\n${text}` }))],
    rerank_topk: 3,
    return_scores: true,
  });
  expect(await it.score([])).toHaveLength(0);
});

test("it puts the passages of a retriever in its order", async () => {
  const { reranker: it } = await reranker(backwards((document) => document));
  const retriever = rerankingRetriever(
    scriptedRetriever(() => passages),
    it,
  );
  const [answer = []] = await retriever.retrieve(["a"], 2);
  expect(answer.map(({ passage }) => passage.id)).toEqual(["p2", "p1"]);
});

test("several queries travel together when asked for", async () => {
  const { reranker: it, asked } = await reranker(
    backwards((document) => document),
    { batchSize: 2 },
  );
  const scores = await it.score([...pairsOf("a"), ...pairsOf("b", 2), ...pairsOf("c")]);
  expect([...scores]).toEqual([7, 8, 9, 8, 9, 7, 8, 9]);
  expect(asked()).toHaveLength(2);
});

test.each([
  [[{ document: { id: "elsewhere" }, score: 1 }]],
  [[{ document: { id: "0" } }]],
  [[]],
  [
    [
      { document: { id: "0" }, score: 1 },
      { document: { id: "0" }, score: 1 },
    ],
  ],
  [{}],
])("a list that does not score each passage once is an error: %j", async (list) => {
  const { reranker: it } = await reranker(() => ({ json: { result: [list] } }));
  await expect(it.score(pairsOf("a", 1))).rejects.toThrow(
    "expected each of the 1 passages of the query once",
  );
});

test("a reply of another form is an error", async () => {
  const { reranker: it } = await reranker(() => ({ json: { results: [] } }));
  await expect(it.score(pairsOf("a"))).rejects.toThrow('expected {"result": 1 lists}');
});
