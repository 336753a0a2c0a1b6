/**
 * Exported models in the programs they were written for: transformers, PEFT, the package gguf, llama.cpp.
 * FORAGER_PYTHON names a Python with torch, transformers, peft and gguf; FORAGER_LLAMA_PYTHON one with llama-cpp-python;
 * FORAGER_ASSETS a folder that holds SmolLM2-135M-Instruct/. What is missing is skipped with a message.
 */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { EmbeddedEngine } from "../../src/engine/embedded-engine.ts";
import { openModelFiles } from "../../src/engine/model-files.ts";
import { trainBytePair } from "../../src/tokenizer/byte-pair-training.ts";
import { renderChat } from "../../src/tokenizer/chat-template.ts";
import { runForTest } from "../run-cli.ts";

const python = process.env.FORAGER_PYTHON;
const llamaPython = process.env.FORAGER_LLAMA_PYTHON;
const asset = join(process.env.FORAGER_ASSETS ?? "", "SmolLM2-135M-Instruct/SmolLM2-135M-Instruct.Q4_1.gguf");
const hasAsset = process.env.FORAGER_ASSETS !== undefined && existsSync(asset);

/** Both sides compute in fp32 and sum in different orders. */
const tolerance = 1e-4;

interface Answer {
  readonly tokens: readonly number[];
  readonly text: string;
  readonly greedy: readonly number[];
}
interface Comparison {
  readonly difference: number;
  readonly unmatched: readonly string[];
  readonly a: readonly Answer[];
  readonly b: readonly Answer[];
  readonly chats: readonly (readonly [string, string])[];
  readonly ends: readonly (readonly [number, number | readonly number[]])[];
}
interface GgufReport {
  readonly fields: Readonly<Record<string, unknown>>;
  readonly tensors: readonly (readonly [string, string, readonly number[], number, number])[];
}
interface LlamaReport {
  readonly answers: readonly Answer[];
  readonly end: number;
  readonly template: string | null;
}

let scratch: string;
const at = (name: string): string => join(scratch, name);
beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), "forager-export-"));
});
afterAll(() => rm(scratch, { recursive: true, force: true }));

async function exported(source: string, name: string, ...words: readonly string[]): Promise<string> {
  const { code, stderr } = await runForTest("export", source, "--out", at(name), ...words);
  expect({ code, stderr }).toMatchObject({ code: 0 });
  return at(name);
}

const texts = [
  "The river Vltava flows through Prague, the capital of",
  "<|im_start|>user\nWho wrote Faust?<|im_end|>\n<|im_start|>assistant\n",
  "12345 67.89 [\n    1,\n    22] it's naïve 😀 日本",
];
const chats = [[{ role: "user", content: "Who wrote Faust?" }]];

const realTitle =
  python === undefined || !hasAsset
    ? "SmolLM2 (skipped: FORAGER_PYTHON and FORAGER_ASSETS are not both set)"
    : "SmolLM2";
