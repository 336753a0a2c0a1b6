/** How many tokens an episode may take, from the limits of its environment. */
import type { EnvironmentOptions } from "../environment/environment-options.ts";

type Limits = Pick<EnvironmentOptions, "mode" | "maxSearches" | "maxTurnTokens" | "maxObservationTokens">;

/** Tokens that are allowed for a prompt before any has been read. */
export const promptAllowance = 384;

/** Tokens of the longest episode: a prompt, in mode rag with its passages, and every turn and observation as long as it may be. */
export function episodeTokens(limits: Limits, promptTokens?: number): number {
  const { mode, maxTurnTokens, maxObservationTokens } = limits;
  const searches = searchesOf(limits);
  const passages = mode === "rag" ? maxObservationTokens : 0;
  const prompt = promptTokens ?? promptAllowance + passages;
  return prompt + (searches + 1) * maxTurnTokens + searches * maxObservationTokens;
}

/** The sum in words, such as "a prompt of 120, 3 turns of 64 and 2 observations of 200". */
export function episodeSum(limits: Limits, promptTokens: number): string {
  const searches = searchesOf(limits);
  const { maxTurnTokens, maxObservationTokens } = limits;
  const turns = `${count(searches + 1, "turn")} of ${maxTurnTokens}`;
  if (searches === 0) return `a prompt of ${promptTokens} and ${turns}`;
  return `a prompt of ${promptTokens}, ${turns} and ${count(searches, "observation")} of ${maxObservationTokens}`;
}

function searchesOf({ mode, maxSearches }: Limits): number {
  return mode === "search" || mode === "planner" ? maxSearches : 0;
}

function count(number: number, noun: string): string {
  return number === 1 ? `1 ${noun}` : `${number} ${noun}s`;
}
