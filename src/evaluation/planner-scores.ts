/** What an item says of an episode that was judged, and of a planner's. */
import { outcomeGain, processReward } from "../reward/planner-reward.ts";
import type { Trajectory } from "../rollout/trajectory.ts";
import { queries } from "../rollout/trajectory-view.ts";
import type { ScoredItem } from "./item.ts";

/** Empty where nobody judged. */
export function judgeScores({ assessment }: Trajectory): Partial<ScoredItem> {
  if (assessment === undefined) return {};
  const { score, ruleScore, judged, unreadable } = assessment;
  return {
    score,
    ...(judged > 0 && {
      judgeAgreement: score === ruleScore && unreadable === 0 ? 1 : 0,
      judgeUnreadable: unreadable,
    }),
  };
}

/** Empty for episodes without a planner, which nobody sets against a generator's own answers. */
export function plannerScores(trajectory: Trajectory): Partial<ScoredItem> {
  const { assessment, generated } = trajectory;
  if (assessment?.directScore === undefined || assessment.ragScore === undefined) return {};
  const { score, directScore, ragScore, grade } = assessment;
  const best = Math.max(directScore, ragScore) as 0 | 1;
  const { promptTokens = 0, completionTokens = 0, dollars } = generated?.usage ?? {};
  return {
    directScore,
    ragScore,
    gain: score - best,
    ragGain: score - ragScore,
    utility: outcomeGain(score, best) + processReward(generated === undefined ? undefined : grade),
    subQueries: queries(trajectory).length,
    forcedCall: generated?.isForced === true ? 1 : 0,
    generatorTokens: promptTokens + completionTokens,
    ...(dollars !== undefined && { generatorDollars: dollars }),
  };
}