describe.skipIf(python === undefined || !hasAsset)(realTitle, () => {
  let engine: EmbeddedEngine;
  beforeAll(async () => {
    engine = await EmbeddedEngine.open(asset, { threads: 2, tokenBudget: 1024, maxSlots: 4 });
  });
  afterAll(() => engine?.close());

  async function ownGreedy(): Promise<readonly number[][]> {
    const contexts = texts.map((text) => ({ text, tokens: engine.tokenizer.encode(text), seed: 1 }));
    const options = { maxTokens: 24, temperature: 0, topP: 1, topK: 0, stop: [] };
    return (await engine.policy().complete(contexts, options)).map(({ tokens }) => [...(tokens ?? [])]);
  }
  const untilEnd = (tokens: readonly number[], end: number): readonly number[] =>
    tokens.includes(end) ? tokens.slice(0, tokens.indexOf(end) + 1) : tokens;

  test("as a folder has the logits, ids, chats and ends of the file it came from", async () => {
    const folder = await exported(asset, "hf", "--to", "hf");
    const source = { folder: join(asset, ".."), file: "SmolLM2-135M-Instruct.Q4_1.gguf" };
    const request = { op: "compare", a: { folder }, b: source, texts, chats };
    const report = await ask<Comparison>(python, request);
    expect(report.difference).toBeLessThan(tolerance);
    expect(report.unmatched).toEqual([]);
    const end = engine.tokenizer.endOfTextId;
    for (const [i, { tokens, text, greedy }] of report.a.entries()) {
      expect(tokens).toEqual(engine.tokenizer.encode(texts[i] as string));
      expect(text).toBe(texts[i]);
      expect(untilEnd(greedy, end)).toEqual((await ownGreedy())[i]);
    }
    const { chat } = engine.tokenizer;
    for (const [i, [ours, theirs]] of report.chats.entries()) {
      expect(ours).toBe(theirs);
      expect(ours).toBe(chat && renderChat(chat, chats[i] ?? [], { addGenerationPrompt: true }));
    }
    expect(report.ends[0]).toEqual([end, end]);
  });

  test("as a GGUF file is the same for transformers and whole for the package gguf", async () => {
    const folder = await exported(asset, "smollm2", "--to", "gguf");
    const file = "SmolLM2-135M-Instruct.Q4_1-F32.gguf";
    const source = { folder: join(asset, ".."), file: "SmolLM2-135M-Instruct.Q4_1.gguf" };
    const request = { op: "compare", a: { folder, file }, b: source, texts, chats };
    const report = await ask<Comparison>(python, request);
    expect(report.difference).toBeLessThan(tolerance);
    expect(report.a).toEqual(report.b);
    const [ours, theirs] = await Promise.all(
      [join(folder, file), asset].map((path) => ask<GgufReport>(python, { op: "gguf", path })),
    );
    expect(ours?.fields).toMatchObject({
      "general.architecture": "llama",
      "general.file_type": 0,
      "llama.block_count": 30,
      "llama.rope.freq_base": 100_000,
      "tokenizer.ggml.pre": "smollm",
      "tokenizer.ggml.tokens": 49_152,
    });
    const shared = Object.keys(ours?.fields ?? {}).filter((key) => key.startsWith("tokenizer."));
    for (const key of shared)
      expect([key, ours?.fields[key]]).toEqual([key, theirs?.fields[key] ?? ours?.fields[key]]);
    const expected = new Map(theirs?.tensors.map((tensor) => [tensor[0], tensor]));
    expect(ours?.tensors).toHaveLength(expected.size);
    for (const [name, , shape, sum, magnitude] of ours?.tensors ?? []) {
      const [, , otherShape, otherSum, otherMagnitude] = expected.get(name) ?? [];
      expect([name, shape]).toEqual([name, otherShape]);
      expect(Math.abs(sum - (otherSum ?? Number.NaN))).toBeLessThan(1e-6 * magnitude);
      expect(magnitude / (otherMagnitude ?? Number.NaN)).toBeCloseTo(1, 9);
    }
  });

  const llamaTitle =
    llamaPython === undefined
      ? "continues in llama.cpp (skipped: FORAGER_LLAMA_PYTHON is not set)"
      : "continues in llama.cpp as here";
  test.skipIf(llamaPython === undefined)(llamaTitle, async () => {
    const greedy = await ownGreedy();
    const end = engine.tokenizer.endOfTextId;
    for (const type of ["f32", "f16", "q8_0"]) {
      const folder = await exported(asset, `llama-${type}`, "--to", "gguf", "--dtype", type);
      const path = join(folder, `SmolLM2-135M-Instruct.Q4_1-${type.toUpperCase()}.gguf`);
      const report = await ask<LlamaReport>(llamaPython, { op: "llama", path, texts });
      expect(report.end).toBe(end);
      expect(report.template).toBe(engine.tokenizer.chat?.template);
      for (const [i, answer] of report.answers.entries()) {
        expect([type, answer.tokens]).toEqual([type, engine.tokenizer.encode(texts[i] as string)]);
        // Eight bits change the weights; the first tokens still agree.
        const count = type === "q8_0" ? 4 : 24;
        expect([type, untilEnd(answer.greedy, end).slice(0, count)]).toEqual([
          type,
          greedy[i]?.slice(0, count),
        ]);
      }
    }
  });
});

