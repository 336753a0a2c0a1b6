/**
 * A large corpus out of a real one: the passages themselves, then copies in which every tenth word is drawn from
 * another passage and every tenth swapped with the next, so that word frequencies stay those of real text while no two
 * passages are equal. Seeded: equal input gives equal bytes.
 */
import { open, rename } from "node:fs/promises";
import type { Passage } from "../src/corpus/passage.ts";
import { readCorpora } from "../src/corpus/read-corpora.ts";
import { random } from "../src/shared/random.ts";

const share = 0.1;

/** Writes `copies` times the passages of `corpus` to `target`; returns how many. The file appears whole. */
export async function makeLargeCorpus(corpus: string, target: string, copies: number): Promise<number> {
  const passages: Passage[] = [];
  for await (const passage of readCorpora([corpus])) passages.push(passage);
  const words = passages.map(({ text }) => text.split(" "));
  const chance = random(1, "large corpus");
  const anyWord = (): string => {
    const other = words[chance.below(words.length)] as string[];
    return other[chance.below(other.length)] as string;
  };
  const perturbed = (original: readonly string[]): string => {
    const copy = [...original];
    for (let i = 0; i < copy.length; i++) {
      const draw = chance.next();
      if (draw < share) copy[i] = anyWord();
      else if (draw < 2 * share && i + 1 < copy.length) {
        const next = copy[i + 1] as string;
        copy[i + 1] = copy[i] as string;
        copy[i] = next;
      }
    }
    return copy.join(" ");
  };
  const file = await open(`${target}.partial`, "w");
  try {
    for (let copy = 0; copy < copies; copy++) {
      const lines = passages.map(({ id, title, text }, index) => {
        const changed = copy === 0 ? text : perturbed(words[index] as string[]);
        return `${JSON.stringify({ id: `${id}-${copy}`, title, text: changed })}\n`;
      });
      await file.appendFile(lines.join(""));
    }
  } finally {
    await file.close();
  }
  await rename(`${target}.partial`, target);
  return passages.length * copies;
}
