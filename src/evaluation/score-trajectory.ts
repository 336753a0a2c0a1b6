/** From a finished trajectory to the item of an evaluation. Looks at actions and segments, never at their text. */
import { answerMatcher, isVerdict } from "../corpus/answer-match.ts";
import { isInfrastructureFailure } from "../environment/stop-reason.ts";
import { coverExactMatch } from "../reward/cover-exact-match.ts";
import { deficiencies } from "../reward/deficiencies.ts";
import { exactMatch } from "../reward/exact-match.ts";
import { normalizeAnswer } from "../reward/normalize-answer.ts";
import { tokenF1 } from "../reward/token-f1.ts";
import type { Trajectory } from "../rollout/trajectory.ts";
import {
  goldPassageRecall,
  invalidTurnCount,
  policyTokenCount,
  retrievedPassages,
  searchCount,
  tokenCount,
} from "../rollout/trajectory-view.ts";
import { costScores } from "./cost.ts";
import type { FailedItem, Item } from "./item.ts";
import { judgeScores, plannerScores } from "./planner-scores.ts";
import { searchScores } from "./search-scores.ts";
import { searchUse } from "./search-use.ts";

/** How the world failed an episode, its agent or its ranker; undefined where it did not. */
export function failureOf({
  stopReason,
  failure,
  rankings = [],
}: Trajectory): Pick<FailedItem, "stopReason" | "failure"> | undefined {
  if (isInfrastructureFailure(stopReason)) return { stopReason, failure: failure ?? stopReason };
  const unranked = rankings.find((ranking) => isInfrastructureFailure(ranking.stopReason));
  return (
    unranked && {
      stopReason: unranked.stopReason,
      failure: `ranking: ${unranked.failure ?? unranked.stopReason}`,
    }
  );
}

/**
 * Scores a trajectory; `searchDollars` is what its searches were billed. No answer scores 0; a failure of the world gives an
 * item without scores, also one of a ranker: the agent then read the retriever's choice, which is another method.
 */
export function scoreTrajectory(
  trajectory: Trajectory,
  { searchDollars }: { readonly searchDollars?: number | undefined } = {},
): Item {
  const { question, answer, stopReason, time, usage } = trajectory;
  const { dataset, id, hops, kind, goldAnswers } = question;
  const common = {
    dataset,
    id,
    ...(hops !== undefined && { hops }),
    ...(kind !== undefined && { kind }),
    stopReason,
  };
  const broken = failureOf(trajectory);
  if (broken !== undefined) return { ...common, ...broken, failed: true };
  const recall = goldPassageRecall(trajectory);
  return {
    ...common,
    failed: false,
    ...(answer !== undefined && { answer }),
    em: exactMatch(answer, goldAnswers),
    coverEm: coverExactMatch(answer, goldAnswers),
    f1: tokenF1(answer, goldAnswers),
    ...(recall !== undefined && { retrievalRecall: recall }),
    ...answerRetrieved(trajectory),
    wellFormed: stopReason === "answer" && invalidTurnCount(trajectory) === 0 ? 1 : 0,
    searches: searchCount(trajectory),
    // Without a tokenizer the server's own counts are the only ones.
    policyTokens: policyTokenCount(trajectory) || (usage?.completionTokens ?? 0),
    contextTokens: tokenCount(trajectory) || (usage?.contextTokens ?? 0),
    timeMs: time.totalMs,
    ...(usage && {
      modelCalls: usage.calls,
      promptTokens: usage.promptTokens,
      cachedTokens: usage.cachedTokens,
      ...(usage.dollars !== undefined && { dollars: usage.dollars }),
    }),
    ...searchScores(trajectory),
    ...searchUse(trajectory),
    ...costScores(trajectory, searchDollars),
    ...judgeScores(trajectory),
    ...plannerScores(trajectory),
    ...deficiencies(trajectory),
  };
}

function answerRetrieved(trajectory: Trajectory): { readonly answerRetrieved?: 0 | 1 } {
  const { goldAnswers } = trajectory.question;
  if (isVerdict(goldAnswers)) return {};
  // An alias that vanishes when it is normalised, such as "The", would be found everywhere.
  const holds = answerMatcher(goldAnswers.filter((gold) => normalizeAnswer(gold) !== ""));
  return { answerRetrieved: retrievedPassages(trajectory).some(({ passage }) => holds(passage)) ? 1 : 0 };
}
