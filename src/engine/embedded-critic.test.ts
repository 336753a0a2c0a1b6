// What a critic must do beside the policy it belongs to. That its numbers are right is for critic.golden.test.ts.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { ValueDatum } from "../algorithm/datum.ts";
import type { ValueLoss } from "../algorithm/loss.ts";
import { valueDatumLoss } from "../algorithm/token-loss.ts";
import { CheckpointError } from "../errors.ts";
import { random } from "../shared/random.ts";
import { EmbeddedEngine } from "./embedded-engine.ts";
import { randomDatum, tinyEngine } from "./engine.fixture.ts";
import type { AdamOptions, Critic } from "./engine.ts";
import { loraOptionsSchema } from "./lora-options.ts";
import { readSafetensors } from "./safetensors.ts";

const loss: ValueLoss = { type: "value", clip: 0.5 };
const adam: AdamOptions = {
  learningRate: 0.01,
  beta1: 0.9,
  beta2: 0.95,
  epsilon: 1e-8,
  weightDecay: 0,
  maxGradientNorm: 1,
};

const batch: readonly ValueDatum[] = [9, 4, 30, 17].map((length, seed) => {
  const { inputs, weights } = randomDatum(length, seed);
  const chance = random(seed, "returns");
  return {
    inputs,
    weights,
    values: new Float32Array(length),
    returns: Float32Array.from({ length }, () => chance.normal()),
  };
});
const policyBatch = [randomDatum(9, 0), randomDatum(30, 2)];

let scratch: string;
let folders = 0;
const opened: { close(): Promise<void> }[] = [];
beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), "forager-critic-"));
});
afterEach(async () => {
  for (const part of opened.splice(0).reverse()) await part.close();
});
afterAll(async () => await rm(scratch, { recursive: true, force: true }));

async function setUp(
  trunk: "own" | "shared",
  setting: Parameters<typeof tinyEngine>[0] = {},
): Promise<{ engine: EmbeddedEngine; critic: Critic }> {
  const engine = await tinyEngine(setting);
  const critic = await engine.critic({ trunk });
  opened.push(engine, critic);
  return { engine, critic };
}

async function learn(critic: Critic, options: Partial<AdamOptions> = {}): Promise<{ loss: number }> {
  const report = await critic.forwardBackward(batch, loss);
  await critic.step({ ...adam, ...options });
  return report;
}

async function saved(part: { save(folder: string): Promise<void> }): Promise<string> {
  const folder = await mkdtemp(join(scratch, `${++folders}-`));
  await part.save(folder);
  return folder;
}

describe.each(["own", "shared"] as const)("a critic with trunk: %s", (trunk) => {
  test("says 0 everywhere when it is fresh", async () => {
    const { critic } = await setUp(trunk);
    expect(await critic.values(batch)).toEqual(batch.map(({ inputs }) => new Float32Array(inputs.length)));
    expect(await critic.values([])).toEqual([]);
  });

  test("a datum's values do not depend on its company, nor on how batches are cut", async () => {
    const { critic } = await setUp(trunk);
    for (let i = 0; i < 3; i++) await learn(critic);
    const together = await critic.values(batch);
    const { critic: frugal } = await setUp(trunk, { options: { tokenBudget: 32 } });
    await frugal.load(await saved(critic));
    for (const [i, datum] of batch.entries())
      for (const other of [critic, frugal]) {
        const [alone] = await other.values([datum]);
        for (const [t, value] of (alone as Float32Array).entries())
          expect(value).toBeCloseTo(together[i]?.[t] as number, 5);
      }
  });

  test("reports the values of what has a weight, and their loss", async () => {
    const { critic } = await setUp(trunk);
    await learn(critic);
    const values = await critic.values(batch);
    const report = await critic.forwardBackward(batch, loss);
    let sum = 0;
    for (const [i, datum] of batch.entries()) {
      sum += valueDatumLoss(loss, datum, values[i] as Float32Array).loss;
      for (const [t, value] of (report.values[i] as Float32Array).entries())
        expect(value).toBeCloseTo(datum.weights[t] === 0 ? 0 : (values[i]?.[t] as number), 5);
    }
    expect(report.loss / sum).toBeCloseTo(1, 4);
  });

  test("learns, and data without any weight teach it nothing", async () => {
    const { critic } = await setUp(trunk);
    const first = await learn(critic);
    for (let i = 0; i < 10; i++) await learn(critic);
    expect((await critic.forwardBackward(batch, loss)).loss).toBeLessThan(0.95 * first.loss);
    await critic.step({ ...adam, learningRate: 0 });
    const before = await critic.values(batch);
    const silent = batch.map((datum) => ({ ...datum, weights: new Float32Array(datum.weights.length) }));
    expect((await critic.forwardBackward(silent, loss)).loss).toBe(0);
    expect(await critic.step(adam)).toEqual({ gradientNorm: 0 });
    // Moments move it on without a gradient; a critic that never learned stays where it is.
    const { critic: fresh } = await setUp(trunk);
    await fresh.forwardBackward(silent, loss);
    await fresh.step(adam);
    expect(await fresh.values(batch)).toEqual(before.map(({ length }) => new Float32Array(length)));
  });

  test("gradients add up: two halves make the whole, up to the order of sums", async () => {
    const [{ critic: whole }, { critic: halves }] = [await setUp(trunk), await setUp(trunk)];
    await whole.forwardBackward(batch, loss);
    await halves.forwardBackward(batch.slice(0, 2), loss);
    await halves.forwardBackward(batch.slice(2), loss);
    const [one, two] = [await whole.step(adam), await halves.step(adam)];
    expect(two.gradientNorm / one.gradientNorm).toBeCloseTo(1, 5);
  });

  test("what was saved goes on bit for bit, optimiser included", async () => {
    const { critic } = await setUp(trunk);
    for (let i = 0; i < 3; i++) await learn(critic);
    const { critic: other } = await setUp(trunk);
    await other.forwardBackward(batch, loss);
    await other.load(await saved(critic));
    for (let i = 0; i < 2; i++) expect(await learn(other)).toEqual(await learn(critic));
    expect(await other.values(batch)).toEqual(await critic.values(batch));
  });

  test("a critic of another model or another trunk is refused, and nothing changes", async () => {
    const { critic } = await setUp(trunk);
    await learn(critic);
    const before = await critic.values(batch);
    const others = [
      await setUp(trunk, { model: { width: 32 } }),
      await setUp(trunk === "own" ? "shared" : "own"),
    ];
    for (const other of others) {
      const folder = await saved(other.critic);
      await expect(critic.load(folder)).rejects.toThrow(CheckpointError);
      await expect(critic.load(folder)).rejects.toThrow("use a critic of the same model");
    }
    expect(await critic.values(batch)).toEqual(before);
  });
});

