import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ConfigError, FileError, RetrieverError } from "../../errors.ts";
import { openCrossEncoder } from "./cross-encoder.ts";
import type { Encoder } from "./encoder.ts";
import { findKnownEncoder, knownEncoders } from "./encoder-models.ts";
import { locateModel } from "./model-files.ts";
import { type OpenEncoderOptions, openEncoder } from "./onnx-encoder.ts";
import { batchesByLength } from "./onnx-model.ts";
import { vectorOf, words, writeTinyModel } from "./tiny-model.fixture.ts";
import { TokenIds } from "./token-ids.ts";

let scratch: string;
const closing: { close(): Promise<void> }[] = [];
beforeEach(async () => {
  scratch = await mkdtemp(join(tmpdir(), "forager-encoder-"));
});
afterEach(async () => {
  for (const each of closing.splice(0)) await each.close();
  await rm(scratch, { recursive: true, force: true });
});

async function open(name: string, options: Partial<OpenEncoderOptions> = {}): Promise<Encoder> {
  const folder = await writeTinyModel(join(scratch, name), "encoder");
  const encoder = await openEncoder(folder, { threads: 1, ...options });
  closing.push(encoder);
  return encoder;
}

const id = (word: string): number => words.indexOf(word);
const sequence = (text: string): number[] => ["[CLS]", ...text.split(" "), "[SEP]"].map(id);
/** The mean of the token vectors of a text, worked out by hand. */
function meanOf(ids: readonly number[]): number[] {
  const rows = ids.map(vectorOf);
  return [0, 1, 2, 3].map((i) => rows.reduce((sum, row) => sum + (row[i] as number), 0) / ids.length);
}
function unit(vector: readonly number[]): number[] {
  const length = Math.hypot(...vector);
  return vector.map((x) => x / length);
}
function expectNear(found: Float32Array, expected: readonly number[]): void {
  expect(found).toHaveLength(expected.length);
  for (const [i, value] of found.entries()) expect(value).toBeCloseTo(expected[i] as number, 5);
}

describe("a known model", () => {
  test("is used with its pooling and prefixes: E5 takes means and names what a text is", async () => {
    const encoder = await open("e5-small-v2");
    expect(encoder.identity).toMatchObject({
      name: "intfloat/e5-small-v2",
      pooling: "mean",
      queryPrefix: "query: ",
    });
    expectNear(await encoder.encodeQueries(["red"]), unit(meanOf(sequence("query : red"))));
    const passage = { title: "Green", text: "blue" };
    expectNear(await encoder.encodePassages([passage]), unit(meanOf(sequence("passage : green blue"))));
  });

  test("is found by the name of its folder, with the endings of its variants", () => {
    expect(findKnownEncoder("/models/all-MiniLM-L6-v2-int8")?.name).toBe(
      "sentence-transformers/all-MiniLM-L6-v2",
    );
    expect(findKnownEncoder("BAAI/BGE-small-en-v1.5")?.queryPrefix).toMatch(/^Represent this sentence/);
    expect(findKnownEncoder("C:\\models\\gte-small.onnx")?.name).toBe("thenlper/gte-small");
    expect(findKnownEncoder("someone/gte-small-tuned")).toBeUndefined();
    expect(new Set(knownEncoders.map(({ name }) => name)).size).toBe(knownEncoders.length);
  });
});

