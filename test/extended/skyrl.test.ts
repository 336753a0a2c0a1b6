/**
 * The client against the real SkyRL server on CPU: log-probabilities, losses, gradient norms and updates of four steps as
 * `../shared/skyrl/numerics` recorded them, the probe, a checkpoint, and the adapters in PEFT's layout.
 */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Datum } from "../../src/algorithm/datum.ts";
import type { Loss } from "../../src/algorithm/loss.ts";
import { EmbeddedEngine } from "../../src/engine/embedded-engine.ts";
import { readSafetensors } from "../../src/engine/safetensors.ts";
import { Connection } from "../../src/engine/tinker/connection.ts";
import { probe } from "../../src/engine/tinker/probe.ts";
import { Session } from "../../src/engine/tinker/session.ts";
import { TinkerEngine } from "../../src/engine/tinker/tinker-engine.ts";
import { tinkerOptionsSchema } from "../../src/engine/tinker/tinker-options.ts";
import { readTokenizer } from "../../src/tokenizer/tokenizer-file.ts";
import { processWorld } from "../../src/training/world.ts";
import { type SkyrlServer, skyrlMissing, startSkyrl } from "./skyrl-server.ts";

const sharedFolder = process.env.FORAGER_SHARED ?? join(import.meta.dirname, "../../../shared");
const numerics = join(sharedFolder, "skyrl/numerics");
const missing = skyrlMissing();
const tolerance = 1e-4;

interface Recorded {
  readonly tokens: readonly number[][];
  readonly base_logprobs: readonly number[][];
  readonly steps: readonly Step[];
  readonly greedy_after_ppo: {
    readonly prompt: number[];
    readonly tokens: number[];
    readonly logprobs: number[];
  };
}

interface Step {
  readonly name: string;
  readonly loss_fn: "cross_entropy" | "importance_sampling" | "ppo";
  readonly inputs: readonly {
    readonly weights: number[];
    readonly logprobs?: number[];
    readonly advantages?: number[];
  }[];
  readonly outputs: readonly { readonly elementwise_loss: number[] }[];
  readonly adam: {
    readonly learning_rate: number;
    readonly beta1: number;
    readonly beta2: number;
    readonly eps: number;
    readonly weight_decay: number;
  };
  readonly metrics: Readonly<Record<string, number>>;
  readonly logprobs_after: readonly number[][];
}

