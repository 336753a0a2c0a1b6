/**
 * A checkpoint of adapters as it lies in a run, opened by PEFT. FORAGER_PYTHON names a Python that has torch,
 * transformers and peft; without it these tests are skipped.
 */
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Datum } from "../../src/algorithm/datum.ts";
import { EmbeddedEngine } from "../../src/engine/embedded-engine.ts";
import { tinyEngine, tinyTokenizer } from "../../src/engine/engine.fixture.ts";
import { loraTargets } from "../../src/engine/lora-options.ts";
import type { ModelOptions } from "../../src/engine/model-options.ts";

const python = process.env.FORAGER_PYTHON;
const title = python === undefined ? "PEFT (skipped: FORAGER_PYTHON names no Python with peft)" : "PEFT";
/** Both sides compute in fp32 and sum in different orders. */
const tolerance = 1e-4;
const texts = ["The river Vltava flows through the capital.", "Which river is the longest? 😀"];

interface Report {
  readonly rank: number;
  readonly alpha: number;
  readonly targets: readonly string[];
  readonly smallestNorm: number;
  readonly adapters: number;
  readonly answers: readonly { readonly tokens: readonly number[]; readonly logprobs: readonly number[] }[];
}

describe
  .skipIf(python === undefined)
  .each<Partial<ModelOptions>>([{ tieEmbeddings: true }, { family: "qwen2" }, { family: "qwen3" }])(
  `${title}, a checkpoint beside a model with %j`,
  (model) => {
    let scratch: string;
    let engine: EmbeddedEngine;
    beforeAll(async () => {
      scratch = await mkdtemp(join(tmpdir(), "forager-peft-"));
      const base = await tinyEngine({ model });
      await base.save(join(scratch, "base"));
      await base.close();
      const lora = { rank: 3, alpha: 7, targets: [...loraTargets] };
      const options = { threads: 1, tokenBudget: 1024, maxSlots: 4 };
      engine = await EmbeddedEngine.adapt(join(scratch, "base"), { lora, seed: 1 }, options);
      for (let i = 0; i < 3; i++) {
        await engine.forwardBackward(
          texts.map((text) => toDatum(tinyTokenizer.encode(text))),
          {
            type: "crossEntropy",
          },
        );
        await engine.step({ ...adam, learningRate: 0.05 });
      }
      await engine.save(join(scratch, "checkpoint"));
    });
    afterAll(async () => {
      await engine.close();
      await rm(scratch, { recursive: true, force: true });
    });

    test("opens with the same tokens and log-probabilities", async () => {
      const request = { folder: join(scratch, "checkpoint"), texts };
      const report = JSON.parse(await ask(JSON.stringify(request))) as Report;
      expect(report).toMatchObject({ rank: 3, alpha: 7, targets: [...loraTargets].sort(), adapters: 14 });
      expect(report.smallestNorm).toBeGreaterThan(0.1);
      for (const [i, { tokens, logprobs }] of report.answers.entries()) {
        expect(tokens).toEqual(tinyTokenizer.encode(texts[i] as string));
        const [row] = await engine.logprobs([toDatum(tokens)]);
        for (const [t, value] of logprobs.entries())
          expect(Math.abs(value - (row?.[t] as number))).toBeLessThan(tolerance);
      }
    });
  },
);

const adam = { beta1: 0.9, beta2: 0.95, epsilon: 1e-8, weightDecay: 0, maxGradientNorm: 1 };

function toDatum(tokens: readonly number[]): Datum {
  return {
    inputs: Int32Array.from(tokens.slice(0, -1)),
    targets: Int32Array.from(tokens.slice(1)),
    weights: new Float32Array(tokens.length - 1).fill(1),
  };
}

function ask(input: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const script = join(import.meta.dirname, "ask_peft.py");
    const child = execFile(python as string, [script], { maxBuffer: 1 << 26 }, (error, stdout, stderr) => {
      if (error) reject(new Error(stderr));
      else resolve(stdout);
    });
    child.stdin?.end(input);
  });
}
