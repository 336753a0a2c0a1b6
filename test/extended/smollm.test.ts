/**
 * A real model: SmolLM2-135M-Instruct as a GGUF file (Q4_1, embeddings Q8_0) against Hugging Face transformers on the
 * same file. FORAGER_ASSETS names a folder that holds SmolLM2-135M-Instruct/, FORAGER_PYTHON a Python with torch,
 * transformers and gguf; without both these tests are skipped.
 */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { EmbeddedEngine } from "../../src/engine/embedded-engine.ts";
import { renderChat } from "../../src/tokenizer/chat-template.ts";
import { runForTest } from "../run-cli.ts";

const python = process.env.FORAGER_PYTHON;
const folder = join(process.env.FORAGER_ASSETS ?? "", "SmolLM2-135M-Instruct");
const file = "SmolLM2-135M-Instruct.Q4_1.gguf";
const isThere = python !== undefined && existsSync(join(folder, file));
const title = isThere ? "SmolLM2" : "SmolLM2 (skipped: FORAGER_PYTHON and FORAGER_ASSETS are not both set)";

/** Both sides compute in fp32 and sum in different orders; seen: 4e-6 over 842 tokens. */
const relative = 1e-4;

const texts = [
  "The river Vltava flows through Prague, the capital of",
  "<|im_start|>user\nWho wrote Faust?<|im_end|>\n<|im_start|>assistant\n",
  "def fibonacci(n):\n    if n < 2:\n        return n\n",
  `${"Which of these rivers is longer? ".repeat(60)}Answer:`,
];
const nasty = [
  "Hello, world!",
  "😀 👩‍👩‍👧‍👦 🇫🇷 naïve café",
  "日本語のテスト 한국어 中文，",
  "for (let i = 0; i < 10; i++) {\n\tconsole.log(`i`);\n}",
  "  two  spaces   three \n\n\n x",
  "12345 67.89 1st ½",
  "[\n    1,\n    22]",
  "<|im_start|>system<|im_end|> <|endoftext|><file_sep>x",
  "x\u00a0y\u2003z\u200b \u0085 \ufeff",
  "it's we'll IT'S ’s",
];
/** Where it matters that digits, ½ among them, stand alone: spaces before them go apart. */
const cutAtDigits = ["12345 67.89 1st ½", "[\n    1,\n    22]"];
const chats = [
  [{ role: "user", content: "Who wrote Faust?" }],
  [
    { role: "system", content: "Be brief." },
    { role: "user", content: "Hi 😀" },
    { role: "assistant", content: "Hello." },
    { role: "user", content: "Bye" },
  ],
];

interface Report {
  readonly parameters: number;
  readonly answers: readonly {
    readonly tokens: readonly number[];
    readonly logprobs: readonly number[];
    readonly last: readonly number[];
    readonly greedy: readonly number[];
  }[];
  readonly nasty: readonly (readonly number[])[];
  readonly imported: readonly (readonly number[])[];
  readonly chats: readonly string[];
}

describe.skipIf(!isThere)(title, () => {
  let engine: EmbeddedEngine;
  let report: Report;
  beforeAll(async () => {
    report = JSON.parse(await ask(JSON.stringify({ folder, file, texts, nasty, chats }))) as Report;
    engine = await EmbeddedEngine.open(join(folder, file), { threads: 2, tokenBudget: 2048, maxSlots: 4 });
  });
  afterAll(() => engine?.close());

  test("has as many parameters as for transformers", () => {
    expect(engine.parameterCount).toBe(report.parameters);
  });

  test("gives equal log-probabilities, at every token of each text and over all tokens after it", async () => {
    const rows = await engine.logprobs(report.answers.map(({ tokens }) => toDatum(tokens)));
    let worst = 0;
    for (const [i, { logprobs }] of report.answers.entries())
      for (const [t, value] of logprobs.entries())
        worst = Math.max(worst, Math.abs(value - (rows[i]?.[t] as number)) / Math.max(1, Math.abs(value)));
    expect(worst).toBeLessThan(relative);
    for (const { tokens, last } of report.answers.slice(0, 3)) {
      const probes = Array.from({ length: 64 }, (_, i) => Math.floor((i * last.length) / 64));
      const values = await engine.logprobs(probes.map((probe) => toDatum([...tokens, probe])));
      for (const [i, probe] of probes.entries()) {
        const expected = last[probe] as number;
        expect(Math.abs((values[i]?.at(-1) as number) / expected - 1)).toBeLessThan(relative);
      }
    }
  });

  test("continues greedily by the same 32 tokens", async () => {
    const options = { maxTokens: 32, temperature: 0, topP: 1, topK: 0, stop: [] };
    for (const { tokens, greedy } of report.answers) {
      const [completion] = await engine.policy().complete([{ text: "", tokens, seed: 1 }], options);
      const end = greedy.indexOf(engine.tokenizer.endOfTextId);
      expect(completion?.tokens).toEqual(end === -1 ? greedy : greedy.slice(0, end + 1));
    }
  });

  test("tokenises nasty texts alike; transformers alone forgets that digits stand apart", () => {
    expect(nasty.map((text) => engine.tokenizer.encode(text))).toEqual(report.nasty);
    for (const [i, ids] of report.nasty.entries()) {
      if (cutAtDigits.includes(nasty[i] as string)) expect(report.imported[i]).not.toEqual(ids);
      else expect(report.imported[i]).toEqual(ids);
      expect(engine.tokenizer.decode(ids)).toBe(nasty[i]);
    }
  });

  test("renders chats alike", () => {
    const { chat } = engine.tokenizer;
    const options = { addGenerationPrompt: true };
    expect(chats.map((messages) => chat && renderChat(chat, messages, options))).toEqual(report.chats);
  });
});

describe.skipIf(!isThere)(`${title} on the command line`, () => {
  test("is described from its header", async () => {
    const { json } = await runForTest("models", "info", join(folder, file), "--json");
    expect(json).toEqual({
      family: "llama",
      parameters: 134_515_008,
      vocabulary: 49_152,
      context: 8192,
      dtype: "Q4_1",
      tokenizer: "BPE",
      bytes: 98_362_432,
    });
  });
});

function toDatum(tokens: readonly number[]) {
  return {
    inputs: Int32Array.from(tokens.slice(0, -1)),
    targets: Int32Array.from(tokens.slice(1)),
    weights: new Float32Array(tokens.length - 1).fill(1),
  };
}

function ask(input: string): Promise<string> {
  const script = join(import.meta.dirname, "ask_gguf.py");
  return new Promise((resolve, reject) => {
    const child = execFile(python as string, [script], { maxBuffer: 1 << 28 }, (error, stdout) => {
      if (error) reject(error);
      else resolve(stdout);
    });
    child.stdin?.end(input);
  });
}