describe.skipIf(missing !== undefined)(`SkyRL on CPU${missing === undefined ? "" : ` (${missing})`}`, () => {
  let server: SkyrlServer;
  let scratch: string;
  let recorded: Recorded;
  let engine: TinkerEngine;
  let session: Session;
  const differences: Record<string, number> = {};
  const compare = (name: string, found: number, expected: number): void => {
    differences[name] = Math.max(differences[name] ?? 0, Math.abs(found - expected));
    expect(Math.abs(found - expected)).toBeLessThan(tolerance);
  };
  const compareRows = (
    name: string,
    rows: readonly ArrayLike<number>[],
    expected: readonly number[][],
  ): void => {
    for (const [i, row] of rows.entries())
      for (const [t, value] of Array.from(row).entries()) compare(name, value, expected[i]?.[t] as number);
  };
  const base = join(numerics, "base");

  beforeAll(async () => {
    scratch = await mkdtemp(join(tmpdir(), "forager-numerics-"));
    recorded = JSON.parse(await readFile(join(numerics, "numerics.json"), "utf8")) as Recorded;
    server = await startSkyrl(base, {
      max_lora_adapters: 4,
      max_lora_rank: 4,
      train_micro_batch_size: 8,
      sample_max_num_sequences: 4,
    });
    const options = tinkerOptionsSchema.parse({
      type: "tinker",
      url: server.url,
      profile: "skyrl-jax",
      rank: 4,
    });
    session = await Session.open(new Connection(options, processWorld()), { seed: 7 });
    engine = await TinkerEngine.create({
      session,
      tokenizer: await readTokenizer(base),
      contextLength: 128,
      baseModel: base,
      rank: 4,
      location: { base_model_name_or_path: base, revision: null },
    });
  });
  afterAll(async () => {
    await engine?.close();
    await server?.stop();
    if (scratch) await rm(scratch, { recursive: true, force: true });
    process.stdout.write(`largest differences: ${JSON.stringify(differences)}\n`);
  });

  test("log-probabilities, losses, gradient norms and updates are those that were recorded", async () => {
    const plain = recorded.tokens.map((tokens) =>
      datumOf(
        tokens,
        tokens.slice(1).map(() => 1),
      ),
    );
    compareRows("base log-probabilities", await engine.logprobs(plain), [...recorded.base_logprobs]);
    for (const step of recorded.steps) {
      const report = await engine.forwardBackward(batchOf(recorded, step), lossOf(step));
      compare(`${step.name}: loss`, report.loss, meanLoss(step));
      const { gradientNorm } = await engine.step({
        learningRate: step.adam.learning_rate,
        beta1: step.adam.beta1,
        beta2: step.adam.beta2,
        epsilon: step.adam.eps,
        weightDecay: step.adam.weight_decay,
        maxGradientNorm: 0,
      });
      compare(`${step.name}: gradient norm`, gradientNorm, step.metrics["skyrl.ai/grad_norm"] as number);
      compareRows(`${step.name}: log-probabilities after`, await engine.logprobs(plain), [
        ...step.logprobs_after,
      ]);
    }
  });

  test("a greedy completion is the recorded one, with its log-probabilities", async () => {
    const { prompt, tokens, logprobs } = recorded.greedy_after_ppo;
    const [completion] = await engine.policy().complete([{ text: "", tokens: prompt, seed: 1 }], {
      maxTokens: tokens.length,
      temperature: 0,
      topP: 1,
      topK: 0,
      stop: [],
    });
    expect(completion?.tokens).toEqual(tokens);
    compareRows("greedy log-probabilities", [completion?.logprobs ?? []], [logprobs]);
  });

  test("a checkpoint goes on, and its adapters are PEFT's with the shared matrices", async () => {
    const folder = join(scratch, "checkpoint");
    await engine.save(folder);
    const adapters = await readSafetensors(join(folder, "adapter_model.safetensors"));
    const expected = await readSafetensors(join(numerics, "lora-ppo.safetensors"));
    expect([...adapters.keys()].sort()).toEqual([...expected.keys()].sort());
    for (const [name, { data }] of expected)
      for (const [i, value] of data.entries())
        compare("adapters", adapters.get(name)?.data[i] as number, value);
    const layer = "base_model.model.model.layers.0.";
    const shared = (name: string) => adapters.get(`${layer}${name}.lora_A.weight`)?.data;
    expect(shared("self_attn.k_proj")).toEqual(shared("self_attn.q_proj"));
    expect(shared("mlp.up_proj")).toEqual(shared("mlp.gate_proj"));

    const plain = recorded.tokens.map((tokens) =>
      datumOf(
        tokens,
        tokens.slice(1).map(() => 1),
      ),
    );
    const before = await engine.logprobs(plain);
    const here = await EmbeddedEngine.open(folder, { threads: 1, maxSlots: 2 });
    compareRows(
      "the same adapters in this process",
      await here.logprobs(plain),
      before.map((row) => [...row]),
    );
    await here.close();
    await engine.load(folder);
    expect(await engine.logprobs(plain)).toEqual(before);
  });

  test("the probe finds what the profile says", async () => {
    const verdict = await probe(session, { baseModel: base, rank: 4 }, engine.tokenizer);
    process.stdout.write(`probe: ${JSON.stringify(verdict)}\n`);
    expect(verdict).toMatchObject({ ok: true, maskWithoutEffect: true, reduction: "sequenceMean" });
  });
});

function datumOf(tokens: readonly number[], weights: readonly number[]): Datum {
  return {
    inputs: Int32Array.from(tokens.slice(0, -1)),
    targets: Int32Array.from(tokens.slice(1)),
    weights: Float32Array.from(weights),
  };
}

/** The recorded steps took the mean over sequences of the mean over weights; our sum has it in its weights. */
function batchOf({ tokens }: Recorded, { inputs }: Step): Datum[] {
  return inputs.map(({ weights, logprobs, advantages }, i) => {
    const total = weights.reduce((sum, weight) => sum + weight, 0) * inputs.length;
    return {
      ...datumOf(
        tokens[i] as number[],
        weights.map((weight) => weight / total),
      ),
      ...(logprobs && { logprobs: Float32Array.from(logprobs) }),
      ...(advantages && { advantages: Float32Array.from(advantages) }),
    };
  });
}

function meanLoss({ inputs, outputs }: Step): number {
  const sum = (values: readonly number[] = []): number => values.reduce((a, b) => a + b, 0);
  const means = inputs.map(({ weights }, i) => sum(outputs[i]?.elementwise_loss) / sum(weights));
  return sum(means) / means.length;
}

function lossOf({ loss_fn }: Step): Loss {
  if (loss_fn === "cross_entropy") return { type: "crossEntropy" };
  return loss_fn === "ppo" ? { type: "ppo", clipLow: 0.2, clipHigh: 0.2 } : { type: "importanceSampling" };
}
