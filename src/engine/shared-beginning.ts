/**
 * Finds what a new context shares with contexts that are cached or being computed: the rollouts of a group have the
 * same prompt, the questions of a run the same instructions. Equal beginnings have equal keys and values, which
 * are copied instead of being computed again.
 */

/** A neighbour of the new context. */
export interface Neighbour {
  /** The tokens whose keys and values are cached. */
  readonly cached: readonly number[];
  /** All tokens of a context that is being computed, which begins with what is cached; absent in an idle slot. */
  readonly tokens: readonly number[] | undefined;
}

export interface Beginning<N extends Neighbour> {
  readonly neighbour: N;
  /** Tokens that are shared; the neighbour may have yet to compute some of them. */
  readonly rows: number;
}

/** Fewer tokens than this are computed sooner than they are looked up, waited for and copied. */
const leastGain = 16;

/**
 * The longest beginning of `tokens` that a neighbour has or will have, if it is worth it: `leastGain` tokens longer than
 * the `own` that are there already; one that must be waited for as much longer than one that is there. The last
 * token is left to run.
 */
export function sharedBeginning<N extends Neighbour>(
  tokens: readonly number[],
  own: number,
  neighbours: readonly N[],
): Beginning<N> | undefined {
  const limit = tokens.length - 1;
  let ready: Beginning<N> | undefined;
  let later: Beginning<N> | undefined;
  for (const neighbour of neighbours) {
    const rows = commonLength(neighbour.cached, tokens, limit);
    if (rows > (ready?.rows ?? 0)) ready = { neighbour, rows };
    if (neighbour.tokens === undefined || rows < neighbour.cached.length) continue;
    const promised = commonLength(neighbour.tokens, tokens, limit);
    if (promised > (later?.rows ?? 0)) later = { neighbour, rows: promised };
  }
  if (later && later.rows >= Math.max(own, ready?.rows ?? 0) + leastGain) return later;
  return ready && ready.rows >= own + leastGain ? ready : undefined;
}

/** How many tokens two sequences share from the start, at most `limit`. */
export function commonLength(a: readonly number[], b: readonly number[], limit: number): number {
  const end = Math.min(a.length, b.length, limit);
  let length = 0;
  while (length < end && a[length] === b[length]) length++;
  return length;
}
