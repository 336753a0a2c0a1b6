/**
 * Rankings and judgements, and the order in which trec_eval 9 reads a run: scores as 32-bit floats, highest first;
 * equal ones by passage id, the last in byte order first. The rank that a run file states is not looked at.
 */

/** Grades by query id and passage id; a grade of 0 or less is "judged, not relevant". */
export type Qrels = ReadonlyMap<string, ReadonlyMap<string, number>>;

export interface RunEntry {
  readonly id: string;
  /** Higher is better; comparable within one query only. */
  readonly score: number;
}

/** What a retriever returned for each query id, in any order, each passage once. */
export type Run = ReadonlyMap<string, readonly RunEntry[]>;

/** Passage ids, best first, in the order of trec_eval. */
export function rankedIds(entries: readonly RunEntry[]): string[] {
  return entries
    .map(({ id, score }) => ({ id, score: Math.fround(score) }))
    .sort((a, b) => b.score - a.score || compareBytes(b.id, a.id))
    .map(({ id }) => id);
}

/** Orders texts by their UTF-8 bytes, which differs from JavaScript's order where surrogates meet U+E000-U+FFFF. */
export function compareBytes(a: string, b: string): number {
  const shared = Math.min(a.length, b.length);
  for (let i = 0; i < shared; i++) {
    const left = a.charCodeAt(i);
    const right = b.charCodeAt(i);
    if (left !== right) return byteRank(left) - byteRank(right);
  }
  return a.length - b.length;
}

/** Moves surrogates, which stand for U+10000 and above, behind the other code units. */
function byteRank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit;
}
