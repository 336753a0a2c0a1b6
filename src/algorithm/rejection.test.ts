import { expect, test } from "vitest";
import { makeSegment, makeTrajectory } from "../../test/make-trajectory.ts";
import { keptTrajectories } from "./rejection.ts";

/** A trajectory that wrote `tokens` and earned `reward`. */
function member(group: string, tokens: readonly number[], reward: number | undefined) {
  const segments = [makeSegment("prompt", [1]), makeSegment("policy", tokens)];
  return {
    reward,
    trajectory: makeTrajectory({
      group,
      segments,
      ...(reward === undefined && { stopReason: "retrieverFailure" as const }),
    }),
  };
}

const rewarded = [
  member("a", [1, 2], 1),
  member("a", [1, 2], 1),
  member("a", [3], 1),
  member("a", [4], 0),
  member("b", [5], 0.5),
  member("c", [6], undefined),
];

test("what earned enough is kept once, and everything else is counted", () => {
  const report = keptTrajectories(rewarded, { threshold: 1 });
  expect(report.trajectories.map(({ trajectory }) => trajectory.segments[1]?.tokens)).toEqual([[1, 2], [3]]);
  expect(report).toMatchObject({ groups: 1, withoutSignal: 1, failed: 1, broken: 1 });
});

test("at most `keep` of a question, and a lower threshold keeps more", () => {
  expect(keptTrajectories(rewarded, { threshold: 1, keep: 1 }).trajectories).toHaveLength(1);
  expect(keptTrajectories(rewarded, { threshold: 0.5 }).trajectories).toHaveLength(3);
});
