/** Our side of the lexical benchmark: the protocol of `peers/bm25s_lexical.py`, answered by an index folder. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { readCorpora } from "../src/corpus/read-corpora.ts";
import { buildIndexFolder, type OpenIndexOptions, openIndex } from "../src/retrieval/index-folder.ts";
import type { Bm25Index } from "../src/retrieval/lexical/bm25.ts";
import { answerRequests } from "./answer-requests.ts";

type Request =
  | { readonly op: "build"; readonly corpus: string }
  | {
      readonly op: "open";
      readonly query: string;
      readonly options: OpenIndexOptions;
      /** An index that is there; absent: the one that was built. */
      readonly folder?: string;
    }
  | {
      readonly op: "single" | "bulk" | "ranking" | "latencies";
      readonly queries: readonly string[];
      readonly k: number;
    }
  | { readonly op: "peak" };

const root = mkdtempSync(join(tmpdir(), "forager-bench-"));
process.on("exit", () => rmSync(root, { recursive: true, force: true }));
for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => process.exit());

let folder = "";
let builds = 0;
let index: Bm25Index | undefined;

function opened(): Bm25Index {
  if (index === undefined) throw new Error("open comes first");
  return index;
}

/** From the file of passages to a folder on disk that can be searched. */
async function build(corpus: string): Promise<object> {
  if (folder !== "") rmSync(folder, { recursive: true });
  folder = join(root, `index-${builds++}`);
  const start = performance.now();
  const { passages, bytes } = await buildIndexFolder(readCorpora([corpus]), folder);
  return { seconds: (performance.now() - start) / 1000, passages, bytes, folder };
}

async function open({ query, options, ...place }: Extract<Request, { op: "open" }>): Promise<object> {
  const start = performance.now();
  index = await openIndex(place.folder ?? folder, options);
  await index.retrieve([query], 10);
  return { seconds: (performance.now() - start) / 1000, bytes: process.memoryUsage().rss };
}

async function search(op: "single" | "bulk", queries: readonly string[], k: number): Promise<object> {
  const start = performance.now();
  if (op === "bulk") await opened().rank(queries, k);
  else for (const query of queries) await opened().rank([query], k);
  return { seconds: (performance.now() - start) / 1000 };
}

/** Milliseconds of each query, passages included. */
async function latencies(queries: readonly string[], k: number): Promise<object> {
  const milliseconds: number[] = [];
  for (const query of queries) {
    const start = performance.now();
    await opened().retrieve([query], k);
    milliseconds.push(performance.now() - start);
  }
  return { milliseconds, bytes: process.memoryUsage().rss };
}

async function answer(request: Request): Promise<object> {
  switch (request.op) {
    case "build":
      return await build(request.corpus);
    case "open":
      return await open(request);
    case "single":
    case "bulk":
      return await search(request.op, request.queries, request.k);
    case "latencies":
      return await latencies(request.queries, request.k);
    case "ranking": {
      const rankings = await opened().rank(request.queries, request.k);
      return { positions: rankings.map(({ positions }) => [...positions]) };
    }
    case "peak":
      return { bytes: process.resourceUsage().maxRSS * 1024 };
  }
}

await answerRequests(answer);
process.exit();
