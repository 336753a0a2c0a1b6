/**
 * A model folder between Forager and Hugging Face transformers, both ways. FORAGER_PYTHON names a Python that has
 * torch and transformers; without it these tests are skipped.
 */
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Datum } from "../../src/algorithm/datum.ts";
import { EmbeddedEngine } from "../../src/engine/embedded-engine.ts";
import type { ModelOptions } from "../../src/engine/model-options.ts";
import { trainBytePair } from "../../src/tokenizer/byte-pair-training.ts";
import { readTokenizer } from "../../src/tokenizer/tokenizer-file.ts";

const python = process.env.FORAGER_PYTHON;
const reason = "skipped: FORAGER_PYTHON names no Python with transformers";
const engineOptions = { threads: 1, tokenBudget: 1024, maxSlots: 4 };
/** Both sides compute in fp32 and sum in different orders. */
const tolerance = 1e-4;

const texts = [
  "The river Vltava flows through Prague.",
  "<search> longest river </search> it's naïve 😀 日本\n\n  two  spaces",
  "the river the river the river the river the river the river",
];

interface Answer {
  readonly tokens: readonly number[];
  readonly logprobs: readonly number[];
  readonly text: string;
  readonly greedy: readonly number[];
}

interface Report {
  readonly kind: string;
  readonly unmatched: readonly string[];
  readonly endOfTextIds: readonly (number | null)[];
  readonly paddingIds: readonly (number | null)[];
  readonly answers: readonly Answer[];
}

const llama3 = { factor: 8, lowFrequencyFactor: 1, highFrequencyFactor: 4, originalContextLength: 32 };
const models: readonly (readonly [string, string, Partial<ModelOptions>])[] = [
  ["tied embeddings", "LlamaForCausalLM", { tieEmbeddings: true }],
  ["an output layer", "LlamaForCausalLM", {}],
  ["Llama 3's scaling", "LlamaForCausalLM", { ropeScaling: llama3 }],
  ["the family mistral", "MistralForCausalLM", { family: "mistral", headSize: 12 }],
  ["the family qwen2", "Qwen2ForCausalLM", { family: "qwen2", tieEmbeddings: true }],
  ["the family qwen3", "Qwen3ForCausalLM", { family: "qwen3", headSize: 12 }],
];

const title = python === undefined ? `transformers (${reason})` : "transformers";
describe.skipIf(python === undefined).each(models)(`${title}, a model of %s`, (_, kind, options) => {
  let scratch: string;
  let engine: EmbeddedEngine;
  let report: Report;
  beforeAll(async () => {
    scratch = await mkdtemp(join(tmpdir(), "forager-transformers-"));
    const specialTokens = ["<search>", "</search>"];
    // Whatever the file says, transformers cuts words for a Qwen as Qwen does.
    const tokenizer = kind.startsWith("Qwen")
      ? await readTokenizer(join(import.meta.dirname, "../golden/tokenizer/qwen2"))
      : trainBytePair([...texts, ...texts], { vocabularySize: 320, specialTokens });
    const { vocabularySize } = tokenizer;
    const shape = { layers: 2, width: 32, heads: 4, keyValueHeads: 2, feedForward: 48, vocabularySize };
    const rest = { contextLength: 128, tieEmbeddings: false, ropeBase: 5000, rmsEpsilon: 1e-5 };
    engine = await EmbeddedEngine.create(
      { ...shape, ...rest, ...options },
      { tokenizer, seed: 1 },
      engineOptions,
    );
    await engine.save(join(scratch, "ours"));
    const request = { folder: join(scratch, "ours"), copy: join(scratch, "theirs"), texts };
    report = JSON.parse(await ask(JSON.stringify(request))) as Report;
  });
  afterAll(async () => {
    await engine.close();
    await rm(scratch, { recursive: true, force: true });
  });

  test("opens our folder as that model, with every weight, and knows what ends a text", () => {
    expect(report).toMatchObject({ kind, unmatched: [] });
    const { endOfTextId, paddingId } = engine.tokenizer;
    expect(report.endOfTextIds).toEqual([endOfTextId, endOfTextId]);
    expect(report.paddingIds).toEqual([paddingId, paddingId]);
  });

  test("reads our tokenizer to the same ids and back to the same text", () => {
    for (const [i, text] of texts.entries()) {
      expect(report.answers[i]?.tokens).toEqual(engine.tokenizer.encode(text));
      expect(report.answers[i]?.text).toBe(text);
    }
  });

  test("gives equal log-probabilities and greedy continuations", async () => {
    await expectAnswers(engine, report.answers);
  });

  test("writes a folder that we open to the same model", async () => {
    const opened = await EmbeddedEngine.open(join(scratch, "theirs"), engineOptions);
    try {
      expect(opened.model).toEqual(engine.model);
      for (const text of texts) expect(opened.tokenizer.encode(text)).toEqual(engine.tokenizer.encode(text));
      await expectAnswers(opened, report.answers);
      await opened.save(join(scratch, "again"));
      const again = await EmbeddedEngine.open(join(scratch, "again"), engineOptions);
      await again.close();
      expect(again.tokenizer.hash).toBe(opened.tokenizer.hash);
    } finally {
      await opened.close();
    }
  });
});

async function expectAnswers(engine: EmbeddedEngine, answers: readonly Answer[]): Promise<void> {
  const rows = await engine.logprobs(answers.map(({ tokens }) => toDatum(tokens)));
  for (const [i, { logprobs }] of answers.entries()) {
    expect(rows[i]).toHaveLength(logprobs.length);
    const distances = logprobs.map((value, t) => Math.abs(value - (rows[i]?.[t] as number)));
    expect(Math.max(...distances)).toBeLessThan(tolerance);
  }
  const contexts = answers.map(({ tokens, text }) => ({ text, tokens, seed: 1 }));
  const greedy = { maxTokens: 3, temperature: 0, topP: 1, topK: 0, stop: [] };
  const completions = await engine.policy().complete(contexts, greedy);
  expect(completions.map(({ tokens }) => tokens)).toEqual(answers.map((answer) => answer.greedy));
}

function toDatum(tokens: readonly number[]): Datum {
  return {
    inputs: Int32Array.from(tokens.slice(0, -1)),
    targets: Int32Array.from(tokens.slice(1)),
    weights: new Float32Array(tokens.length - 1).fill(1),
  };
}

function ask(input: string): Promise<string> {
  const script = join(import.meta.dirname, "ask_transformers.py");
  return new Promise((resolve, reject) => {
    const child = execFile(python as string, [script], (error, stdout) => {
      if (error) reject(error);
      else resolve(stdout);
    });
    child.stdin?.end(input);
  });
}
