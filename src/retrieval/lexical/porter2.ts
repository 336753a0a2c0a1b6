/**
 * The Porter2 (English Snowball) stemmer, after Martin Porter's description of the algorithm (2001-2005
 * version): "running" becomes "run", "relational" becomes "relat". Input is one lower-case word; words with
 * letters outside a-z come back unchanged. Apostrophes do not occur, since analysis splits words at them.
 *
 * A build stems each word of the corpus once, which took a good part of its time with regular expressions; here a word is
 * worked on as bytes. `porter2-rules.fixture.ts` says the same rules in expressions, and tests hold the two together.
 *
 * R1 is the part of a word after the first consonant that follows a vowel, R2 the same within R1. A `y` that
 * acts as a consonant is written `Y` while the steps run.
 */

/** The stem of `word`. */
export function porter2(word: string): string {
  if (word.length <= 2 || !load(word)) return word;
  const whole = IRREGULAR.get(word);
  if (whole !== undefined) return whole;
  r1 = startOfR1(word);
  r2 = afterVowelConsonant(r1);
  step1a();
  if (AFTER_STEP_1A.has(end === word.length ? word : word.slice(0, end))) return word.slice(0, end);
  step1b();
  step1c();
  step2();
  step3();
  step4();
  step5();
  return stemOf(word);
}

const IRREGULAR: ReadonlyMap<string, string> = new Map([
  ["skis", "ski"],
  ["skies", "sky"],
  ["dying", "die"],
  ["lying", "lie"],
  ["tying", "tie"],
  ["idly", "idl"],
  ["gently", "gentl"],
  ["ugly", "ugli"],
  ["early", "earli"],
  ["only", "onli"],
  ["singly", "singl"],
  ...["sky", "news", "howe", "atlas", "cosmos", "bias", "andes"].map((word) => [word, word] as const),
]);

/** Words that are left alone once a plural s is gone. */
const AFTER_STEP_1A: ReadonlySet<string> = new Set([
  "inning",
  "outing",
  "canning",
  "herring",
  "earring",
  "proceed",
  "exceed",
  "succeed",
]);

/** The word at hand: its letters up to `end`, which steps move, and where its regions begin, which stay. */
let letters = new Uint8Array(64);
let end = 0;
let r1 = 0;
let r2 = 0;

const code = (letter: string): number => letter.charCodeAt(0);
const [A, D, E, I, L, S, Z, LOWER_Y, CONSONANT_Y] = [..."adeilszyY"].map(code) as [
  ...[number, number, number, number, number, number, number, number, number],
];

/** (128) Sets of letters by their codes. */
function setOf(members: string): Uint8Array {
  const set = new Uint8Array(128);
  for (const letter of members) set[code(letter)] = 1;
  return set;
}
const VOWELS = setOf("aeiouy");
const AFTER_SHORT_VOWEL = setOf("bcdfghjklmnpqrstvz");
const DOUBLES = setOf("bdfgmnprt");
const BEFORE_LI = setOf("cdeghkmnrt");

const isIn = (set: Uint8Array, place: number): boolean => set[letters[place] as number] === 1;

/** Takes a word up and marks each `y` that acts as a consonant; false where it has letters outside a-z. */
function load(word: string): boolean {
  if (word.length > letters.length) letters = new Uint8Array(2 * word.length);
  for (let i = 0; i < word.length; i++) {
    const letter = word.charCodeAt(i);
    if (letter < A || letter > Z) return false;
    const isConsonant = letter === LOWER_Y && (i === 0 || isIn(VOWELS, i - 1));
    letters[i] = isConsonant ? CONSONANT_Y : letter;
  }
  end = word.length;
  return true;
}

/** What is left of `word`, of which most stems are the beginning. */
function stemOf(word: string): string {
  let same = 0;
  while (same < end && plain(same) === word.charCodeAt(same)) same++;
  let stem = same === word.length ? word : word.slice(0, same);
  for (let i = same; i < end; i++) stem += String.fromCharCode(plain(i));
  return stem;
}

function plain(place: number): number {
  const letter = letters[place] as number;
  return letter === CONSONANT_Y ? LOWER_Y : letter;
}

function startOfR1(word: string): number {
  if (word.startsWith("gener") || word.startsWith("arsen")) return 5;
  return word.startsWith("commun") ? 6 : afterVowelConsonant(0);
}

/** The index after the first non-vowel that follows a vowel at or after `from`; the length when there is none. */
function afterVowelConsonant(from: number): number {
  for (let i = from + 1; i < end; i++) if (!isIn(VOWELS, i) && isIn(VOWELS, i - 1)) return i + 1;
  return end;
}

function hasVowelBefore(place: number): boolean {
  for (let i = 0; i < place; i++) if (isIn(VOWELS, i)) return true;
  return false;
}

function ends(ending: string): boolean {
  const start = end - ending.length;
  if (start < 0) return false;
  for (let i = ending.length - 1; i >= 0; i--) if (letters[start + i] !== ending.charCodeAt(i)) return false;
  return true;
}

