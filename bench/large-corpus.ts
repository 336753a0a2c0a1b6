/**
 * A large corpus out of a real one: the passages themselves, then copies in which every tenth word is drawn from
 * another passage and every tenth swapped with the next, so that word frequencies stay those of real text while no two
 * passages are equal. Seeded: equal input gives equal bytes.
 */
import { open, rename } from "node:fs/promises";
import type { Passage } from "../src/corpus/passage.ts";
import { readCorpora } from "../src/corpus/read-corpora.ts";
import { type Random, random } from "../src/shared/random.ts";

export interface LargeCorpusOptions {
  /** How many passages to write; the last copy of the corpus may be a part of it. */
  readonly passages: number;
  /** Only the first so many words of a passage; absent: all. */
  readonly words?: number;
  /**
   * Share of the words of copies that get a number of up to seven digits behind them, so that the vocabulary grows with the
   * corpus as that of real text does; default 0.
   */
  readonly newWords?: number;
}

const share = 0.1;
/** Lines that are written at a time. */
const LINES = 4096;

/** Writes passages made from `corpus` to `target`, which appears whole. */
export async function makeLargeCorpus(
  corpus: string,
  target: string,
  { passages: count, words: longest = Number.POSITIVE_INFINITY, newWords = 0 }: LargeCorpusOptions,
): Promise<void> {
  const passages: Passage[] = [];
  for await (const passage of readCorpora([corpus])) passages.push(passage);
  const words = passages.map(({ text }) => text.split(" ").slice(0, longest));
  const change = { words, newWords, chance: random(1, "large corpus") };
  const file = await open(`${target}.partial`, "w");
  try {
    let lines: string[] = [];
    for (let n = 0; n < count; n++) {
      const { id, title } = passages[n % passages.length] as Passage;
      const original = words[n % passages.length] as readonly string[];
      const copy = Math.floor(n / passages.length);
      const text = (copy === 0 ? original : perturbed(original, change)).join(" ");
      lines.push(`${JSON.stringify({ id: `${id}-${copy}`, title, text })}\n`);
      if (lines.length < LINES && n + 1 < count) continue;
      await file.appendFile(lines.join(""));
      lines = [];
    }
  } finally {
    await file.close();
  }
  await rename(`${target}.partial`, target);
}

interface Change {
  readonly words: readonly (readonly string[])[];
  readonly newWords: number;
  readonly chance: Random;
}

function perturbed(original: readonly string[], { words, newWords, chance }: Change): string[] {
  const copy = [...original];
  for (let i = 0; i < copy.length; i++) {
    const draw = chance.next();
    if (draw < share) copy[i] = chance.pick(chance.pick(words));
    else if (draw < 2 * share && i + 1 < copy.length) {
      const next = copy[i + 1] as string;
      copy[i + 1] = copy[i] as string;
      copy[i] = next;
    } else if (draw > 1 - newWords) copy[i] = `${copy[i]}${Math.floor(10 ** (7 * chance.next()))}`;
  }
  return copy;
}
