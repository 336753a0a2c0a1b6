/** What is handed on comes back: through our own readers here, through other programs in test/extended/export.test.ts. */
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { ConfigError } from "../errors.ts";
import { trainBytePair } from "../tokenizer/byte-pair-training.ts";
import { readTokenizer, type WritableTokenizer } from "../tokenizer/tokenizer-file.ts";
import { exportGguf, exportHuggingFace } from "./export-model.ts";
import { openModelFiles } from "./model-files.ts";
import type { ModelOptions } from "./model-options.ts";
import { initializeParameters, type ParameterSet } from "./parameters.ts";
import { floatTypes } from "./tensor-encoding.ts";

const goldenTokenizer = (name: string): Promise<WritableTokenizer> =>
  readTokenizer(join(import.meta.dirname, "../../test/golden/tokenizer", name));

/** What a family's model has beyond a plain Llama, and the tokenizer it comes with. */
const families: readonly (readonly [string, string, Partial<ModelOptions>])[] = [
  ["smollm2", "smollm2", { tieEmbeddings: true }],
  [
    "llama3",
    "llama3",
    {
      ropeScaling: {
        factor: 8,
        lowFrequencyFactor: 1,
        highFrequencyFactor: 4,
        originalContextLength: 8192,
      },
    },
  ],
  ["qwen2", "qwen2", { family: "qwen2", tieEmbeddings: true }],
  ["qwen3", "qwen2", { family: "qwen3", headSize: 24 }],
  ["mistral", "smollm2", { family: "mistral", headSize: 12 }],
];

function modelFor(tokenizer: WritableTokenizer, options: Partial<ModelOptions>): ModelOptions {
  const shape = { layers: 2, width: 64, heads: 4, keyValueHeads: 2, feedForward: 96, contextLength: 64 };
  // Seven rows more than ids, as in tables that were padded to a round number.
  const vocabularySize = tokenizer.vocabularySize + 7;
  return { ...shape, vocabularySize, tieEmbeddings: false, ropeBase: 5000, rmsEpsilon: 1e-5, ...options };
}

/** Weights that differ everywhere, biases and norms included. */
function weightsOf(model: ModelOptions): ParameterSet {
  const parameters = initializeParameters(model, 3);
  for (const { data, shape } of parameters.values())
    if (shape.length === 1)
      for (let i = 0; i < data.length; i++) data[i] = 1 + Math.fround(Math.sin(i + 1) / 3);
  return parameters;
}

