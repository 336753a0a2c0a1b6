/**
 * The nearest known word to a mistyped one, by Damerau-Levenshtein distance (optimal string alignment: insert,
 * delete, replace, swap neighbours). Quadratic in the length of a word; meant for keys and command names.
 */

/** Least number of single-character edits from `a` to `b`; a swap of two neighbours counts as one. */
export function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const replace = at(last, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1);
      let best = Math.min(at(last, j) + 1, at(row, j - 1) + 1, replace);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        best = Math.min(best, at(beforeLast, j - 2) + 1);
      row.push(best);
    }
    beforeLast = last;
    last = row;
  }
  return at(last, b.length);
}

/**
 * The candidate that `word` was probably meant to be, or undefined when none is near: at most a third of the
 * letters wrong (two for short words), compared without regard to case. Ties go to the earlier candidate.
 */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  const lower = word.toLowerCase();
  let best: string | undefined;
  let bestDistance = Math.max(2, Math.floor(word.length / 3)) + 1;
  for (const candidate of candidates) {
    const distance = editDistance(lower, candidate.toLowerCase());
    if (distance < bestDistance && distance < candidate.length) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** `; did you mean "x"?`, or the list of what is known when nothing is near. */
export function suggestion(word: string, candidates: readonly string[]): string {
  const near = nearest(word, candidates);
  if (near !== undefined) return `; did you mean "${near}"?`;
  return candidates.length === 0 ? "" : `; known: ${candidates.join(", ")}`;
}

function at(row: readonly number[], index: number): number {
  return row[index] as number;
}
