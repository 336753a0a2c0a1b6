/** Our side of the dense benchmark: the protocol of `peers/dense_peers.py`, answered by Forager. */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { ApproximateIndex, approximateOptionsSchema } from "../src/retrieval/dense/approximate.ts";
import type { Encoder } from "../src/retrieval/dense/encoder.ts";
import { ExactSearch, type Neighbours } from "../src/retrieval/dense/exact.ts";
import { openEncoder } from "../src/retrieval/dense/onnx-encoder.ts";
import { SEGMENT_ROWS } from "../src/retrieval/dense/vector-file.ts";
import { answerRequests } from "./answer-requests.ts";

type Request =
  | {
      readonly op: "load";
      readonly vectors: string;
      readonly queries: string;
      readonly dimensions: number;
      readonly threads: number;
    }
  | { readonly op: "exact"; readonly mode: "single" | "bulk"; readonly k: number; readonly count: number }
  | { readonly op: "answers"; readonly k: number; readonly count: number }
  | {
      readonly op: "graph";
      readonly k: number;
      readonly recall: number;
      readonly connectivity: number;
      readonly expansionAdd: number;
    }
  | { readonly op: "search"; readonly k: number; readonly count: number }
  | {
      readonly op: "encoder";
      readonly folder: string;
      readonly texts: readonly string[];
      readonly threads: number;
    }
  | { readonly op: "encode" };

const expansions = [
  10, 12, 14, 16, 20, 24, 28, 32, 36, 40, 44, 48, 56, 64, 72, 80, 96, 112, 128, 160, 192, 256, 384, 512,
];

interface Loaded {
  readonly vectors: Float32Array;
  readonly queries: Float32Array;
  readonly dimensions: number;
  readonly threads: number;
  readonly exact: ExactSearch;
}

let loaded: Loaded | undefined;
let graph: ApproximateIndex | undefined;
let encoding: { readonly encoder: Encoder; readonly texts: readonly string[] } | undefined;

function need<T>(value: T | undefined, operation: string): T {
  if (value === undefined) throw new Error(`${operation} comes first`);
  return value;
}

async function floats(path: string): Promise<Float32Array> {
  const bytes = await readFile(path);
  return new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
}

async function* segments(vectors: Float32Array, dimensions: number): AsyncGenerator<Float32Array> {
  const step = SEGMENT_ROWS * dimensions;
  for (let at = 0; at < vectors.length; at += step) yield vectors.subarray(at, at + step);
}

async function load({ dimensions, threads, ...files }: Extract<Request, { op: "load" }>): Promise<object> {
  const [vectors, queries] = [await floats(files.vectors), await floats(files.queries)];
  const exact = await ExactSearch.open(segments(vectors, dimensions), dimensions, threads);
  loaded = { vectors, queries, dimensions, threads, exact };
  return {};
}

async function exact({ mode, k, count }: Extract<Request, { op: "exact" }>): Promise<object> {
  const { queries, dimensions, exact: search } = need(loaded, "load");
  const start = performance.now();
  if (mode === "bulk") await search.search(queries.subarray(0, count * dimensions), k);
  else
    for (let i = 0; i < count; i++)
      await search.search(queries.subarray(i * dimensions, (i + 1) * dimensions), k);
  return { seconds: (performance.now() - start) / 1000, tokens: count };
}

async function answers({ k, count }: Extract<Request, { op: "answers" }>): Promise<object> {
  const { queries, dimensions, exact: search } = need(loaded, "load");
  const found = await search.search(queries.subarray(0, count * dimensions), k);
  return { ids: found.map(({ positions }) => positions) };
}

/** Builds the graph, then takes the smallest search expansion that reaches the recall. */
async function buildGraph(request: Extract<Request, { op: "graph" }>): Promise<object> {
  const { vectors, queries, dimensions, threads, exact: search } = need(loaded, "load");
  const { k, connectivity, expansionAdd } = request;
  const options = approximateOptionsSchema.parse({ connectivity, expansionAdd });
  const wanted = await search.search(queries, k);
  const start = performance.now();
  const built = await ApproximateIndex.create(dimensions, options, threads);
  await built.add(vectors, () => undefined);
  const buildSeconds = (performance.now() - start) / 1000;
  const folder = await mkdtemp(join(tmpdir(), "forager-bench-"));
  try {
    const path = join(folder, "graph.usearch");
    built.save(path);
    const size = { dimensions, count: vectors.length / dimensions };
    for (const expansionSearch of expansions) {
      graph = await ApproximateIndex.open(path, size, { ...options, expansionSearch, threads });
      const recall = recallOf(graph.search(queries, k), wanted, k);
      if (recall >= request.recall) return { recall, expansion: expansionSearch, buildSeconds };
    }
    throw new Error(`no search expansion reaches a recall of ${request.recall}`);
  } finally {
    await rm(folder, { recursive: true }); // the open file stays mapped
  }
}

function recallOf(found: readonly Neighbours[], wanted: readonly Neighbours[], k: number): number {
  const hits = found.map(({ positions }, i) => {
    const right = new Set(wanted[i]?.positions);
    return positions.filter((position) => right.has(position)).length;
  });
  return hits.reduce((sum, n) => sum + n, 0) / (wanted.length * k);
}

function search({ k, count }: Extract<Request, { op: "search" }>): object {
  const { queries, dimensions } = need(loaded, "load");
  const index = need(graph, "graph");
  const start = performance.now();
  index.search(queries.subarray(0, count * dimensions), k);
  return { seconds: (performance.now() - start) / 1000, tokens: count };
}

async function openModel({ folder, texts, threads }: Extract<Request, { op: "encoder" }>): Promise<object> {
  const encoder = await openEncoder(folder, { threads });
  encoding = { encoder, texts };
  const { pooling, maxTokens } = encoder.identity;
  return { pooling, maxTokens };
}

async function encode(): Promise<object> {
  const { encoder, texts } = need(encoding, "encoder");
  const start = performance.now();
  const vectors = await encoder.encodePassages(texts.map((text) => ({ title: "", text })));
  const seconds = (performance.now() - start) / 1000;
  return { seconds, tokens: texts.length, first: [...vectors.subarray(0, encoder.identity.dimensions)] };
}

async function answer(request: Request): Promise<object> {
  switch (request.op) {
    case "load":
      return await load(request);
    case "exact":
      return await exact(request);
    case "answers":
      return await answers(request);
    case "graph":
      return await buildGraph(request);
    case "search":
      return search(request);
    case "encoder":
      return await openModel(request);
    case "encode":
      return await encode();
  }
}

await answerRequests(answer);
