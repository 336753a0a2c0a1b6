import { describe, expect, test } from "vitest";
import type { Minibatch } from "../algorithm/minibatch.ts";
import type { LossReport } from "../engine/engine.ts";
import { TrainingError } from "../errors.ts";
import { UpdateMetrics } from "./update-metrics.ts";

const setting = { loss: { type: "crossEntropy" } as const, learningRate: 0.1, kl: undefined };

/** A batch of three sampled tokens whose log-probabilities in training are off by `difference`. */
function off(difference: number): [Minibatch, LossReport] {
  const sampled = Float32Array.of(-1, -2, -0.5);
  const datum = {
    inputs: Int32Array.of(1, 2, 3),
    targets: Int32Array.of(2, 3, 4),
    weights: Float32Array.of(1, 1, 1),
    logprobs: sampled,
  };
  const batch = { data: [datum], tokens: 3, trainedTokens: 3, epoch: 0 };
  const logprobs = [sampled.map((logprob) => logprob - difference)];
  return [batch, { loss: 1, logprobs, paddedTokens: 4, sharedTokens: 1 }];
}

function metricsOf(weights: string | undefined): UpdateMetrics {
  const policy = { type: "embedded", model: "m", ...(weights !== undefined && { weights }) };
  return new UpdateMetrics({ ...setting, policy });
}

describe("what sampled and what is trained", () => {
  test("may differ by rounding only where the sampler has the trained weights", () => {
    const metrics = metricsOf(undefined);
    expect(() => metrics.checkSampler(...off(0.01))).toThrow("differ by 0.0");
    metrics.checkSampler(...off(5e-4));
  });

  test("may differ by what rounded weights do, which is measured", () => {
    const metrics = metricsOf("int8");
    const [batch, report] = off(0.1);
    metrics.checkSampler(batch, report);
    metrics.add(batch, report, 1);
    const row = metrics.row(1);
    expect(row["parity/maxLogprobDifference"]).toBeCloseTo(0.1);
    expect(row["loss/padding"]).toBe(0.25);
    expect(row["loss/shared"]).toBeCloseTo(1 / 3);
    // k3: exp(-0.1) - 1 + 0.1.
    expect(row["parity/klDivergence"]).toBeCloseTo(0.004837);
  });

  test("ends the training with a word on what to change where the ratios cannot correct for it", () => {
    const tooFar = (): void => metricsOf("int4").checkSampler(...off(0.6));
    expect(tooFar).toThrow(TrainingError);
    expect(tooFar).toThrow(/int4 weights diverges .* by 0\.149 nats per token.*int8 or f32/);
  });
});
