/**
 * Dense retrieval with real models: bge-small-en-v1.5 (dynamic int8), all-MiniLM-L6-v2 (weights in int8) and the
 * cross-encoder ms-marco-MiniLM-L-12-v2. FORAGER_ASSETS names the folder that holds them; FORAGER_PYTHON a Python
 * with onnxruntime and tokenizers to compare vectors with. What is missing is skipped.
 */
import { existsSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Worker } from "../../bench/worker.ts";
import type { Passage } from "../../src/corpus/passage.ts";
import type { Question } from "../../src/corpus/question.ts";
import { readCorpus } from "../../src/corpus/read-corpus.ts";
import { readQuestions } from "../../src/corpus/read-questions.ts";
import { buildDense } from "../../src/retrieval/dense/build-dense.ts";
import { type CrossEncoder, openCrossEncoder } from "../../src/retrieval/dense/cross-encoder.ts";
import { openDense } from "../../src/retrieval/dense/dense-retriever.ts";
import type { Encoder } from "../../src/retrieval/dense/encoder.ts";
import { openEncoder } from "../../src/retrieval/dense/onnx-encoder.ts";
import { hybridRetriever } from "../../src/retrieval/hybrid.ts";
import { buildBm25Index } from "../../src/retrieval/lexical/bm25.ts";
import type { PassageStore } from "../../src/retrieval/passage-store.ts";
import { rerankingRetriever } from "../../src/retrieval/rerank.ts";
import { describeRetriever } from "../../src/retrieval/retriever.suite.ts";
import type { Retriever } from "../../src/retrieval/retriever.ts";

const assets = process.env.FORAGER_ASSETS ?? "";
const data = join(process.env.FORAGER_SHARED ?? join(import.meta.dirname, "../../../shared"), "data");
const python = process.env.FORAGER_PYTHON;
const threads = 2;
const work = { threads, now: () => performance.now() };

const folders = {
  bge: join(assets, "bge-small-en-v1.5"),
  reranker: join(assets, "ms-marco-MiniLM-L-12-v2"),
  miniLm: join(assets, "all-MiniLM-L6-v2-int8"),
};
const hasModel = (folder: string): boolean => assets !== "" && existsSync(join(folder, "model.onnx"));
const titleOf = (what: string, isThere: boolean): string =>
  isThere ? what : `${what} (skipped: FORAGER_ASSETS names no folder with it)`;

let scratch: string;
beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), "forager-real-dense-"));
});
afterAll(() => rm(scratch, { recursive: true, force: true }));

const texts = [
  "The Vltava is the longest river of Czechia.",
  "naïve café, 日本語 and 😀 — “quotes”",
  "A long text. ".repeat(300),
  "x",
];
const passages = texts.map((text) => ({ title: "", text }));

function cosine(a: Float32Array | readonly number[], b: Float32Array | readonly number[]): number {
  let [ab, aa, bb] = [0, 0, 0];
  for (const [i, x] of a.entries()) {
    const y = b[i] as number;
    ab += x * y;
    aa += x * x;
    bb += y * y;
  }
  return ab / Math.sqrt(aa * bb);
}

function storeOf(from: readonly Passage[]): PassageStore {
  return { count: from.length, get: (position) => from[position] as Passage };
}

let built = 0;
async function denseOver(from: readonly Passage[], encoder: Encoder): Promise<Retriever> {
  const folder = join(scratch, `dense-${built++}`);
  await buildDense(storeOf(from), encoder, { folder, ...work });
  return await openDense(folder, { passages: storeOf(from), encoder }, { threads });
}

describe.skipIf(!hasModel(folders.bge))(titleOf("bge-small-en-v1.5", hasModel(folders.bge)), () => {
  let encoder: Encoder;
  beforeAll(async () => {
    encoder = await openEncoder(folders.bge, { threads });
  });
  afterAll(() => encoder.close());

  describeRetriever("dense with a real encoder", (from) => denseOver(from, encoder));

  test("is known by its folder", () => {
    expect(encoder.identity).toMatchObject({
      name: "BAAI/bge-small-en-v1.5",
      pooling: "cls",
      dimensions: 384,
    });
  });

  test("gives equal bytes for a text whatever is encoded beside it, although its numbers are scaled by the batch", async () => {
    const together = await encoder.encodePassages(passages);
    for (const [i, passage] of passages.entries())
      expect(await encoder.encodePassages([passage])).toEqual(together.subarray(i * 384, (i + 1) * 384));
    const batched = await openEncoder(folders.bge, { threads, batchSize: 4 });
    const mixed = await batched.encodePassages(passages);
    await batched.close();
    expect(batched.identity.hash).not.toBe(encoder.identity.hash);
    expect(mixed).not.toEqual(together);
    for (const i of passages.keys())
      expect(
        cosine(mixed.subarray(i * 384, (i + 1) * 384), together.subarray(i * 384, (i + 1) * 384)),
      ).toBeGreaterThan(0.95);
  });

  test.skipIf(python === undefined)(
    "gives the vectors of Python onnxruntime (needs FORAGER_PYTHON)",
    async () => {
      const vectors = await encoder.encodePassages(passages);
      const peer = new Worker(python ?? "", [join(import.meta.dirname, "../../bench/peers/dense_peers.py")]);
      for (const [i, text] of texts.entries()) {
        const { pooling, maxTokens } = encoder.identity;
        await peer.request("encoder", { folder: folders.bge, texts: [text], pooling, maxTokens, threads });
        const { first } = await peer.request("encode", { batch: 1 });
        // Two versions of ONNX Runtime round activations to int8 a little differently.
        expect(cosine(first as number[], vectors.subarray(i * 384, (i + 1) * 384))).toBeGreaterThan(0.995);
      }
      peer.close();
    },
  );
});

