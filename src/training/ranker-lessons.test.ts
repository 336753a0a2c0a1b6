import { describe, expect, it } from "vitest";
import { makeQuestion, makeSegment, makeTrajectory } from "../../test/make-trajectory.ts";
import { queryGroupingSchema } from "../algorithm/query-groups.ts";
import { renderOrder } from "../environment/ranking-codec.ts";
import { rankingRewardSchema } from "../reward/ranking-reward.ts";
import type { Trajectory } from "../rollout/trajectory.ts";
import { random } from "../shared/random.ts";
import { rankerLessons } from "./ranker-lessons.ts";

const candidates = ["no", "it is Paris", "nor this"].map((text, i) => ({
  passage: { id: `${i}`, title: "T", text },
  score: 1,
}));

interface Call {
  readonly query?: string;
  /** First number of the ranking; undefined: it breaks the grammar. */
  readonly first: number | undefined;
  readonly stopReason?: Trajectory["stopReason"];
}

/** An agent of group `group` that answered `answer` after these calls of its ranker. */
function agentOf(group: string, calls: readonly Call[], changes: Partial<Trajectory> = {}): Trajectory {
  const question = makeQuestion({ id: group });
  const rankings = calls.map(({ query = "capital of France", first, stopReason }, place): Trajectory => {
    const answer = first === undefined ? undefined : renderOrder([first]);
    const segments = [makeSegment("prompt", [1]), makeSegment("policy", [2, place])];
    return makeTrajectory({
      question,
      group,
      answer,
      segments: stopReason === undefined ? segments : segments.slice(0, 1),
      stopReason: stopReason ?? (answer === undefined ? "turnLimit" : "answer"),
      turns: [{ action: { type: "answer", answer: answer ?? "" }, passages: candidates }],
      ranking: { turn: place, place, query, count: 1 },
    });
  });
  return makeTrajectory({ question, group, rankings, ...changes });
}

const lessons = (agents: readonly Trajectory[], options: object = {}) =>
  rankerLessons(
    agents,
    {
      grouping: queryGroupingSchema.parse({ minMembers: 2 }),
      reward: rankingRewardSchema.parse({ agentFormat: "actions" }),
      averageDuplicates: false,
      rejectEqualRewards: false,
      ...options,
    },
    { advantage: { normalize: "none" }, random: random(1, "test") },
  );
const advantages = (result: ReturnType<typeof lessons>) =>
  result.groups.trajectories.map(({ reward, advantage }) => [reward, advantage]);

describe("what a ranker learns from a step", () => {
  it("compares the calls of one question and one kind of query", () => {
    // Hit and right answer earn 2, a miss 0: mean 1.
    const result = lessons([
      agentOf("a", [{ first: 2 }]),
      agentOf("a", [{ first: 1 }, { query: "something else", first: 1 }]),
      agentOf("b", [{ first: 2 }]),
    ]);
    expect(result.calls).toBe(4);
    expect(result.judged).toHaveLength(4);
    expect(advantages(result)).toEqual([
      [2, 1],
      [0, -1],
    ]);
    expect(result.groups.trajectories.map(({ trajectory }) => trajectory.group)).toEqual([
      "a/easy/0",
      "a/easy/0",
    ]);
  });

  it("learns from rankings that broke the grammar, but not from calls that failed", () => {
    const result = lessons([
      agentOf("a", [{ first: 2 }]),
      agentOf("a", [{ first: undefined }]),
      agentOf("a", [{ first: 1, stopReason: "policyFailure" }]),
    ]);
    expect(result.calls).toBe(3);
    expect(advantages(result).map(([reward]) => reward)).toEqual([2, -0.2]);
  });

  it("leaves out agents that broke their format, and those that the world failed", () => {
    const invalid = {
      turns: [{ action: { type: "invalid", reason: "noAction" } }],
      stopReason: "turnLimit",
    } as const;
    const agents = [
      agentOf("a", [{ first: 2 }]),
      agentOf("a", [{ first: 1 }], invalid),
      agentOf("a", [{ first: 1 }], { stopReason: "retrieverFailure", answer: undefined }),
    ];
    const result = lessons(agents);
    expect(result.judged.map(({ isLearntFrom }) => isLearntFrom)).toEqual([true, false]);
    expect(advantages(result)).toEqual([]);
    const keeping = {
      reward: rankingRewardSchema.parse({ agentFormat: "actions", keepIllFormedAgents: true }),
    };
    expect(advantages(lessons(agents, keeping))).toHaveLength(2);
  });

  it("can average duplicates, reject equal rewards and cap the calls", () => {
    const wrong = { answer: "Rome" };
    const twice = [agentOf("a", [{ first: 2 }]), agentOf("a", [{ first: 2 }], wrong)];
    expect(advantages(lessons(twice)).map(([reward]) => reward)).toEqual([2, 1]);
    const averaged = lessons(twice, { averageDuplicates: true });
    expect(advantages(averaged).map(([reward]) => reward)).toEqual([1.5, 1.5]);
    expect(averaged.groups.withoutSignal).toBe(1);
    expect(advantages(lessons(twice, { averageDuplicates: true, rejectEqualRewards: true }))).toEqual([]);
    const groups = ["a", "b", "c"].flatMap((name) => [
      agentOf(name, [{ first: 2 }]),
      agentOf(name, [{ first: 1 }]),
    ]);
    expect(advantages(lessons(groups, { maxCallsPerTrajectory: 0.7 }))).toHaveLength(4);
    expect(advantages(lessons(groups, { maxCallsPerTrajectory: 2 }))).toHaveLength(6);
  });
});
