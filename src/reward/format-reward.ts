/**
 * The format reward of Search-R1 v0.3 (arXiv 2505.15117): exact match with partial credit for well-formed
 * reasoning. An episode is well formed when each turn is `<think>…</think>` and then one action with nothing else
 * around, all turns but the last are searches, and the last is an answer.
 *
 * Only the policy's own text is judged, so any chat template works, and an observation that was shortened is not
 * held against the policy. Whether a gold answer was retrieved is judged on the passages, not on their wrapping.
 */
import type { Trajectory } from "../rollout/trajectory.ts";
import { coverExactMatch } from "./cover-exact-match.ts";
import { exactMatch } from "./exact-match.ts";

export interface FormatRewardOptions {
  /** Credit for a well-formed episode; taken off a right answer that is not. */
  readonly structure: number;
  /** Credit for a wrong answer in an ill-formed episode. */
  readonly finalFormat: number;
  /** Extra credit for a well-formed episode that retrieved a gold answer but did not give it. */
  readonly retrieval: number;
}

export interface FormatJudgement {
  readonly value: number;
  readonly isCorrect: boolean;
  readonly isWellFormed: boolean;
  /** False for an ill-formed episode, as in the original. */
  readonly isRetrieved: boolean;
}

/** The reward of an episode: 1 for a right, well-formed one, else by the table in the body. */
export function formatReward(trajectory: Trajectory, options: FormatRewardOptions): FormatJudgement {
  const { structure, finalFormat, retrieval } = options;
  const isCorrect = exactMatch(trajectory.answer, trajectory.question.goldAnswers) === 1;
  const isWellFormed = hasValidFormat(trajectory);
  const isRetrieved = isWellFormed && hasRetrievedAnswer(trajectory);
  const value = (): number => {
    if (isCorrect) return isWellFormed ? 1 : 1 - structure;
    if (isWellFormed) return isRetrieved ? structure + retrieval : structure;
    return trajectory.answer === undefined ? 0 : finalFormat;
  };
  return { value: value(), isCorrect, isWellFormed, isRetrieved };
}

/** The tags of Search-R1 and those that mean the same in CoSearch. */
const tag = "</?(?:think|search|information|answer|reason|tool_call|tool_response)>";
const untagged = `(?:(?!${tag})[^])*`;
const wellFormedTurn = new RegExp(
  `^\\s*<(think|reason)>${untagged}</\\1>\\s*<(search|tool_call|answer)>${untagged}</\\2>\\s*$`,
);

/** Whether each turn is a thought and one action with nothing else around, all but the last a search, the last an answer. */
export function hasValidFormat({ segments, turns }: Trajectory): boolean {
  const texts = segments.filter((segment) => segment.source === "policy").map((segment) => segment.text);
  return (
    texts.length > 0 &&
    texts.length === turns.length &&
    texts.every((text, i) => {
      const expected = i === texts.length - 1 ? "answer" : "search";
      const written = wellFormedTurn.exec(text)?.[2]?.replace("tool_call", "search");
      return turns[i]?.action.type === expected && written === expected;
    })
  );
}

/** True when a passage that was found holds a gold answer, compared like cover exact match. */
export function hasRetrievedAnswer({ question, turns }: Trajectory): boolean {
  const passages = turns.flatMap((turn) => [...(turn.given ?? []), ...(turn.passages ?? [])]);
  return passages.some(
    ({ passage }) => coverExactMatch(`${passage.title}\n${passage.text}`, question.goldAnswers) === 1,
  );
}
