/**
 * What an answer rests on (codec evidence): the passages it cites by number, against the evidence of the question: its gold
 * passages, or, where none are marked, the passages shown that hold a gold answer. Numbers that no passage has count as
 * cited and wrong.
 */
import { answerMatcher, isVerdict } from "../corpus/answer-match.ts";
import type { Passage } from "../corpus/passage.ts";
import type { Trajectory } from "../rollout/trajectory.ts";
import { shownPassages } from "../rollout/trajectory-view.ts";

export interface CitationScores {
  /** Share of the citations that are evidence, in [0, 1]; absent without citations. */
  readonly precision?: number;
  /** Share of the evidence that is cited, in [0, 1]. */
  readonly recall: number;
}

export interface Citation {
  readonly number: number;
  /** Undefined for a number that no passage has. */
  readonly passage: Passage | undefined;
}

/** What the answer cites, in order; undefined for an answer of a format without citations and for an abstention. */
export function citedPassages(trajectory: Trajectory): Citation[] | undefined {
  const last = trajectory.turns.at(-1)?.action;
  if (last?.type !== "answer" || last.abstains || last.cited === undefined) return undefined;
  const shown = allShown(trajectory);
  return last.cited.map((number) => ({ number, passage: shown[number - 1] }));
}

/** Undefined for an answer of a format without citations, for an abstention, and where there is no evidence to cite. */
export function citationScores(trajectory: Trajectory): CitationScores | undefined {
  const citations = citedPassages(trajectory);
  if (citations === undefined) return undefined;
  const evidence = evidenceOf(trajectory, allShown(trajectory));
  if (evidence.size === 0) return undefined;
  const cited = citations.map(({ passage }) => passage?.id);
  const right = cited.filter((id) => id !== undefined && evidence.has(id));
  return {
    ...(cited.length > 0 && { precision: right.length / cited.length }),
    recall: new Set(right).size / evidence.size,
  };
}

/** Harmonic mean of precision and recall of the citations, in [0, 1]; 0 without any, and where there is nothing to cite. */
export function citationF1(trajectory: Trajectory): number {
  const { precision = 0, recall = 0 } = citationScores(trajectory) ?? {};
  return precision + recall === 0 ? 0 : (2 * precision * recall) / (precision + recall);
}

/** Whether the episode ended with the agent saying that it does not know. */
export function hasAbstained({ turns }: Trajectory): boolean {
  const last = turns.at(-1)?.action;
  return last?.type === "answer" && last.abstains === true;
}

/** Passages in the order of their numbers. */
function allShown(trajectory: Trajectory): Passage[] {
  return shownPassages(trajectory).flatMap(({ passages }) => passages.map(({ passage }) => passage));
}

function evidenceOf({ question }: Trajectory, shown: readonly Passage[]): ReadonlySet<string> {
  if (question.goldPassages.length > 0) return new Set(question.goldPassages);
  if (isVerdict(question.goldAnswers)) return new Set();
  const holds = answerMatcher(question.goldAnswers);
  return new Set(shown.filter(holds).map(({ id }) => id));
}
