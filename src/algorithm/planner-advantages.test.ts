import { describe, expect, it } from "vitest";
import { call, episode, search } from "../reward/planner.fixture.ts";
import { type PlannerRewardOptions, plannerReward, plannerRewardSchema } from "../reward/planner-reward.ts";
import { groupAdvantages } from "./advantage.ts";

// What is derived in docs/algorithms/ai-search-planner.md of the reward of search planners.
const options = (changed: Partial<PlannerRewardOptions> = {}) => plannerRewardSchema.parse(changed);

describe("caveats under GRPO", () => {
  const group = (baseline: 0 | 1, reward: Partial<PlannerRewardOptions>): number[] =>
    ([1, 0, 1, 0] as const).map(
      (score) =>
        plannerReward(
          episode({ turns: [search("a"), call], judged: { score, ragScore: baseline } }),
          options(reward),
        ).value,
    );

  it.each(["std", "none"] as const)("cancels the gain within a group, with normalize %s", (normalize) => {
    const easy = groupAdvantages(group(1, {}), { normalize });
    const hard = groupAdvantages(group(0, {}), { normalize });
    const plain = groupAdvantages(group(0, { outcome: "score" }), { normalize });
    for (const [index, advantage] of plain.entries()) {
      expect(easy[index]).toBeCloseTo(advantage, 6);
      expect(hard[index]).toBeCloseTo(advantage, 6);
    }
  });

  const tied = (alpha: number): number[] =>
    [
      [search("a"), call],
      [search("a"), search("b"), call],
      [search("a"), search("b"), search("c"), call],
    ].map(
      (turns) =>
        plannerReward(episode({ turns, judged: { score: 1, ragScore: 1 } }), options({ alpha })).value,
    );

  it("hides alpha where a group is tied but for its cost and rewards are divided by their deviation", () => {
    const small = groupAdvantages(tied(0.005), { normalize: "std" });
    const large = groupAdvantages(tied(1), { normalize: "std" });
    for (const [index, advantage] of small.entries())
      expect(advantage).toBeCloseTo(large[index] as number, 2);
  });

  it("keeps alpha where they are not", () => {
    const small = groupAdvantages(tied(0.005), { normalize: "none" });
    const large = groupAdvantages(tied(1), { normalize: "none" });
    for (const [index, advantage] of small.entries())
      expect(advantage).toBeCloseTo(0.005 * (large[index] as number), 9);
  });
});