describe("a model that is not known", () => {
  test("must say how it is used", async () => {
    const opening = open("mine");
    await expect(opening).rejects.toThrow(ConfigError);
    await expect(opening).rejects.toThrow(
      /mine is not known .*1_Pooling.*Declare at least pooling \(mean, cls, last or given\)/,
    );
  });

  test("is used as declared", async () => {
    const cls = await open("mine", { pooling: "cls", normalize: false, queryPrefix: "blue " });
    expectNear(await cls.encodeQueries(["red"]), vectorOf(id("[CLS]")));
    const last = await open("mine", { pooling: "last", normalize: false });
    expectNear(await last.encodeQueries(["red green"]), vectorOf(id("[SEP]")));
    const mean = await open("mine", { pooling: "mean", normalize: false, queryPrefix: "blue " });
    expectNear(await mean.encodeQueries(["redish"]), meanOf(sequence("blue red ##ish")));
    expect(new Set([cls, last, mean].map(({ identity }) => identity.hash)).size).toBe(3);
    const given = open("mine", { pooling: "given" });
    await expect(given).rejects.toThrow(RetrieverError);
    await expect(given).rejects.toThrow(
      /needs an output of 2 dimensions.*got last_hidden_state \(3 dimensions, 4 wide\)/,
    );
    await expect(open("mine", { pooling: "cls", maxTokens: 1 })).rejects.toThrow(/maxTokens/);
  });

  test("is used as its sentence-transformers settings say", async () => {
    const folder = join(scratch, "tuned");
    await mkdir(join(folder, "1_Pooling"), { recursive: true });
    await writeFile(
      join(folder, "1_Pooling/config.json"),
      '{"pooling_mode_cls_token": true, "word_embedding_dimension": 4}',
    );
    await writeFile(join(folder, "modules.json"), '[{"type": "sentence_transformers.models.Transformer"}]');
    await writeFile(join(folder, "sentence_bert_config.json"), '{"max_seq_length": 77}');
    await writeFile(join(folder, "config_sentence_transformers.json"), '{"prompts": {"query": "blue "}}');
    const { identity } = await open("tuned");
    expect(identity).toMatchObject({ pooling: "cls", normalize: false, maxTokens: 77, queryPrefix: "blue " });
    await writeFile(join(folder, "1_Pooling/config.json"), "[]");
    await expect(open("tuned")).rejects.toThrow(
      /config.json is not the settings of a sentence-transformers model/,
    );
  });
});

test("vectors do not depend on what is encoded together, nor on batch size and threads", async () => {
  const texts = Array.from({ length: 40 }, (_, i) =>
    Array(1 + (i % 7))
      .fill(words[7 + (i % 3)])
      .join(" "),
  );
  const encoder = await open("gte-small", { batchSize: 8 });
  const together = await encoder.encodeQueries(texts);
  const other = await (await open("gte-small", { batchSize: 3, threads: 4 })).encodeQueries(texts);
  expect(other).toEqual(together);
  const progress: number[] = [];
  for (const [i, text] of texts.entries())
    expect(await encoder.encodeQueries([text], { onProgress: (share) => progress.push(share) })).toEqual(
      together.subarray(i * 4, i * 4 + 4),
    );
  expect(progress).toEqual(texts.map(() => 1));
});

test("odd texts are encoded, and an abort is heard", async () => {
  const encoder = await open("gte-small");
  const odd = ["", " \n\t", "x".repeat(100_000), "red ".repeat(50_000), "\u0000\ud83d", "日本"];
  const vectors = await encoder.encodeQueries(odd);
  expect(vectors.every(Number.isFinite)).toBe(true);
  expect(await encoder.encodeQueries([])).toHaveLength(0);
  const reason = new Error("enough");
  const controller = new AbortController();
  const encoding = encoder.encodeQueries(Array(500).fill("red"), { signal: controller.signal });
  controller.abort(reason);
  await expect(encoding).rejects.toBe(reason);
});

describe("token ids", () => {
  test("keep the special tokens of a text that is cut, and ignore the lengths of the file", async () => {
    const folder = await writeTinyModel(join(scratch, "t"), "encoder");
    const tokens = await TokenIds.open(join(folder, "tokenizer.json"), 8);
    expect(tokens.encode("red").ids).toEqual(sequence("red"));
    expect(tokens.encode("red ".repeat(20)).ids).toEqual(sequence(Array(6).fill("red").join(" ")));
  });

  test("of a pair keep as much of the passage as fits, and at least half of the room for a long query", async () => {
    const folder = await writeTinyModel(join(scratch, "t"), "encoder");
    const tokens = await TokenIds.open(join(folder, "tokenizer.json"), 11);
    const pair = (a: number, b: number): string => {
      const { ids, types = [] } = tokens.encodePair("red ".repeat(a), "blue ".repeat(b));
      expect(types).toEqual(ids.map((_, i) => (i <= ids.indexOf(id("[SEP]")) ? 0 : 1)));
      return ids.map((each) => words[each]?.replace(/[[\]]/g, "")[0]).join("");
    };
    expect(pair(1, 2)).toBe("CrSbbS");
    expect(pair(2, 50)).toBe("CrrSbbbbbbS");
    expect(pair(50, 50)).toBe("CrrrrSbbbbS");
    expect(pair(50, 1)).toBe("CrrrrrrrSbS");
    expect(pair(0, 0)).toBe("CSS");
  });
});