test("a trunk of its own starts from the policy's weights and leaves them alone", async () => {
  const { engine, critic } = await setUp("own");
  const before = await engine.logprobs(policyBatch);
  for (let i = 0; i < 2; i++) await learn(critic);
  expect(await engine.logprobs(policyBatch)).toEqual(before);
  expect(await engine.step(adam)).toEqual({ gradientNorm: 0 });
  const values = await critic.values(batch);
  await engine.forwardBackward(policyBatch, { type: "crossEntropy" });
  await engine.step(adam);
  expect(await critic.values(batch)).toEqual(values);
});

test("a shared trunk learns in the engine's step, unless the head is taught alone", async () => {
  const { engine, critic } = await setUp("shared");
  await learn(critic);
  // The head was 0 in that first pass, so that nothing flowed through it.
  expect(await engine.step(adam)).toEqual({ gradientNorm: 0 });
  await critic.forwardBackward(batch, loss, "head");
  expect((await critic.step(adam)).gradientNorm).toBeGreaterThan(0);
  expect(await engine.step(adam)).toEqual({ gradientNorm: 0 });
  const [values, logprobs] = [await critic.values(batch), await engine.logprobs(policyBatch)];
  await critic.forwardBackward(batch, loss);
  expect((await engine.step(adam)).gradientNorm).toBeGreaterThan(0);
  expect(await critic.values(batch)).not.toEqual(values);
  expect(await engine.logprobs(policyBatch)).not.toEqual(logprobs);
});

test("beside adapters a critic copies the adapters alone, and what is frozen stays", async () => {
  const base = await saved((await setUp("own")).engine);
  const lora = loraOptionsSchema.parse({ rank: 3, alpha: 6 });
  const engine = await EmbeddedEngine.adapt(
    base,
    { lora, seed: 1 },
    { threads: 1, tokenBudget: 64, maxSlots: 4 },
  );
  const critic = await engine.critic({ trunk: "own" });
  opened.push(engine, critic);
  const before = await engine.logprobs(policyBatch);
  const first = await learn(critic);
  for (let i = 0; i < 10; i++) await learn(critic);
  expect((await critic.forwardBackward(batch, loss)).loss).toBeLessThan(0.95 * first.loss);
  expect(await engine.logprobs(policyBatch)).toEqual(before);
  const names = [...(await readSafetensors(join(await saved(critic), "critic.safetensors"))).keys()];
  expect(names.filter((name) => !/\.lora_[AB]\.weight$/.test(name))).toEqual([
    "value_head.weight",
    "value_head.bias",
  ]);
});
