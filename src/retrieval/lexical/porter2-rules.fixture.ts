/** The rules of `porter2.ts` as regular expressions, as they are written down where the algorithm is described; slow. */

/** The stem of `word`. */
export function porter2ByRules(word: string): string {
  if (word.length <= 2 || !/^[a-z]+$/.test(word)) return word;
  const whole = IRREGULAR.get(word);
  if (whole !== undefined) return whole;
  const marked = markConsonantY(word);
  const r1 = startOfR1(marked);
  const regions = { r1, r2: afterVowelConsonant(marked, r1) };
  const singular = step1a(marked);
  if (AFTER_STEP_1A.has(singular)) return singular;
  const stem = STEPS.reduce((current, step) => step(current, regions), singular);
  return stem.replaceAll("Y", "y");
}

/** Where the regions of the word begin; they keep their place while endings are cut. */
interface Regions {
  readonly r1: number;
  readonly r2: number;
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

const VOWEL = /[aeiouy]/;

function markConsonantY(word: string): string {
  return word.replace(/^y/, "Y").replace(/([aeiouy])y/g, "$1Y");
}

function startOfR1(word: string): number {
  const prefix = /^(?:gener|commun|arsen)/.exec(word);
  return prefix ? prefix[0].length : afterVowelConsonant(word, 0);
}

/** The index after the first non-vowel that follows a vowel at or after `from`; the length when there is none. */
function afterVowelConsonant(word: string, from: number): number {
  for (let i = from + 1; i < word.length; i++)
    if (!VOWEL.test(word[i] as string) && VOWEL.test(word[i - 1] as string)) return i + 1;
  return word.length;
}

/** Whether `stem` ends in a short syllable: consonant, vowel, consonant other than w, x, Y; or vowel, consonant as a whole. */
function endsInShortSyllable(stem: string): boolean {
  return /[^aeiouy][aeiouy][^aeiouywxY]$/.test(stem) || /^[aeiouy][^aeiouy]$/.test(stem);
}

function step1a(word: string): string {
  if (word.endsWith("sses")) return word.slice(0, -2);
  if (/ie[ds]$/.test(word)) return word.slice(0, word.length > 4 ? -2 : -1);
  if (/(?:us|ss)$/.test(word)) return word;
  // A plural s goes only after a vowel that is not the letter just before it.
  return /[aeiouy].+s$/.test(word) ? word.slice(0, -1) : word;
}

function step1b(word: string, { r1 }: Regions): string {
  const eed = /eed(?:ly)?$/.exec(word);
  if (eed) return eed.index >= r1 ? word.slice(0, eed.index + 2) : word;
  const ending = /(?:ed|edly|ing|ingly)$/.exec(word);
  if (!ending || !VOWEL.test(word.slice(0, ending.index))) return word;
  const stem = word.slice(0, ending.index);
  if (/(?:at|bl|iz)$/.test(stem)) return `${stem}e`;
  if (/(?:bb|dd|ff|gg|mm|nn|pp|rr|tt)$/.test(stem)) return stem.slice(0, -1);
  return stem.length <= r1 && endsInShortSyllable(stem) ? `${stem}e` : stem;
}

function step1c(word: string): string {
  return /.[^aeiouy][yY]$/.test(word) ? `${word.slice(0, -1)}i` : word;
}

/** Pairs of ending and replacement, longest first, applied where the ending lies in a region. */
type Endings = readonly (readonly [ending: string, replacement: string])[];

const STEP_2: Endings = [
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
];

function step2(word: string, { r1 }: Regions): string {
  const found = STEP_2.find(([ending]) => word.endsWith(ending));
  if (found) return replaceEnding(word, found, r1);
  if (word.endsWith("ogi")) return word.at(-4) === "l" ? replaceEnding(word, ["ogi", "og"], r1) : word;
  return /[cdeghkmnrt]li$/.test(word) ? replaceEnding(word, ["li", ""], r1) : word;
}

const STEP_3: Endings = [
  ["ational", "ate"],
  ["tional", "tion"],
  ["alize", "al"],
  ["icate", "ic"],
  ["iciti", "ic"],
  ["ical", "ic"],
  ["ness", ""],
  ["ful", ""],
];

function step3(word: string, { r1, r2 }: Regions): string {
  if (word.endsWith("ative")) return replaceEnding(word, ["ative", ""], r2);
  const found = STEP_3.find(([ending]) => word.endsWith(ending));
  return found ? replaceEnding(word, found, r1) : word;
}

const STEP_4 = /(?:ement|ance|ence|able|ible|ment|ant|ent|ism|ate|iti|ous|ive|ize|al|er|ic|[st]ion)$/;

function step4(word: string, { r2 }: Regions): string {
  const ending = STEP_4.exec(word)?.[0];
  if (ending === undefined) return word;
  return replaceEnding(word, [ending.endsWith("ion") ? "ion" : ending, ""], r2);
}

function step5(word: string, { r1, r2 }: Regions): string {
  const last = word.length - 1;
  if (word.endsWith("e")) {
    const isCut = last >= r2 || (last >= r1 && !endsInShortSyllable(word.slice(0, -1)));
    return isCut ? word.slice(0, -1) : word;
  }
  return word.endsWith("ll") && last >= r2 ? word.slice(0, -1) : word;
}

const STEPS = [step1b, step1c, step2, step3, step4, step5];

function replaceEnding(word: string, [ending, replacement]: Endings[number], region: number): string {
  const start = word.length - ending.length;
  return start >= region ? word.slice(0, start) + replacement : word;
}
