/** What can be read off a trajectory: pure functions, so that no count is stored twice. */
import type { ScoredPassage } from "../retrieval/retriever.ts";
import type { Segment, Trajectory } from "./trajectory.ts";

/** All ids in order, (T). */
export function trajectoryTokens({ segments }: Trajectory): Int32Array {
  return Int32Array.from(segments.flatMap((segment) => segment.tokens));
}

/** 1 where the policy sampled the token, else 0; (T), aligned with `trajectoryTokens`. */
export function lossMask({ segments }: Trajectory): Uint8Array {
  return Uint8Array.from(
    segments.flatMap(({ tokens, source }) => tokens.map(() => (source === "policy" ? 1 : 0))),
  );
}

/** The whole text, prompt included. */
export function trajectoryText({ segments }: Trajectory): string {
  return segments.map((segment) => segment.text).join("");
}

export function tokenCount({ segments }: Trajectory): number {
  return segments.reduce((sum, { tokens }) => sum + tokens.length, 0);
}

export function policyTokenCount(trajectory: Trajectory): number {
  return countTokens(trajectory, "policy");
}

export function observationTokenCount(trajectory: Trajectory): number {
  return countTokens(trajectory, "environment");
}

function countTokens({ segments }: Trajectory, source: Segment["source"]): number {
  return segments.reduce((sum, segment) => sum + (segment.source === source ? segment.tokens.length : 0), 0);
}

/** Turns that the environment read; one that a failure broke off is not among them. */
export function turnCount({ turns }: Trajectory): number {
  return turns.length;
}

/** Searches that were carried out. */
export function searchCount({ turns }: Trajectory): number {
  const searched = (found: unknown): number => (found === undefined ? 0 : 1);
  return turns.reduce((sum, { given, passages }) => sum + searched(given) + searched(passages), 0);
}

export function invalidTurnCount({ turns }: Trajectory): number {
  return turns.filter((turn) => turn.action.type === "invalid").length;
}

/** Searches whose passages were shortened. */
export function truncatedSearchCount({ turns }: Trajectory): number {
  return turns.filter((turn) => turn.truncated === true).length;
}

/** The queries of the searches in order. */
export function queries({ turns }: Trajectory): string[] {
  return turns.flatMap(({ action }) => {
    if (action.type === "searches") return action.queries;
    return action.type === "search" ? [action.query] : [];
  });
}

/** The passages of one search with the text in which they were shown. */
export interface ShownPassages {
  readonly passages: readonly ScoredPassage[];
  readonly text: string;
}

/**
 * The searches whose passages the policy got to read, in order: those whose observation was inserted, and in mode `rag`
 * the one that the prompt shows. An observation that did not fit into the context was not read.
 */
export function shownPassages({ segments, turns }: Trajectory): ShownPassages[] {
  const observations: (string | undefined)[] = [];
  segments.forEach(({ source }, index) => {
    if (source !== "policy") return;
    const next = segments[index + 1];
    observations.push(next?.source === "environment" ? next.text : undefined);
  });
  return turns.flatMap(({ action, given, passages }, turn) => {
    const prompt = segments[0]?.text;
    const first = given === undefined || prompt === undefined ? [] : [{ passages: given, text: prompt }];
    const isInPrompt = turn === 0 && (action.type === "answer" || action.type === "invalid");
    const text = isInPrompt ? prompt : observations[turn];
    return passages === undefined || text === undefined ? first : [...first, { passages, text }];
  });
}

/** What was found, each passage once, in the order it was first found. */
export function retrievedPassages({ turns }: Trajectory): ScoredPassage[] {
  const first = new Map<string, ScoredPassage>();
  for (const found of turns.flatMap((turn) => [...(turn.given ?? []), ...(turn.passages ?? [])]))
    if (!first.has(found.passage.id)) first.set(found.passage.id, found);
  return [...first.values()];
}

/** The share of the question's gold passages that was found, in [0, 1]; undefined when none is marked. */
export function goldPassageRecall(trajectory: Trajectory): number | undefined {
  const gold = new Set(trajectory.question.goldPassages);
  if (gold.size === 0) return undefined;
  return retrievedPassages(trajectory).filter(({ passage }) => gold.has(passage.id)).length / gold.size;
}

/** True when every gold passage was found; undefined when none is marked. */
export function hasGoldRetrieved(trajectory: Trajectory): boolean | undefined {
  const recall = goldPassageRecall(trajectory);
  return recall === undefined ? undefined : recall === 1;
}