/** Whether the first `length` letters end in a short syllable: consonant, vowel, consonant other than w, x, Y; or are vowel, consonant. */
function endsInShortSyllable(length: number): boolean {
  if (length < 2 || !isIn(VOWELS, length - 2)) return false;
  if (length === 2) return !isIn(VOWELS, 1);
  return isIn(AFTER_SHORT_VOWEL, length - 1) && !isIn(VOWELS, length - 3);
}

/** Puts `replacement` in the place of `ending`, which the word has, where that lies in the region. */
function replace(ending: string, replacement: string, region: number): void {
  const start = end - ending.length;
  if (start < region) return;
  for (let i = 0; i < replacement.length; i++) letters[start + i] = replacement.charCodeAt(i);
  end = start + replacement.length;
}

function step1a(): void {
  const last = letters[end - 1];
  if (last !== S && last !== D) return;
  if (ends("sses")) end -= 2;
  else if (ends("ied") || ends("ies")) end -= end > 4 ? 2 : 1;
  else if (last === S && !ends("us") && !ends("ss") && hasVowelBefore(end - 2)) end--;
}

function step1b(): void {
  if (ends("eed") || ends("eedly")) {
    const start = end - (ends("eed") ? 3 : 5);
    if (start >= r1) end = start + 2;
    return;
  }
  const ending = ENDINGS_1B.find(ends);
  if (ending === undefined || !hasVowelBefore(end - ending.length)) return;
  end -= ending.length;
  if (ends("at") || ends("bl") || ends("iz")) letters[end++] = E;
  else if (letters[end - 1] === letters[end - 2] && isIn(DOUBLES, end - 1)) end--;
  else if (end <= r1 && endsInShortSyllable(end)) letters[end++] = E;
}

const ENDINGS_1B = ["ed", "edly", "ing", "ingly"];

function step1c(): void {
  const last = letters[end - 1];
  if (end > 2 && (last === LOWER_Y || last === CONSONANT_Y) && !isIn(VOWELS, end - 2)) letters[end - 1] = I;
}

/** Pairs of ending and replacement, longest first, applied where the ending lies in a region. */
type Endings = readonly (readonly [ending: string, replacement: string])[];

/** (128) The endings by their last letter, in the same order. */
function byLastLetter(endings: Endings): readonly Endings[] {
  return Array.from({ length: 128 }, (_, letter) =>
    endings.filter(([ending]) => ending.charCodeAt(ending.length - 1) === letter),
  );
}

/** The first of the endings that the word has, or undefined. */
function endingOf(endings: readonly Endings[]): Endings[number] | undefined {
  const candidates = endings[letters[end - 1] as number] as Endings;
  for (let i = 0; i < candidates.length; i++) {
    const candidate = candidates[i] as Endings[number];
    if (ends(candidate[0])) return candidate;
  }
  return undefined;
}

const STEP_2 = byLastLetter([
  ["ational", "ate"],
  ["fulness", "ful"],
  ["iveness", "ive"],
  ["ization", "ize"],
  ["ousness", "ous"],
  ["biliti", "ble"],
  ["lessli", "less"],
  ["tional", "tion"],
  ["alism", "al"],
  ["aliti", "al"],
  ["ation", "ate"],
  ["entli", "ent"],
  ["fulli", "ful"],
  ["iviti", "ive"],
  ["ousli", "ous"],
  ["abli", "able"],
  ["alli", "al"],
  ["anci", "ance"],
  ["ator", "ate"],
  ["enci", "ence"],
  ["izer", "ize"],
  ["bli", "ble"],
]);

function step2(): void {
  const found = endingOf(STEP_2);
  if (found !== undefined) replace(found[0], found[1], r1);
  else if (ends("ogi")) {
    if (letters[end - 4] === L) replace("ogi", "og", r1);
  } else if (ends("li") && isIn(BEFORE_LI, end - 3)) replace("li", "", r1);
}

const STEP_3 = byLastLetter([
  ["ational", "ate"],
  ["tional", "tion"],
  ["alize", "al"],
  ["icate", "ic"],
  ["iciti", "ic"],
  ["ical", "ic"],
  ["ness", ""],
  ["ful", ""],
]);

function step3(): void {
  const found = endingOf(STEP_3);
  if (found !== undefined) replace(found[0], found[1], r1);
  else if (ends("ative")) replace("ative", "", r2);
}

const STEP_4 = byLastLetter(
  "ement ance ence able ible ment ant ent ism ate iti ous ive ize al er ic"
    .split(" ")
    .map((ending) => [ending, ""]),
);

function step4(): void {
  const found = endingOf(STEP_4);
  if (found !== undefined) replace(found[0], "", r2);
  else if (ends("sion") || ends("tion")) replace("ion", "", r2);
}

function step5(): void {
  const last = end - 1;
  const isCut =
    letters[last] === E ? last >= r2 || (last >= r1 && !endsInShortSyllable(last)) : ends("ll") && last >= r2;
  if (isCut) end--;
}
