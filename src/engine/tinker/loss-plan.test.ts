/** Our plain sums, whatever a server divides by: gradients and updates equal those of the embedded engine. */
import { describe, expect, onTestFinished, test } from "vitest";
import type { Datum } from "../../algorithm/datum.ts";
import type { Loss } from "../../algorithm/loss.ts";
import { random } from "../../shared/random.ts";
import { randomDatum, tinyEngine } from "../engine.fixture.ts";
import type { ProfileName } from "./profiles.ts";
import { openTinkerEngine } from "./tinker-engine.fixture.ts";
import { startTinkerServer } from "./tinker-server.fixture.ts";

const adam = {
  learningRate: 0.01,
  beta1: 0.9,
  beta2: 0.95,
  epsilon: 1e-3,
  weightDecay: 0,
  maxGradientNorm: 0,
};
const losses: readonly Loss[] = [
  { type: "crossEntropy" },
  { type: "importanceSampling" },
  { type: "ppo", clipLow: 0.2, clipHigh: 0.28 },
  { type: "ppo", clipLow: 0.2, clipHigh: 0.2, kl: { estimator: "k3", coefficient: 0.1 } },
];
const profiles: readonly ProfileName[] = ["forager", "skyrl-jax", "skyrl-fsdp", "verl-tinker"];

/** What was sampled lies near what is computed, so that some ratios are within their bounds and some beyond. */
async function policyBatch(): Promise<Datum[]> {
  const engine = await tinyEngine();
  const batch = [12, 5, 9, 20].map((length, seed) => randomDatum(length, seed));
  const rows = await engine.logprobs(batch);
  await engine.close();
  return batch.map((datum, d) => {
    const chance = random(d, "policy");
    const near = (spread: number) =>
      Float32Array.from(rows[d] as Float32Array, (value) => value + spread * (chance.next() - 0.5));
    return {
      ...datum,
      logprobs: near(0.8),
      referenceLogprobs: near(0.4),
      advantages: Float32Array.from(datum.targets, () => chance.next() - 0.4),
    };
  });
}

describe.each(profiles)("on %s", (profile) => {
  test.each(losses)("%j is the plain sum", async (loss) => {
    const batch = await policyBatch();
    const embedded = await tinyEngine();
    const { url } = await startTinkerServer({ profile });
    const remote = await openTinkerEngine(url, { profile });
    onTestFinished(async () => {
      await embedded.close();
      await remote.close();
    });
    const expected = await embedded.forwardBackward(batch, loss);
    const found = await remote.forwardBackward(batch, loss);
    expect(found.loss / expected.loss).toBeCloseTo(1, 4);
    const norm = (await embedded.step(adam)).gradientNorm;
    expect((await remote.step(adam)).gradientNorm / norm).toBeCloseTo(1, 4);
    const rows = await embedded.logprobs(batch);
    for (const [d, row] of (await remote.logprobs(batch)).entries())
      for (const [t, value] of row.entries())
        expect(Math.abs(value - (rows[d]?.[t] as number))).toBeLessThan(1e-4);
  });
});

test("a server that averages over the sequences of a step takes one batch a step", async () => {
  const { url } = await startTinkerServer({ profile: "skyrl-jax" });
  const engine = await openTinkerEngine(url, { profile: "skyrl-jax" });
  onTestFinished(() => engine.close());
  const batch = await policyBatch();
  await engine.forwardBackward(batch, { type: "importanceSampling" });
  await expect(engine.forwardBackward(batch, { type: "importanceSampling" })).rejects.toThrow(
    "one step has one batch",
  );
});
