/** How good what each search showed was, and what a ranker took to choose it. */
import { answerMatcher, isVerdict } from "../corpus/answer-match.ts";
import { hitsAt } from "../reward/ranking-reward.ts";
import type { Trajectory } from "../rollout/trajectory.ts";
import { tokenCount } from "../rollout/trajectory-view.ts";
import { addUsage, noUsage } from "../rollout/usage.ts";
import type { ScoredItem } from "./item.ts";

type SearchScores = Pick<
  ScoredItem,
  "hit1" | "hit3" | "hit5" | "rankings" | "invalidRankings" | "rankerTokens" | "rankerMs" | "rankerDollars"
>;

/** Hit@k of what the agent saw, where it searched for more than a verdict; counts of the ranker where there is one. */
export function searchScores({ question, turns, rankings }: Trajectory): SearchScores {
  const holds = answerMatcher(question.goldAnswers);
  const shown = turns.flatMap(({ passages }) => (passages === undefined ? [] : [passages]));
  const hits = shown.map((passages) => hitsAt(passages, holds));
  const share = (index: number): number =>
    hits.reduce((sum, each) => sum + (each[index] as number), 0) / hits.length;
  const isJudged = hits.length > 0 && !isVerdict(question.goldAnswers);
  return {
    ...(isJudged && { hit1: share(0), hit3: share(1), hit5: share(2) }),
    ...(rankings && rankerScores(rankings)),
  };
}

function rankerScores(rankings: readonly Trajectory[]): SearchScores {
  const usage = rankings.reduce((sum, { usage: one = noUsage }) => addUsage(sum, one), noUsage);
  const invalid = rankings.filter(({ answer }) => answer === undefined).length;
  return {
    rankings: rankings.length,
    ...(rankings.length > 0 && { invalidRankings: invalid / rankings.length }),
    // Without a tokenizer the server's own counts are the only ones.
    rankerTokens:
      rankings.reduce((sum, ranking) => sum + tokenCount(ranking), 0) ||
      usage.promptTokens + usage.completionTokens,
    rankerMs: rankings.reduce((sum, { time }) => sum + time.policyMs, 0),
    ...(usage.dollars !== undefined && { rankerDollars: usage.dollars }),
  };
}
