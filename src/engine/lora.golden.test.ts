// Adapters against PyTorch and PEFT: test/golden/lora/ holds adapters for two of the other golden models, what PEFT
// computes with them in fp32, and the script that asked it. Both sides sum in different orders, hence the tolerances.
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import type { Datum } from "../algorithm/datum.ts";
import { EmbeddedEngine } from "./embedded-engine.ts";
import type { AdamOptions } from "./engine.ts";
import { readAdapterConfig } from "./lora-files.ts";
import type { ParameterSet } from "./parameters.ts";
import { readSafetensors } from "./safetensors.ts";

interface Golden {
  readonly batch: readonly {
    readonly inputs: readonly number[];
    readonly targets: readonly number[];
    readonly weights: readonly number[];
  }[];
  readonly logprobs: readonly (readonly number[])[];
  readonly loss: number;
  readonly gradientNorm: number;
  readonly gradients: Readonly<
    Record<string, { readonly positions: readonly number[]; readonly entries: readonly number[] }>
  >;
  readonly adam: AdamOptions;
  readonly steps: readonly { readonly loss: number; readonly gradientNorm: number }[];
}

const goldenFolder = (path: string): string =>
  fileURLToPath(new URL(`../../test/golden/${path}`, import.meta.url));
const options = { threads: 1, tokenBudget: 4096, maxSlots: 4 };
const supervised = { type: "crossEntropy" } as const;

/** Seen: 3e-6 on log-probabilities of order 7, 3e-7 of losses and norms, 2e-6 on adapters after three steps. */
const logprobTolerance = 2e-5;
const relative = 1e-5;

/** A step that reveals the gradient g of its first update: p becomes p - g / (|g| + 1). */
const revealing: AdamOptions = {
  learningRate: 1,
  beta1: 0.9,
  beta2: 0.95,
  epsilon: 1,
  weightDecay: 0,
  maxGradientNorm: 0,
};

describe.each([
  ["llama", "engine/untied"],
  ["qwen2", "families/qwen2"],
])("adapters of PEFT for a tiny %s", (variant, base) => {
  let golden: Golden;
  let batch: Datum[];
  let scratch: string;
  let folder: string;
  let engine: EmbeddedEngine;

  beforeAll(async () => {
    golden = JSON.parse(await readFile(join(goldenFolder(`lora/${variant}`), "golden.json"), "utf8"));
    batch = golden.batch.map(({ inputs, targets, weights }) => ({
      inputs: Int32Array.from(inputs),
      targets: Int32Array.from(targets),
      weights: Float32Array.from(weights),
    }));
    scratch = await mkdtemp(join(tmpdir(), "forager-lora-golden-"));
    folder = join(scratch, "adapters");
    await cp(goldenFolder(`lora/${variant}`), folder, { recursive: true });
    const config = join(folder, "adapter_config.json");
    const written = JSON.parse(await readFile(config, "utf8"));
    await writeFile(config, JSON.stringify({ ...written, base_model_name_or_path: goldenFolder(base) }));
  });
  beforeEach(async () => {
    const { lora } = await readAdapterConfig(folder);
    engine = await EmbeddedEngine.adapt(folder, { lora, seed: 1 }, options);
    onTestFinished(() => engine.close());
  });
  afterAll(() => rm(scratch, { recursive: true, force: true }));

  /** The adapters, through the files that `save` writes. */
  const saved = async (name: string): Promise<ParameterSet> => {
    await engine.save(join(scratch, name));
    return readSafetensors(join(scratch, name, "adapter_model.safetensors"));
  };

  test("log-probabilities are PEFT's, merged into the model too", async () => {
    const apart = await engine.logprobs(batch);
    const merged = await EmbeddedEngine.open(folder, options);
    onTestFinished(() => merged.close());
    const together = await merged.logprobs(batch);
    for (const [d, expected] of golden.logprobs.entries()) {
      expectClose(apart[d], expected, logprobTolerance);
      expectClose(together[d], expected, logprobTolerance);
    }
  });

  test("the sampler reports PEFT's log-probabilities", async () => {
    const { inputs } = batch[2] as Datum;
    const sampling = { maxTokens: 8, temperature: 1, topP: 1, topK: 0, stop: [] };
    const context = { text: "", tokens: [...inputs], seed: 1 };
    const [completion] = await engine.policy().complete([context], sampling);
    const tokens = Int32Array.from([...inputs, ...(completion?.tokens ?? [])]);
    const probe = {
      inputs: tokens.slice(0, -1),
      targets: tokens.slice(1),
      weights: new Float32Array(tokens.length - 1).fill(1),
    };
    const [row] = await engine.logprobs([probe]);
    expectClose(completion?.logprobs, row?.slice(inputs.length - 1) ?? [], 1e-4);
  });

  test("loss and gradient are PyTorch's, and only adapters move", async () => {
    const before = await saved("before");
    const report = await engine.forwardBackward(batch, supervised);
    expectClose([report.loss], [golden.loss], relative * golden.loss);
    const { gradientNorm } = await engine.step(revealing);
    expectClose([gradientNorm], [golden.gradientNorm], relative * golden.gradientNorm);
    const after = await saved("after");
    expect([...after.keys()].sort()).toEqual(Object.keys(golden.gradients).sort());
    for (const [name, { positions, entries }] of Object.entries(golden.gradients)) {
      const at = (set: ParameterSet, i: number): number => set.get(name)?.data[i] ?? Number.NaN;
      expectClose(
        positions.map((i) => at(before, i) - at(after, i)),
        entries.map((g) => g / (Math.abs(g) + 1)),
        2e-5,
      );
    }
  });

  test("three clipped AdamW steps give PyTorch's adapters", async () => {
    for (const [i, expected] of golden.steps.entries()) {
      const report = await engine.forwardBackward(batch, supervised);
      const { gradientNorm } = await engine.step(golden.adam);
      expectClose([report.loss], [expected.loss], relative * expected.loss);
      expectClose([gradientNorm], [expected.gradientNorm], relative * expected.gradientNorm);
      if (i === 1) continue;
      const adapters = await saved(`step-${i + 1}`);
      const wanted = await readSafetensors(
        join(goldenFolder(`lora/${variant}`), `after-${i + 1}.safetensors`),
      );
      expect([...adapters.keys()].sort()).toEqual([...wanted.keys()].sort());
      for (const [name, { data }] of wanted) expectClose(adapters.get(name)?.data, data, 1e-4);
    }
  });
});

/** Expects equal lengths and every difference to be at most `tolerance`. */
function expectClose(
  actual: ArrayLike<number> | undefined,
  expected: ArrayLike<number>,
  tolerance: number,
): void {
  expect(actual?.length).toBe(expected.length);
  const distances = Array.from(expected, (value, i) => Math.abs((actual?.[i] as number) - value));
  expect(Math.max(...distances)).toBeLessThanOrEqual(tolerance);
}
