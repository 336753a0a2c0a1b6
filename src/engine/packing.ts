/**
 * The tokens of a micro-batch as rows, each computed once. Rollouts of one question begin alike, and since no token looks ahead,
 * equal beginnings have equal hidden states: they are one row. Padding has none. Attention alone sees whole sequences: at its
 * places (sequence, time) rows are laid out, and taken back from one place each.
 */
import { assert } from "../errors.ts";

/** Sequences of a micro-batch, padded to the right to one length. */
export interface Sequences {
  /** The token of each row (N): each place (batch * time), or what is packed. */
  readonly tokens: Int32Array;
  readonly batch: number;
  readonly time: number;
  readonly packing?: Packing | undefined;
}

/** Where N rows lie among the places (batch, time). */
export interface Packing {
  /** The token of each row, and its position in its sequence (N). */
  readonly tokens: Int32Array;
  readonly positions: Int32Array;
  /** The row of each place (batch * time); padding shows any. */
  readonly rowOfPlace: Int32Array;
  /** The first place of each row (N), as an index into the places. */
  readonly placeOfRow: Int32Array;
  /** Rows with several places (S), and all places of each; one row with its only place where there is none. */
  readonly repeated: readonly { readonly row: number; readonly places: readonly number[] }[];
  /** Tokens that have the row of another's. */
  readonly sharedTokens: number;
}

/** Packs sequences of at most `time` tokens, at least one with a token. */
export function packSequences(sequences: readonly Int32Array[], time: number): Packing {
  assert(
    sequences.some(({ length }) => length > 0),
    "a micro-batch without tokens",
  );
  const { beginningOfPlace, counts } = findBeginnings(sequences, time);
  const mostPlaces = placesOfRow(counts);
  const rowOfPlace = new Int32Array(sequences.length * time);
  const rows: { readonly token: number; readonly position: number; readonly places: number[] }[] = [];
  /** The newest row of each beginning. */
  const rowOf: number[] = [];
  for (const [index, sequence] of sequences.entries()) {
    for (const [position, token] of sequence.entries()) {
      const place = index * time + position;
      const beginning = beginningOfPlace[place] as number;
      const shared = rowOf[beginning] ?? -1;
      const places = rows[shared]?.places;
      const row = places !== undefined && places.length < mostPlaces ? shared : rows.length;
      rowOfPlace[place] = row;
      rowOf[beginning] = row;
      if (row === rows.length) rows.push({ token, position, places: [place] });
      else places?.push(place);
    }
  }
  const repeated = rows.flatMap(({ places }, row) => (places.length > 1 ? [{ row, places }] : []));
  return {
    tokens: Int32Array.from(rows, ({ token }) => token),
    positions: Int32Array.from(rows, ({ position }) => position),
    rowOfPlace,
    placeOfRow: Int32Array.from(rows, ({ places }) => places[0] as number),
    repeated: repeated.length > 0 ? repeated : [{ row: 0, places: [rows[0]?.places[0] as number] }],
    sharedTokens: repeated.reduce((sum, { places }) => sum + places.length - 1, 0),
  };
}

/**
 * A number for what each place ends (batch * time), from its sequence's start on: the same where the tokens are the same;
 * and how many places each of these beginnings has.
 */
function findBeginnings(
  sequences: readonly Int32Array[],
  time: number,
): { readonly beginningOfPlace: Int32Array; readonly counts: readonly number[] } {
  const beginningOfPlace = new Int32Array(sequences.length * time);
  const counts: number[] = [];
  for (const [index, sequence] of sequences.entries()) {
    const { other, length } = longestBeginning(sequence, sequences.slice(0, index));
    for (let t = 0; t < sequence.length; t++) {
      const beginning = t < length ? (beginningOfPlace[other * time + t] as number) : counts.length;
      beginningOfPlace[index * time + t] = beginning;
      counts[beginning] = (counts[beginning] ?? 0) + 1;
    }
  }
  return { beginningOfPlace, counts };
}

/**
 * The most places of a row, where beginnings have so many. Gradients are added up in a table (`packing-graph.ts`) with a line
 * for each row of several places, all as wide as the widest: of at most 32 places, and no more than half of it empty, so that
 * it takes less memory than sharing saves (it has no part in `memory-estimate.ts`).
 */
function placesOfRow(counts: readonly number[]): number {
  const most = counts.reduce((a, b) => Math.max(a, b));
  for (let width = Math.min(32, most); width > 2; width--) {
    let [lines, filled] = [0, 0];
    for (const count of counts) {
      const places = count % width === 1 ? count - 1 : count;
      lines += Math.ceil(places / width);
      filled += places;
    }
    if (lines * width <= 2 * filled) return width;
  }
  return 2;
}

/** Which of the others begins like the sequence for longest, the first of equals. */
function longestBeginning(
  sequence: Int32Array,
  others: readonly Int32Array[],
): { readonly other: number; readonly length: number } {
  let best = { other: 0, length: 0 };
  for (const [other, candidate] of others.entries()) {
    const length = commonBeginning(sequence, candidate);
    if (length > best.length) best = { other, length };
  }
  return best;
}

/** Tokens that two sequences have in common from the start. */
export function commonBeginning(a: Int32Array, b: Int32Array): number {
  const end = Math.min(a.length, b.length);
  let length = 0;
  while (length < end && a[length] === b[length]) length++;
  return length;
}

/** Fewer tokens less than this share are computed sooner than they are laid out for attention and taken back. */
const leastSaving = 0.03;

/** Sequences of at most `time` tokens, one after the other and padded; packed where that saves enough. */
export function layTokens(sequences: readonly Int32Array[], time: number): Sequences {
  const size = { batch: sequences.length, time };
  const places = sequences.length * time;
  const packing = packSequences(sequences, time);
  if (packing.tokens.length <= (1 - leastSaving) * places)
    return { ...size, tokens: packing.tokens, packing };
  return { ...size, tokens: padTokens(sequences, time) };
}

/** Sequences one after the other, each padded to `time` tokens. */
export function padTokens(sequences: readonly Int32Array[], time: number): Int32Array {
  const tokens = new Int32Array(sequences.length * time);
  for (const [row, sequence] of sequences.entries()) tokens.set(sequence, row * time);
  return tokens;
}
