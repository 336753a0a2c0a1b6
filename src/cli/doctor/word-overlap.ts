/**
 * The plainest ranking that could find anything, as a yardstick: how many different words of the query a passage
 * has, rare ones counting more (the logarithm of how many rivals lack them). No stemming, no stop words, no lengths.
 * Runs of scripts without spaces between words are cut into pairs of characters.
 */
import type { Passage } from "../../corpus/passage.ts";

const runs = /[\p{L}\p{N}\p{M}]+/gu;
const unspaced =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;

export interface Candidates {
  readonly k: number;
  /** Where they score as much as another passage, the other one comes first: overlap is not flattered. */
  readonly gold: readonly Passage[];
  /** More passages that compete, besides the rivals. */
  readonly others: readonly Passage[];
}

/** A function that gives the best `k` passages by overlap among gold passages, others and `rivals`. */
export function overlapRanker(
  rivals: readonly Passage[],
): (query: string, candidates: Candidates) => readonly Passage[] {
  const words = new Map<string, ReadonlySet<string>>();
  const wordsOfPassage = (passage: Passage): ReadonlySet<string> => {
    const known = words.get(passage.id);
    if (known !== undefined) return known;
    const set = wordsOf(`${passage.title} ${passage.text}`);
    words.set(passage.id, set);
    return set;
  };
  const frequency = new Map<string, number>();
  for (const rival of rivals)
    for (const word of wordsOfPassage(rival)) frequency.set(word, (frequency.get(word) ?? 0) + 1);
  const weightOf = (word: string): number =>
    Math.log(1 + (rivals.length + 1) / (1 + (frequency.get(word) ?? 0)));
  return (query, { k, gold, others }) => {
    const weights = Array.from(wordsOf(query), (word) => ({ word, weight: weightOf(word) }));
    const goldIds = new Set(gold.map(({ id }) => id));
    const pool = new Map([...rivals, ...others, ...gold].map((passage) => [passage.id, passage]));
    return Array.from(pool.values(), (passage) => {
      const held = wordsOfPassage(passage);
      const score = weights.reduce((sum, { word, weight }) => (held.has(word) ? sum + weight : sum), 0);
      return { passage, score, isGold: goldIds.has(passage.id) };
    })
      .filter(({ score }) => score > 0)
      .sort((a, b) => b.score - a.score || Number(a.isGold) - Number(b.isGold))
      .slice(0, k)
      .map(({ passage }) => passage);
  };
}

function wordsOf(text: string): ReadonlySet<string> {
  const words = new Set<string>();
  for (const run of text.normalize("NFKC").toLowerCase().match(runs) ?? [])
    if (unspaced.test(run)) for (const pair of pairsOf([...run])) words.add(pair);
    else words.add(run);
  return words;
}

function pairsOf(characters: readonly string[]): readonly string[] {
  if (characters.length === 1) return characters;
  return characters.slice(1).map((character, i) => `${characters[i]}${character}`);
}
