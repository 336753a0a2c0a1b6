import { expect, test } from "vitest";
import { makeQuestion, makeTrajectory } from "../../test/make-trajectory.ts";
import type { StopReason } from "../environment/stop-reason.ts";
import { advantagesByGroup, type RewardedTrajectory, soundTrajectories } from "./group.ts";

const options = { advantage: { normalize: "none" }, rejectGroupsWithoutSignal: true } as const;

function rewarded(
  reward: number | undefined,
  place: { dataset?: string; id?: string; group?: string; stopReason?: StopReason } = {},
): RewardedTrajectory {
  const { dataset = "nq", id = "0", group = "0", stopReason = "answer" } = place;
  return {
    reward,
    trajectory: makeTrajectory({ question: makeQuestion({ dataset, id }), group, stopReason }),
  };
}

test("each trajectory is compared with its own group only", () => {
  const report = advantagesByGroup(
    [
      rewarded(1, { group: "a" }),
      rewarded(3, { group: "b" }),
      rewarded(0, { group: "a" }),
      rewarded(1, { group: "b" }),
    ],
    options,
  );
  expect(report.trajectories.map(({ reward, advantage }) => [reward, advantage])).toEqual([
    [1, 0.5],
    [0, -0.5],
    [3, 1],
    [1, -1],
  ]);
  expect(report).toMatchObject({ groups: 2, failed: 0, broken: 0, withoutSignal: 0 });
});

test("two data sets with equal ids never share a group, even under one group name", () => {
  const report = advantagesByGroup(
    [rewarded(1), rewarded(0), rewarded(1, { dataset: "hotpotqa" }), rewarded(1, { dataset: "hotpotqa" })],
    options,
  );
  expect(report.trajectories.map(({ trajectory }) => trajectory.question.dataset)).toEqual(["nq", "nq"]);
  expect(report).toMatchObject({ groups: 1, withoutSignal: 1 });
});

test("groups without signal are counted, and rejected or kept with zero advantage", () => {
  const batch = [rewarded(1), rewarded(1)];
  expect(advantagesByGroup(batch, options)).toMatchObject({ trajectories: [], groups: 0, withoutSignal: 1 });
  const kept = advantagesByGroup(batch, { ...options, rejectGroupsWithoutSignal: false });
  expect(kept.trajectories.map(({ advantage }) => advantage)).toEqual([0, 0]);
  expect(kept).toMatchObject({ groups: 1, withoutSignal: 1 });
});

test("a failure of the world is dropped and does not move the mean of its group", () => {
  const report = advantagesByGroup(
    [rewarded(1), rewarded(undefined, { stopReason: "retrieverFailure" }), rewarded(0)],
    options,
  );
  expect(report.trajectories.map(({ advantage }) => advantage)).toEqual([0.5, -0.5]);
  expect(report).toMatchObject({ failed: 1, broken: 0 });
});

test("a group that failures left with one trajectory is not mistaken for a group of one", () => {
  const broken = [rewarded(1), rewarded(undefined, { stopReason: "policyFailure" })];
  expect(advantagesByGroup(broken, options)).toMatchObject({ trajectories: [], failed: 1, broken: 1 });
  expect(advantagesByGroup([rewarded(1)], options).trajectories.map(({ advantage }) => advantage)).toEqual([
    1,
  ]);
});

test("without comparison all trajectories stay that the world did not fail", () => {
  const members = [rewarded(1), rewarded(undefined, { stopReason: "retrieverFailure" }), rewarded(0)];
  expect(soundTrajectories(members)).toEqual([members[0], members[2]]);
});