test("a model that gives no numbers is not believed", async () => {
  const folder = await writeTinyModel(join(scratch, "gte-large"), "encoder", {
    id: id("blue"),
    value: Number.NaN,
  });
  const encoder = await openEncoder(folder, { threads: 1 });
  closing.push(encoder);
  expect(await encoder.encodeQueries(["red"])).toHaveLength(4);
  await expect(encoder.encodeQueries(["red", "green blue"])).rejects.toThrow(
    /gave a vector that is not of numbers for "green blue"/,
  );
});

test("batches go from long to short, equal lengths in order", () => {
  const lengths = [3, 9, 3, 1, 9];
  const sequences = lengths.map((length) => ({ ids: Array<number>(length).fill(7) }));
  expect(batchesByLength(sequences, 2)).toEqual([[1, 4], [0, 2], [3]]);
});

test("a cross-encoder reads pairs and gives one number each, in order", async () => {
  const folder = await writeTinyModel(join(scratch, "reranker"), "cross-encoder");
  const encoder = await openCrossEncoder(folder, { threads: 2, batchSize: 2 });
  closing.push(encoder);
  const passage = (title: string, text: string) => ({ title, text });
  const pairs = [
    { query: "red", passage: passage("blue", "green green") },
    { query: "red red red", passage: passage("", "green") },
    { query: "", passage: passage("", "") },
  ];
  const sep = id("[SEP]");
  expectNear(await encoder.score(pairs), [(9 + 8 + 8 + sep) / 100, (8 + sep) / 100, sep / 100]);
  expect(await encoder.score([])).toHaveLength(0);
  await expect(encoder.score(pairs, AbortSignal.abort(new Error("enough")))).rejects.toThrow("enough");
  const single = await writeTinyModel(join(scratch, "gte-small"), "encoder");
  await expect(openCrossEncoder(single, { threads: 1 })).rejects.toThrow(/no cross-encoder.*cannot rerank/);
});

describe("a folder that is no model", () => {
  test("says what is missing", async () => {
    const hub = { endpoint: "http://127.0.0.1:1", cacheFolder: scratch };
    await expect(locateModel(join(scratch, "nowhere"), undefined, hub)).rejects.toThrow(
      /no model folder .*nowhere; expected/,
    );
    const folder = await writeTinyModel(join(scratch, "gte-small"), "encoder");
    expect(await locateModel(folder, undefined, hub)).toEqual({ folder, name: folder });
    await expect(openEncoder(folder, { threads: 1, file: "other.onnx" })).rejects.toThrow(
      /holds no model: expected other.onnx/,
    );
    await writeFile(join(folder, "tokenizer.json"), '{"model": 1}');
    const opening = openEncoder(folder, { threads: 1 });
    await expect(opening).rejects.toThrow(FileError);
    await expect(opening).rejects.toThrow(/tokenizer.json is no tokenizer that Forager can use/);
    await rm(join(folder, "tokenizer.json"));
    await expect(openEncoder(folder, { threads: 1 })).rejects.toThrow(
      /cannot read the tokenizer .*no such file/,
    );
    const other = join(scratch, "copies", "gte-base");
    await cp(await writeTinyModel(join(scratch, "whole"), "encoder"), other, { recursive: true });
    await writeFile(join(other, "model.onnx"), "no model");
    await expect(openEncoder(other, { threads: 1 })).rejects.toThrow(/no model that ONNX Runtime can run/);
  });
});
