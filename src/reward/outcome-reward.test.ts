import { describe, expect, it } from "vitest";
import { makeSegment, makeTrajectory } from "../../test/make-trajectory.ts";
import type { Trajectory } from "../rollout/trajectory.ts";
import { reward, rewardOptionsSchema } from "./reward.ts";

const value = (trajectory: Trajectory, options: object = {}): number =>
  reward(trajectory, rewardOptionsSchema.parse({ type: "formatF1", ...options })).value;

const turns = (...texts: readonly string[]): Pick<Trajectory, "segments" | "turns"> => ({
  segments: texts.map((text) => ({ ...makeSegment("policy", [1]), text })),
  turns: texts.map((text) => ({
    action: text.includes("<answer>")
      ? { type: "answer", answer: "Paris" }
      : text.includes("<search>")
        ? { type: "search", query: "q" }
        : { type: "invalid", reason: "noAction" },
  })),
});
const search = "<think>so</think><search>q</search>";
const answer = "<think>so</think><answer>Paris</answer>";

describe("the reward of CoSearch's agent", () => {
  it.each([
    ["well-formed and right", turns(search, answer), "Paris", 1],
    ["well-formed and half right", turns(search, answer), "Paris, Texas", 2 / 3],
    ["well-formed and wrong", turns(search, answer), "Rome", 0],
    ["right without a thought", turns("<answer>Paris</answer>"), "Paris", -0.2],
    ["right with words around", turns(search, `${answer} yes`), "Paris", -0.2],
    [
      "right after a thought of white space",
      turns(search, "<think> \n</think><answer>Paris</answer>"),
      "Paris",
      -0.2,
    ],
    ["right after an invalid turn", turns("hm", answer), "Paris", -0.2],
  ])("%s", (_, record, given, expected) => {
    expect(value(makeTrajectory({ ...record, answer: given }))).toBeCloseTo(expected, 12);
  });

  it("is negative for an episode without an answer, even one cut off in its first turn", () => {
    const cut = makeTrajectory({ ...turns("<think>so"), answer: undefined, stopReason: "contextLimit" });
    expect(value(cut)).toBe(-0.2);
    expect(value(cut, { format: "actions", penalty: 0.5 })).toBe(-0.5);
  });

  it("asks with format actions for actions that count and no thoughts", () => {
    const bare = makeTrajectory({
      ...turns("<search>q</search>", "<answer>Paris</answer>"),
      answer: "Paris",
    });
    expect(value(bare, { format: "actions" })).toBe(1);
    const stumbling = makeTrajectory({ ...turns("hm", "<answer>Paris</answer>"), answer: "Paris" });
    expect(value(stumbling, { format: "actions" })).toBe(-0.2);
  });
});
