import { expect, test } from "vitest";
import type { Passage } from "../../corpus/passage.ts";
import type { ScoredPassage } from "../retriever.ts";
import { type Answer, startServer, testWorld } from "./remote.fixture.ts";
import { remoteRerankerSchema } from "./remote-options.ts";
import { createRemoteReranker } from "./remote-reranker.ts";

interface Sent {
  readonly queries: readonly string[];
  readonly documents: readonly (readonly { readonly id: string; readonly contents: string }[])[];
  readonly rerank_topk: number;
}

const passages: readonly Passage[] = ["one", "two", "three"].map((title, i) => ({
  id: `${i}`,
  title,
  text: `text of ${title}`,
}));
const candidates: readonly ScoredPassage[] = passages.map((passage) => ({ passage, score: 0 }));

async function reranker(answer: (sent: Sent) => Answer, options: object = {}) {
  const server = await startServer(({ path, body }) =>
    path === "/rerank" ? answer(body as Sent) : { status: 404, text: "" },
  );
  const parsed = remoteRerankerSchema.parse({ type: "remote", url: server.url, ...options });
  return { server, reranker: await createRemoteReranker(parsed, testWorld()) };
}

/** Ranks backwards, with passages as `form` makes them. */
function backwards(form: (document: Sent["documents"][0][0]) => unknown) {
  return (sent: Sent): Answer => ({
    json: {
      result: sent.documents.map((list) =>
        [...list]
          .reverse()
          .map((document, rank) => ({ document: form(document), score: 9 - rank }))
          .slice(0, sent.rerank_topk),
      ),
    },
  });
}

test.each([
  ["objects", (document: { id: string }) => document],
  ["texts", (document: { contents: string }) => `(Title: ${document.contents.replace("\n", ") ")}`],
])("passages sent back as %s are found again, best first", async (_, form) => {
  const { reranker: it, server } = await reranker(backwards(form as (d: object) => unknown));
  const answers = await it.rerank(["a", "b", "c"], [candidates, [], candidates.slice(0, 1)], 2);
  expect(answers.map((answer) => answer.map(({ passage }) => passage.id))).toEqual([["2", "1"], [], ["0"]]);
  expect(answers[0]?.[0]?.passage).toBe(passages[2]);
  const sent = server.requests.filter(({ path }) => path === "/rerank");
  expect(sent).toHaveLength(2);
  expect(sent[0]?.body).toMatchObject({ queries: ["a"], rerank_topk: 2, return_scores: true });
});

test("several queries travel together when asked for", async () => {
  const { reranker: it, server } = await reranker(
    backwards((document) => document),
    { batchSize: 2 },
  );
  await it.rerank(["a", "b", "c"], [candidates, candidates, candidates], 1);
  expect(server.requests.filter(({ path }) => path === "/rerank")).toHaveLength(2);
});

test.each([
  { result: [[{ document: { id: "elsewhere" }, score: 1 }]] },
  { result: [[{ document: { id: "1" } }]] },
  {
    result: [
      [
        { document: { id: "1" }, score: 1 },
        { document: { id: "1" }, score: 1 },
      ],
    ],
  },
  { result: [{}] },
])("a passage that was not asked about is an error: %j", async (json) => {
  const { reranker: it } = await reranker(() => ({ json }));
  await expect(it.rerank(["a"], [candidates], 3)).rejects.toThrow(
    "expected passages of the query with scores",
  );
});

test("a reply of another form is an error", async () => {
  const { reranker: it } = await reranker(() => ({ json: { results: [] } }));
  await expect(it.rerank(["a"], [candidates], 3)).rejects.toThrow('expected {"result": 1 lists}');
});