const hasMiniLm = hasModel(folders.miniLm) && existsSync(join(assets, "all-MiniLM-L6-v2", "tokenizer.json"));
test.skipIf(!hasMiniLm)(
  titleOf("all-MiniLM-L6-v2 gives a text the same vector alone and in a batch, up to rounding", hasMiniLm),
  async () => {
    const folder = join(scratch, "all-MiniLM-L6-v2-int8");
    await mkdir(folder);
    await copyFile(join(folders.miniLm, "model.onnx"), join(folder, "model.onnx"));
    await copyFile(join(assets, "all-MiniLM-L6-v2", "tokenizer.json"), join(folder, "tokenizer.json"));
    const encoder = await openEncoder(folder, { threads });
    expect(encoder.identity).toMatchObject({ pooling: "mean", maxTokens: 256 });
    const together = await encoder.encodePassages(passages);
    for (const [i, passage] of passages.entries())
      expect(
        cosine(await encoder.encodePassages([passage]), together.subarray(i * 384, (i + 1) * 384)),
      ).toBeGreaterThan(0.999999);
    const [a, b, c] = await Promise.all(
      ["Who wrote Faust?", "Faust was written by Goethe.", "Bees make honey."].map((each) =>
        encoder.encodeQueries([each]),
      ),
    );
    expect(cosine(a as Float32Array, b as Float32Array)).toBeGreaterThan(0.5);
    expect(cosine(a as Float32Array, c as Float32Array)).toBeLessThan(0.3);
    await encoder.close();
  },
);

describe.skipIf(!hasModel(folders.reranker))(
  titleOf("ms-marco-MiniLM-L-12-v2", hasModel(folders.reranker)),
  () => {
    let reranker: CrossEncoder;
    beforeAll(async () => {
      reranker = await openCrossEncoder(folders.reranker, { threads });
    });
    afterAll(() => reranker.close());

    describeRetriever("reranking with a real cross-encoder", async (from) =>
      rerankingRetriever(await buildBm25Index(from), reranker, { depth: 4 }),
    );

    test("scores what answers above what only shares words, and nothing by its neighbours", async () => {
      const query = "How many people live in Berlin?";
      const pairs = [
        "Berlin has a population of 3,520,031 registered inhabitants.",
        "People who live in Berlin ask how many museums there are.",
        "Bees make honey.",
      ].map((text) => ({ query, passage: { title: "", text } }));
      const scores = await reranker.score(pairs);
      expect(scores[0]).toBeGreaterThan(scores[1] as number);
      expect(scores[1]).toBeGreaterThan(scores[2] as number);
      for (const [i, pair] of pairs.entries()) expect((await reranker.score([pair]))[0]).toBe(scores[i]);
    });
  },
);

const hasData = existsSync(join(data, "corpus.jsonl")) && hasModel(folders.bge);
describe.skipIf(!hasData)(
  hasData ? "real questions" : "real questions (skipped: data or model is not there)",
  () => {
    test("hybrid finds at least as much of the evidence as each of its parts, on a part of the corpus", async () => {
      const files = ["nq", "popqa", "hotpotqa", "musique"];
      const questions: Question[] = [];
      for (const file of files)
        questions.push(
          ...(await readQuestions(join(data, `${file}.jsonl`)))
            .filter((q) => q.goldPassages.length > 0)
            .slice(0, 40),
        );
      const gold = new Set(questions.flatMap(({ goldPassages }) => goldPassages));
      const some: Passage[] = [];
      let line = 0;
      for await (const passage of readCorpus(join(data, "corpus.jsonl")))
        if (line++ % 25 === 0 || gold.has(passage.id)) some.push(passage);
      const encoder = await openEncoder(folders.bge, { threads });
      const parts = [
        { name: "bm25", retriever: await buildBm25Index(some) },
        { name: "dense", retriever: await denseOver(some, encoder) },
      ];
      const recallOf = async (retriever: Retriever): Promise<number> => {
        const answers = await retriever.retrieve(
          questions.map(({ text }) => text),
          5,
        );
        const recalls = questions.map(({ goldPassages }, i) => {
          const found = new Set(answers[i]?.map(({ passage }) => passage.id));
          return goldPassages.filter((id) => found.has(id)).length / goldPassages.length;
        });
        return recalls.reduce((sum, recall) => sum + recall, 0) / recalls.length;
      };
      const [bm25, dense] = await Promise.all(parts.map(({ retriever }) => recallOf(retriever)));
      const hybrid = await recallOf(hybridRetriever(parts));
      await encoder.close();
      expect(dense).toBeGreaterThan(0.6);
      // 160 questions: two points are one or two of them.
      expect(hybrid).toBeGreaterThan(Math.max(bm25 as number, dense as number) - 0.02);
    });
  },
);
