/** One side of the LanceDB benchmark: a table of LanceDB or an index folder, built, opened and searched in this process. */
import { performance } from "node:perf_hooks";
import { readCorpus } from "../src/corpus/read-corpus.ts";
import { readQuestions } from "../src/corpus/read-questions.ts";
import { buildIndexFolder, openIndex } from "../src/retrieval/index-folder.ts";
import { buildLanceTable } from "../src/retrieval/lance/build-lance-table.ts";
import { lanceRetriever } from "../src/retrieval/lance/lance-retriever.ts";
import type { Retriever } from "../src/retrieval/retriever.ts";
import { answerRequests } from "./answer-requests.ts";

type Kind = "lance" | "folder";
type Request =
  | { readonly op: "build"; readonly kind: Kind; readonly corpus: string; readonly uri: string }
  | { readonly op: "open"; readonly kind: Kind; readonly uri: string; readonly questions: readonly string[] }
  | { readonly op: "search"; readonly one: boolean; readonly k: number; readonly count: number }
  | { readonly op: "peak" };

const table = "passages";
let retriever: Retriever;
let queries: string[] = [];
let next = 0;

async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return (performance.now() - start) / 1000;
}

async function build({ kind, corpus, uri }: Extract<Request, { op: "build" }>): Promise<object> {
  const passages = readCorpus(corpus);
  const seconds = await timed(() =>
    kind === "lance" ? buildLanceTable(passages, uri, { table }) : buildIndexFolder(passages, uri),
  );
  return { seconds };
}

/** Seconds until the first answer. */
async function open({ kind, uri, questions }: Extract<Request, { op: "open" }>): Promise<object> {
  for (const file of questions) queries.push(...(await readQuestions(file)).map(({ text }) => text));
  queries = queries.map((query) => query.trim());
  const seconds = await timed(async () => {
    retriever =
      kind === "lance" ? await lanceRetriever(uri, { table }) : await openIndex(uri, { storage: "disk" });
    await retriever.retrieve(queries.slice(0, 1), 10);
  });
  return { seconds, queries: queries.length };
}

/** The next `count` queries, one by one or in one call. */
async function search({ one, k, count }: Extract<Request, { op: "search" }>): Promise<object> {
  const chosen = Array.from({ length: count }, (_, i) => queries[(next + i) % queries.length] as string);
  next += count;
  const seconds = await timed(async () => {
    if (!one) await retriever.retrieve(chosen, k);
    else for (const query of chosen) await retriever.retrieve([query], k);
  });
  return { seconds, tokens: count };
}

async function answer(request: Request): Promise<object> {
  switch (request.op) {
    case "build":
      return await build(request);
    case "open":
      return await open(request);
    case "search":
      return await search(request);
    case "peak":
      return { bytes: process.resourceUsage().maxRSS * 1024 };
  }
}

await answerRequests(answer);
