/** What an item says of an episode that a planner played and that was judged. */
import { outcomeGain, processReward } from "../reward/planner-reward.ts";
import type { Trajectory } from "../rollout/trajectory.ts";
import { policyTokenCount, queries } from "../rollout/trajectory-view.ts";
import { noUsage, type PolicyUsage } from "../rollout/usage.ts";
import type { ScoredItem } from "./item.ts";

/** Empty for other episodes. */
export function plannerScores(trajectory: Trajectory): Partial<ScoredItem> {
  const { assessment, generated, usage: own } = trajectory;
  if (assessment === undefined) return {};
  const { score, ruleScore, directScore, ragScore, grade, judged, unreadable, usage } = assessment;
  const generatorUsage = generated?.usage ?? noUsage;
  const { dollars } = generatorUsage;
  const generatorTokens = tokensOf(generatorUsage);
  const plannerTokens = policyTokenCount(trajectory) || (own?.completionTokens ?? 0);
  return {
    score,
    ...(judged > 0 && {
      judgeAgreement: score === ruleScore && unreadable === 0 ? 1 : 0,
      judgeUnreadable: unreadable,
    }),
    ...(directScore !== undefined && { directScore }),
    ...(ragScore !== undefined && { ragScore }),
    ...baselineScores(trajectory, generated === undefined ? undefined : grade),
    subQueries: queries(trajectory).length,
    forcedCall: generated?.isForced === true ? 1 : 0,
    generatorTokens,
    judgeTokens: tokensOf(usage),
    totalTokens: plannerTokens + generatorTokens,
    ...(dollars !== undefined && { generatorDollars: dollars }),
  };
}

function baselineScores({ assessment }: Trajectory, grade: number | undefined): Partial<ScoredItem> {
  if (assessment?.directScore === undefined || assessment.ragScore === undefined) return {};
  const best = Math.max(assessment.directScore, assessment.ragScore) as 0 | 1;
  return {
    gain: assessment.score - best,
    ragGain: assessment.score - assessment.ragScore,
    utility: outcomeGain(assessment.score, best) + processReward(grade),
  };
}

function tokensOf({ promptTokens, completionTokens }: PolicyUsage): number {
  return promptTokens + completionTokens;
}
