/**
 * Names and relations of the `lab` world as functions of an entity's number: nothing is stored but the word
 * list. Distinct names and random orders come from affine permutations x -> (a x + b) mod n with a coprime to n;
 * who is related to whom from an integer hash.
 */
import { assert } from "../errors.ts";
import { type Random, random } from "../shared/random.ts";

/** Relations in the order in which they come into use. */
export const RELATIONS = [
  "mentor",
  "rival",
  "partner",
  "guide",
  "patron",
  "pupil",
  "envoy",
  "healer",
  "pilot",
  "scribe",
  "keeper",
  "broker",
] as const;

const CONSONANTS = [..."bdfghjklmnprtvz"];
const VOWELS = [..."aeiou"];
/** Neither the last vowel nor the ending lets a stemmer take two words for one. */
const LAST_VOWELS = [..."aiou"];
const ENDINGS = ["", "n", "k", "m", "x"];
const WORD_COUNT = CONSONANTS.length ** 2 * VOWELS.length * LAST_VOWELS.length * ENDINGS.length;

/** The greatest number of words that names can be made of. */
export const MAX_NAME_WORDS = 8000;

export interface LabFacts {
  readonly relations: readonly string[];
  /** The two-word name of entity `entity`, 0 <= entity < entities; no two entities share one. */
  nameOf(entity: number): string;
  /** The entity that `label` (a relation, or another use) leads to; never `entity` itself. */
  otherEntity(entity: number, label: string): number;
}

export interface LabShape {
  readonly seed: number;
  readonly entities: number;
  /** Words in use; its square is at least `entities`. */
  readonly wordsInUse: number;
  readonly relations: number;
}

export function labFacts({ seed, entities, wordsInUse, relations }: LabShape): LabFacts {
  assert(
    wordsInUse ** 2 >= entities && wordsInUse <= MAX_NAME_WORDS,
    `${wordsInUse} words, ${entities} entities`,
  );
  const words = makeWords(wordsInUse, random(seed, "lab", "words"));
  const pairOf = permutation(wordsInUse ** 2, random(seed, "lab", "names"));
  const salts = new Map<string, number>();
  const saltOf = (label: string): number => {
    const salt = salts.get(label) ?? random(seed, "lab", label).below(2 ** 32);
    salts.set(label, salt);
    return salt;
  };
  return {
    relations: RELATIONS.slice(0, relations),
    nameOf: (entity) => {
      const pair = pairOf(entity);
      return `${words[Math.floor(pair / wordsInUse)]} ${words[pair % wordsInUse]}`;
    },
    otherEntity: (entity, label) =>
      (entity + 1 + (hashInteger(entity ^ saltOf(label)) % (entities - 1))) % entities,
  };
}

/** A pseudo-random permutation of 0 .. size - 1 in constant memory; `size` is at most 2^26. */
export function permutation(size: number, draw: Random): (index: number) => number {
  assert(size <= 2 ** 26, `permutation of ${size} numbers would lose precision`);
  let factor = 1 + draw.below(size);
  while (greatestCommonDivisor(factor, size) !== 1) factor = 1 + draw.below(size);
  const shift = draw.below(size);
  return (index) => (factor * index + shift) % size;
}

/** A well mixed 32-bit hash of a 32-bit integer (the finaliser of MurmurHash3). */
export function hashInteger(value: number): number {
  let h = value | 0;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/** Words of two open syllables and an optional last consonant, such as "toval" or "mira"; all different. */
function makeWords(count: number, draw: Random): string[] {
  const numbers = draw.shuffle(Array.from({ length: WORD_COUNT }, (_, number) => number));
  return numbers.slice(0, count).map((number) => {
    let rest = number;
    return [CONSONANTS, VOWELS, CONSONANTS, LAST_VOWELS, ENDINGS]
      .map((letters) => {
        const letter = letters[rest % letters.length] as string;
        rest = Math.floor(rest / letters.length);
        return letter;
      })
      .join("");
  });
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}
