import { describe, expect, it } from "vitest";
import { makeSegment, makeTrajectory } from "../../test/make-trajectory.ts";
import { environmentOptionsSchema } from "../environment/environment-options.ts";
import type { RewardedTrajectory } from "./rollout-metrics.ts";
import { rolloutMetrics } from "./rollout-metrics.ts";

const environment = environmentOptionsSchema.parse({ maxTurnTokens: 3 });
const noGroups = { trajectories: [], groups: 2, failed: 1, broken: 0, withoutSignal: 1 };

// Worked by hand: two groups, one of rewards 1 and 0, one of 1 and a failure of the retriever.
const long = makeSegment("policy", [4, 5, 6]);
const sampled: readonly RewardedTrajectory[] = [
  { trajectory: makeTrajectory({ group: "a" }), reward: 1 },
  {
    trajectory: makeTrajectory({
      group: "a",
      segments: [makeSegment("prompt", [1]), long],
      turns: [{ action: { type: "invalid", reason: "noAction" } }],
      answer: undefined,
      stopReason: "turnLimit",
    }),
    reward: 0,
  },
  { trajectory: makeTrajectory({ group: "b" }), reward: 1 },
  {
    trajectory: makeTrajectory({ group: "b", stopReason: "retrieverFailure", failure: "down" }),
    reward: undefined,
  },
];

describe("rolloutMetrics", () => {
  const metrics = rolloutMetrics(sampled, noGroups, { rolloutMs: 2000, environment });

  it("leaves failures of the world out of rewards, lengths and searches", () => {
    expect(metrics["reward/mean"]).toBeCloseTo(2 / 3);
    expect(metrics["reward/groupStd"]).toBeCloseTo((0.5 + 0) / 2);
    expect(metrics["length/policyTokens"]).toBeCloseTo((4 + 3 + 4) / 3);
    expect(metrics["search/count"]).toBeCloseTo(2 / 3);
    expect(metrics["reward/exactMatch"]).toBeCloseTo(2 / 3);
  });

  it("counts how every episode ended, failures included", () => {
    expect(metrics["stop/answer"]).toBe(0.5);
    expect(metrics["stop/turnLimit"]).toBe(0.25);
    expect(metrics["stop/retrieverFailure"]).toBe(0.25);
    expect(metrics["group/failed"]).toBe(0.25);
    expect(metrics["group/rejected"]).toBeCloseTo(1 / 3);
  });

  it("tells turns that were cut and turns that were no action", () => {
    expect(metrics["length/cutTurns"]).toBeCloseTo(1 / 5);
    expect(metrics["search/invalid"]).toBeCloseTo(1 / 5);
  });

  it("gives rates by the time of the rollouts", () => {
    expect(metrics["rate/trajectories"]).toBe(2);
    expect(metrics["rate/sampledTokens"]).toBeCloseTo(11 / 2);
  });
});