async function scratch(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "forager-export-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

async function reopen(path: string) {
  const files = await openModelFiles(path);
  onTestFinished(() => files.close());
  return { ...files, parameters: await files.readParameters(), tokenizer: await files.readTokenizer() };
}

/** The largest distance of any weight, over the largest weight of its tensor. */
function largestError(actual: ParameterSet, expected: ParameterSet): number {
  let worst = 0;
  for (const [name, { data }] of expected) {
    const largest = data.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
    const other = actual.get(name)?.data;
    for (const [i, value] of data.entries())
      worst = Math.max(worst, Math.abs(value - (other?.[i] ?? Number.NaN)) / largest);
  }
  return worst;
}

const text = "<|im_start|>user\nin the 12 rivers  of 日本 naïve 😀\n\n it's<|im_end|>";

describe.each(families)("a model of the family %s", (_, tokenizerName, options) => {
  test("comes back from a GGUF file bit for bit, with its tokenizer", async () => {
    const tokenizer = await goldenTokenizer(tokenizerName);
    const model = modelFor(tokenizer, options);
    const parameters = weightsOf(model);
    const path = join(await scratch(), "model.gguf");
    const names = { name: "tiny", licence: "apache-2.0" };
    const others = await exportGguf(path, { model, parameters, tokenizer, names }, { type: "F32" });
    expect(others).toEqual([]);
    const read = await reopen(path);
    // A Mistral is a Llama in GGUF.
    const { family, ...shape } = model;
    expect(read.model).toEqual(family === "mistral" ? shape : model);
    expect([...read.parameters.keys()]).toEqual([...parameters.keys()]);
    expect(largestError(read.parameters, parameters)).toBe(0);
    expect(read.tokenizer.encode(text)).toEqual(tokenizer.encode(text));
    expect(read.tokenizer.endOfTextId).toBe(tokenizer.endOfTextId);
    expect(read.tokenizer.beginOfTextId).toBe(tokenizer.beginOfTextId);
    expect(read.tokenizer.paddingId).toBe(tokenizer.paddingId);
    expect(read.tokenizer.specialTokens).toEqual(tokenizer.specialTokens);
    expect(read.tokenizer.chat).toEqual(tokenizer.chat);
  });

  test.each(floatTypes)("comes back from a folder with weights %s", async (type) => {
    const tokenizer = await goldenTokenizer(tokenizerName);
    const model = modelFor(tokenizer, options);
    const parameters = weightsOf(model);
    const folder = await scratch();
    await exportHuggingFace(folder, { model, parameters, tokenizer }, { type });
    const read = await reopen(folder);
    expect(read.model).toEqual(model);
    expect(read.dtype).toBe(type);
    const tolerance = { F32: 0, F16: 2 ** -11, BF16: 2 ** -8 }[type];
    expect(largestError(read.parameters, parameters)).toBeLessThanOrEqual(tolerance);
    expect(read.tokenizer.hash).toBe(tokenizer.hash);
    const generation = JSON.parse(await readFile(join(folder, "generation_config.json"), "utf8"));
    expect([generation.eos_token_id].flat()[0]).toBe(tokenizer.endOfTextId);
  });
});

describe("a GGUF file", () => {
  test.each([
    ["F16", 2 ** -11, []],
    ["Q8_0", 1 / 250, []],
    ["Q4_0", 1 / 7, ["token_embd.weight"]],
    ["Q4_1", 1 / 7, ["token_embd.weight"]],
  ] as const)("of type %s stays near the weights", async (type, tolerance, expected) => {
    const tokenizer = await goldenTokenizer("smollm2");
    const model = modelFor(tokenizer, { tieEmbeddings: true });
    const parameters = weightsOf(model);
    const path = join(await scratch(), "model.gguf");
    const exported = { model, parameters, tokenizer, names: { name: "tiny" } };
    const others = await exportGguf(path, exported, { type });
    expect(others.map(({ name }) => name)).toEqual(expected);
    const read = await reopen(path);
    expect(read.dtype).toBe(type);
    expect(largestError(read.parameters, parameters)).toBeLessThan(tolerance);
  });

  test("keeps rows that are no whole blocks as F16, and says which", async () => {
    const tokenizer = await goldenTokenizer("smollm2");
    const model = { ...modelFor(tokenizer, { tieEmbeddings: true }), feedForward: 72 };
    const exported = { model, parameters: weightsOf(model), tokenizer, names: { name: "tiny" } };
    const others = await exportGguf(join(await scratch(), "model.gguf"), exported, { type: "Q8_0" });
    expect(others.map(({ name, type }) => `${name} ${type}`)).toEqual([
      "blk.0.ffn_down.weight F16",
      "blk.1.ffn_down.weight F16",
    ]);
  });

  test("holds the tokenizer of a fresh model", async () => {
    const words = "which river flows through the town of Prague ".repeat(3);
    const options = { vocabularySize: 300, specialTokens: ["<search>", "</search>"] };
    const tokenizer = trainBytePair([words], options);
    const model = { ...modelFor(tokenizer, {}), vocabularySize: tokenizer.vocabularySize };
    const path = join(await scratch(), "model.gguf");
    const exported = { model, parameters: weightsOf(model), tokenizer, names: { name: "tiny" } };
    await exportGguf(path, exported, { type: "F32" });
    const read = await reopen(path);
    const asked = "<search> the town 😀</search>";
    expect(read.tokenizer.encode(asked)).toEqual(tokenizer.encode(asked));
    expect(read.tokenizer.endOfTextId).toBe(tokenizer.endOfTextId);
  });

  test("refuses a tokenizer that it has no name for, and says what works", async () => {
    const tokenizer = await goldenTokenizer("mistral");
    const model = modelFor(tokenizer, {});
    const exported = { model, parameters: weightsOf(model), tokenizer, names: { name: "tiny" } };
    const folder = await scratch();
    const writing = exportGguf(join(folder, "model.gguf"), exported, { type: "F32" });
    await expect(writing).rejects.toThrow(ConfigError);
    await expect(writing).rejects.toThrow("--to hf");
    expect(await readdir(folder)).toEqual([]);
  });
});
