/**
 * How an agent uses its searches: those that brought nothing new, those after it had all it needed, and whether its answer
 * stands in what it was shown. Pure; read from actions and passages.
 */
import { answerMatcher, isVerdict } from "../corpus/answer-match.ts";
import { citationScores, hasAbstained } from "../reward/citations.ts";
import type { Trajectory, Turn } from "../rollout/trajectory.ts";
import { retrievedPassages, shownPassages } from "../rollout/trajectory-view.ts";
import type { SearchUseName } from "./search-use-names.ts";

export interface SearchUse extends Readonly<Partial<Record<SearchUseName, number>>> {
  /** For each gold passage in the question's order, which is that of its hops, 1 when it was found; absent without any. */
  readonly goldFound?: number[];
  /** Geometric mean of the probabilities of the answering turn's tokens; absent without an answer or log-probabilities. */
  readonly confidence?: number;
}

/** Measures a trajectory that the world did not fail. */
export function searchUse(trajectory: Trajectory): SearchUse {
  const { question } = trajectory;
  const supported = isSupported(trajectory);
  const citations = citationScores(trajectory);
  const found = new Set(retrievedPassages(trajectory).map(({ passage }) => passage.id));
  const confidence = confidenceOf(trajectory);
  return {
    redundantSearches: redundantSearches(trajectory),
    searchesAfterEvidence: searchesAfterEvidence(trajectory),
    passagesSeen: found.size,
    ...(supported !== undefined && { answerSupported: supported ? 1 : 0 }),
    abstained: hasAbstained(trajectory) ? 1 : 0,
    ...(citations && { citationRecall: citations.recall }),
    ...(citations?.precision !== undefined && { citationPrecision: citations.precision }),
    ...(question.goldPassages.length > 0 && {
      goldFound: question.goldPassages.map((id) => (found.has(id) ? 1 : 0)),
    }),
    ...(confidence !== undefined && { confidence }),
  };
}

function redundantSearches({ turns }: Trajectory): number {
  const asked = new Set<string>();
  const seen = new Set<string>();
  let redundant = 0;
  for (const { action, given = [], passages = [] } of turns) {
    for (const { passage } of given) seen.add(passage.id);
    const own = queriesOf(action).map((query) => query.trim().toLowerCase());
    const isRepeated = own.length > 0 && own.every((query) => asked.has(query));
    const isOld = passages.length > 0 && passages.every(({ passage }) => seen.has(passage.id));
    if (own.length > 0 && (isRepeated || isOld)) redundant++;
    for (const query of own) asked.add(query);
    for (const { passage } of passages) seen.add(passage.id);
  }
  return redundant;
}

function queriesOf(action: Turn["action"]): readonly string[] {
  if (action.type === "searches") return action.queries;
  return action.type === "search" ? [action.query] : [];
}

function searchesAfterEvidence(trajectory: Trajectory): number {
  const { goldPassages, goldAnswers } = trajectory.question;
  const holds = isVerdict(goldAnswers) ? () => false : answerMatcher(goldAnswers);
  const seen = new Set<string>();
  let isInHand = false;
  let after = 0;
  for (const { passages } of shownPassages(trajectory)) {
    if (isInHand) after++;
    for (const { passage } of passages) seen.add(passage.id);
    isInHand ||=
      goldPassages.length > 0
        ? goldPassages.every((id) => seen.has(id))
        : passages.some(({ passage }) => holds(passage));
  }
  return after;
}

/** Undefined without an answer that passages could support. */
function isSupported(trajectory: Trajectory): boolean | undefined {
  const { answer } = trajectory;
  if (answer === undefined || answer.trim() === "" || isVerdict([answer])) return undefined;
  const holds = answerMatcher([answer]);
  return shownPassages(trajectory).some(({ passages }) => passages.some(({ passage }) => holds(passage)));
}

/** Of a planner none: its last turn hands over, and a generator's log-probabilities are not kept. */
function confidenceOf(trajectory: Trajectory): number | undefined {
  const { answer, segments, generated } = trajectory;
  if (generated !== undefined) return undefined;
  const logprobs = segments.findLast(({ source }) => source === "policy")?.logprobs ?? [];
  if (answer === undefined || logprobs.length === 0) return undefined;
  return Math.exp(logprobs.reduce((sum, value) => sum + value, 0) / logprobs.length);
}