const smallTitle =
  python === undefined ? "a small model (skipped: FORAGER_PYTHON is not set)" : "a small model";
describe.skipIf(python === undefined)(smallTitle, () => {
  const asked = ["The river Vltava flows through Prague.", "<search> longest river </search> it's 日本"];
  let base: string;
  beforeAll(async () => {
    const specialTokens = ["<search>", "</search>"];
    const tokenizer = trainBytePair([...asked, ...asked], { vocabularySize: 320, specialTokens });
    const model = {
      vocabularySize: tokenizer.vocabularySize,
      layers: 2,
      width: 64,
      heads: 4,
      keyValueHeads: 2,
      feedForward: 96,
      contextLength: 128,
      tieEmbeddings: false,
      ropeBase: 5000,
      rmsEpsilon: 1e-5,
    };
    const engine = await EmbeddedEngine.create(
      model,
      { tokenizer, seed: 1 },
      { threads: 1, tokenBudget: 512, maxSlots: 2 },
    );
    base = at("base");
    await engine.save(base);
    await engine.close();
  });

  test("with adapters of PEFT: handed on alone and merged they compute the same", async () => {
    await ask(python, { op: "adapters", base, out: at("adapters") });
    const alone = await exported(at("adapters"), "peft", "--to", "peft");
    const merged = await exported(at("adapters"), "merged", "--to", "merged");
    const theirs = { folder: base, adapters: alone };
    const request = { op: "compare", a: { folder: merged }, b: theirs, texts: asked };
    const report = await ask<Comparison>(python, request);
    expect(report.difference).toBeLessThan(tolerance);
    expect(report.a).toEqual(report.b);
    const plain = await ask<Comparison>(python, {
      op: "compare",
      a: { folder: base },
      b: theirs,
      texts: asked,
    });
    expect(plain.difference).toBeGreaterThan(0.1);
    const refused = await runForTest("export", at("adapters"), "--to", "hf", "--out", at("x"));
    expect(refused.stderr).toContain("use --to merged for the whole model, --to peft for the adapters alone");
  });

  test("with adapters as a GGUF file holds the merged weights", async () => {
    const folder = await exported(at("adapters"), "merged-gguf", "--to", "gguf");
    const [ours, merged] = await Promise.all([openModelFiles(folder), openModelFiles(at("merged"))]);
    try {
      expect(await ours.readParameters()).toEqual(await merged.readParameters());
    } finally {
      await Promise.all([ours.close(), merged.close()]);
    }
  });

  const llamaTitle =
    llamaPython === undefined
      ? "continues in llama.cpp (skipped: FORAGER_LLAMA_PYTHON is not set)"
      : "continues in llama.cpp as in transformers";
  test.skipIf(llamaPython === undefined)(llamaTitle, async () => {
    const folder = await exported(base, "gguf", "--to", "gguf");
    const hf = await exported(base, "again", "--to", "hf");
    const request = { op: "compare", a: { folder: hf }, b: { folder: base }, texts: asked };
    const { a } = await ask<Comparison>(python, request);
    const path = join(folder, "base-F32.gguf");
    const { answers } = await ask<LlamaReport>(llamaPython, { op: "llama", path, texts: asked });
    expect(answers).toEqual(a);
  });
});

function ask<T>(interpreter: string | undefined, request: object): Promise<T> {
  const script = join(import.meta.dirname, "ask_export.py");
  return new Promise((resolve, reject) => {
    const child = execFile(interpreter as string, [script], { maxBuffer: 1 << 26 }, (error, stdout) => {
      if (error) reject(error);
      else resolve(JSON.parse(stdout.trimEnd().split("\n").at(-1) as string) as T);
    });
    child.stdin?.end(JSON.stringify(request));
  });
}
