/**
 * GRPO on the real SkyRL server on CPU with its random Qwen3 of 3.4 million parameters. The reward is the share of sampled ids in
 * the lower half of the vocabulary, which random weights draw half of the time.
 */
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Datum } from "../../src/algorithm/datum.ts";
import { Connection } from "../../src/engine/tinker/connection.ts";
import { Session } from "../../src/engine/tinker/session.ts";
import { TinkerEngine } from "../../src/engine/tinker/tinker-engine.ts";
import { tinkerOptionsSchema } from "../../src/engine/tinker/tinker-options.ts";
import { readTokenizer } from "../../src/tokenizer/tokenizer-file.ts";
import { processWorld } from "../../src/training/world.ts";
import { type SkyrlServer, skyrlMissing, startSkyrl } from "./skyrl-server.ts";

const missing = skyrlMissing();

describe.skipIf(missing !== undefined)(`GRPO on SkyRL${missing === undefined ? "" : ` (${missing})`}`, () => {
  const base = join(process.env.FORAGER_SKYRL ?? "", "proj", "tiny-qwen3");
  let server: SkyrlServer;
  beforeAll(async () => {
    server = await startSkyrl(base, {
      max_lora_adapters: 4,
      max_lora_rank: 8,
      train_micro_batch_size: 32,
      sample_max_num_sequences: 32,
    });
  });
  afterAll(() => server?.stop());

  test.each([1, 2, 3])("a reward that can be learnt is learnt, seed %i", async (seed) => {
    const { rewards, steps } = await learn(server.url, base, seed);
    process.stdout.write(`seed ${seed}: ${rewards.map((reward) => reward.toFixed(3)).join(" ")}\n`);
    expect(rewards[0]).toBeLessThanOrEqual(0.6);
    expect(rewards.at(-1)).toBeGreaterThanOrEqual(0.9);
    expect(steps).toBeLessThanOrEqual(60);
  });
});

function datumOf(tokens: readonly number[], weights: readonly number[]): Datum {
  return {
    inputs: Int32Array.from(tokens.slice(0, -1)),
    targets: Int32Array.from(tokens.slice(1)),
    weights: Float32Array.from(weights),
  };
}

/** GRPO until a step's mean reward is 0.95, or 60 steps are over. */
async function learn(url: string, base: string, seed: number) {
  const options = tinkerOptionsSchema.parse({
    type: "tinker",
    url,
    profile: "skyrl-jax",
    rank: 8,
    downloadAdapters: false,
  });
  const session = await Session.open(new Connection(options, processWorld()), { seed });
  const tokenizer = await readTokenizer(base);
  const location = { base_model_name_or_path: base, revision: null };
  const engine = await TinkerEngine.create({
    session,
    tokenizer,
    contextLength: 128,
    baseModel: base,
    rank: 8,
    location,
  });
  const rewards: number[] = [];
  const prompts = [
    [295, 296, 275],
    [75, 79, 82],
    [10, 281, 14],
    [90, 311, 223],
  ];
  try {
    while (rewards.length < 60 && (rewards.at(-1) ?? 0) < 0.95) {
      const step = rewards.length;
      const contexts = prompts.flatMap((tokens, p) =>
        Array.from({ length: 8 }, (_, g) => ({
          text: "",
          tokens,
          seed: 1000 * seed + 100 * step + 10 * p + g,
        })),
      );
      const completions = await engine
        .policy()
        .complete(contexts, { maxTokens: 8, temperature: 1, topP: 1, topK: 0, stop: [] });
      const earned = completions.map(
        ({ tokens = [] }) => tokens.filter((id) => id < 512).length / tokens.length,
      );
      rewards.push(earned.reduce((a, b) => a + b, 0) / earned.length);
      const groups = prompts.map((_, p) => earned.slice(8 * p, 8 * p + 8));
      const batch = completions.map((completion, i): Datum => {
        const group = groups[Math.floor(i / 8)] as number[];
        const mean = group.reduce((a, b) => a + b, 0) / group.length;
        const deviation = Math.sqrt(group.reduce((a, b) => a + (b - mean) ** 2, 0) / group.length) + 1e-6;
        const prompt = contexts[i]?.tokens ?? [];
        const sampled = completion.tokens ?? [];
        const whole = [...prompt, ...sampled];
        const isSampled = whole.slice(1).map((_, t) => (t + 1 < prompt.length ? 0 : 1));
        const advantage = ((earned[i] as number) - mean) / deviation;
        return {
          ...datumOf(
            whole,
            isSampled.map((one) => one / (sampled.length * completions.length)),
          ),
          logprobs: Float32Array.from(isSampled, (one, t) =>
            one ? (completion.logprobs?.[t + 1 - prompt.length] ?? 0) : 0,
          ),
          advantages: Float32Array.from(isSampled, (one) => one * advantage),
        };
      });
      await engine.forwardBackward(batch, { type: "ppo", clipLow: 0.2, clipHigh: 0.28 });
      await engine.step({
        learningRate: 0.003,
        beta1: 0.9,
        beta2: 0.95,
        epsilon: 1e-8,
        weightDecay: 0,
        maxGradientNorm: 0,
      });
    }
    return { rewards, steps: rewards.length };
  } finally {
    await engine.close();
  }
}
