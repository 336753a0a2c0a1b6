/**
 * Sorts terms by their UTF-16 code units as `sort()` does, several times as fast for a vocabulary: terms are ordered by
 * numbers made of their first letters, and compared as texts only where those are equal.
 */

const PREFIX = 5;
const KINDS = 64;
/** Room for the place of a term beside its prefix: numbers stay whole below 2^53. */
const PLACES = 2 ** 22;

/** Sorted, in a new array. */
export function sortTerms(terms: readonly string[]): string[] {
  if (terms.length > PLACES) return terms.slice().sort();
  const keys = new Float64Array(terms.length);
  for (let i = 0; i < terms.length; i++) keys[i] = prefixOf(terms[i] as string) * PLACES + i;
  keys.sort();
  const sorted = Array.from(keys, (key) => terms[key % PLACES] as string);
  let start = 0;
  for (let end = 1; end <= keys.length; end++) {
    if (end < keys.length && isSamePrefix(keys[start] as number, keys[end] as number)) continue;
    if (end - start > 1) sortRange(sorted, start, end);
    start = end;
  }
  return sorted;
}

function isSamePrefix(a: number, b: number): boolean {
  return Math.floor(a / PLACES) === Math.floor(b / PLACES);
}

/**
 * The first letters as a number that orders terms as they do, or equals that of another. A letter that shares its number
 * with others ends the prefix, since what follows it must not decide.
 */
function prefixOf(term: string): number {
  let prefix = 0;
  let isOpen = true;
  for (let i = 0; i < PREFIX; i++) {
    const kind: number = isOpen && i < term.length ? kindOf(term.charCodeAt(i)) : 0;
    isOpen = kind > BELOW && kind < ABOVE && kind !== BETWEEN;
    prefix = prefix * KINDS + kind;
  }
  return prefix;
}

const BELOW = 1;
const BETWEEN = 12;
const ABOVE = 39;

/** Digits and plain letters by their own numbers, in the order of the code units; what lies around them shares three. */
function kindOf(code: number): number {
  if (code < 48) return BELOW;
  if (code < 58) return code - 46;
  if (code < 97) return BETWEEN;
  return code < 123 ? code - 84 : ABOVE;
}

/** More are left to the engine's own sort. */
const FEW = 16;

function sortRange(terms: string[], start: number, end: number): void {
  if (end - start > FEW) {
    for (const [i, term] of terms.slice(start, end).sort().entries()) terms[start + i] = term;
    return;
  }
  for (let i = start + 1; i < end; i++) {
    const term = terms[i] as string;
    let at = i;
    for (; at > start && (terms[at - 1] as string) > term; at--) terms[at] = terms[at - 1] as string;
    terms[at] = term;
  }
}
