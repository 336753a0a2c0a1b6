import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Ranker } from "./ranking.ts";
import type { TermEntries } from "./term-entries.ts";
import type { Ranking } from "./top-k.ts";

/** Every entry added in the order of the terms, then sorted. */
function bruteForce(terms: readonly TermEntries[], k: number): [position: number, score: number][] {
  const sums = new Map<number, number>();
  for (const { passages, impacts, from, to, weight } of terms)
    for (let i = from; i < to; i++) {
      const passage = passages[i] as number;
      sums.set(passage, (sums.get(passage) ?? 0) + weight * (impacts[i] as number));
    }
  return [...sums].sort(([p, a], [q, b]) => b - a || p - q).slice(0, k);
}

function pairs({ positions, scores }: Ranking): [number, number][] {
  return Array.from(positions, (position, i) => [position, scores[i] as number]);
}

function termOf(
  entries: readonly (readonly [passage: number, impact: number])[],
  weight: number,
): TermEntries {
  const impacts = Float32Array.from(entries, ([, impact]) => impact);
  return {
    passages: Uint32Array.from(entries, ([passage]) => passage),
    impacts,
    from: 0,
    to: entries.length,
    weight,
    least: impacts.reduce((a, b) => Math.min(a, b)),
    greatest: impacts.reduce((a, b) => Math.max(a, b)),
  };
}

/** A term in every n-th passage on average, with impacts from a few values, so that scores are often equal. */
function madeUpTerm(
  count: number,
  { every, weight, seed }: { readonly every: number; readonly weight: number; readonly seed: number },
): TermEntries {
  let state = seed;
  const next = (): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
  const entries: [number, number][] = [];
  for (let passage = 0; passage < count; passage++)
    if (next() * every < 1)
      entries.push([passage, Math.fround(Math.ceil(next() * 6) / every / 3 + Math.log(every) / 7)]);
  return termOf(entries.length > 0 ? entries : [[0, 1]], weight);
}

const terms = (count: number, weight: fc.Arbitrary<number>) =>
  fc.array(
    fc
      .record({ every: fc.constantFrom(1.1, 2, 5, 20, 100, 1000), weight, seed: fc.nat(1_000_000) })
      .map((made) => madeUpTerm(count, made)),
    { minLength: 1, maxLength: 8 },
  );

describe.each([
  ["a corpus within one window", 3000, undefined],
  ["a corpus of many small windows", 3000, 129],
  ["a corpus of several windows", 200_000, undefined],
])("in %s", (_, count, mostAtOnce) => {
  const ranker = new Ranker(count, mostAtOnce === undefined ? {} : { mostAtOnce });
  const k = fc.constantFrom(1, 2, 10, 100, 5000);

  test.each([
    ["whole weights", fc.integer({ min: 1, max: 4 })],
    ["weights that round sums", fc.double({ min: 0.01, max: 2, noNaN: true })],
  ])("finds what adding up everything finds, bit for bit, with %s", (_name, weight) => {
    fc.assert(
      fc.property(terms(count, weight), k, (list, limit) => {
        expect(pairs(ranker.rank(list, limit))).toEqual(bruteForce(list, limit));
      }),
      { numRuns: count > 10_000 ? 15 : 300 },
    );
  });
});

test("ranks impacts of very different size as their sum in order does", () => {
  const list = [
    termOf(
      [
        [0, 2 ** 40],
        [1, 2 ** 40],
      ],
      1,
    ),
    termOf(
      [
        [0, 2 ** -30],
        [1, 2 ** -29],
      ],
      1,
    ),
    termOf([[0, 2 ** -30]], 1),
  ];
  expect(pairs(new Ranker(2).rank(list, 2))).toEqual(bruteForce(list, 2));
});

test("finds nothing for no terms and for terms without entries, and leaves nothing behind", () => {
  const ranker = new Ranker(100);
  const one = termOf([[7, 1.5]], 2);
  expect(pairs(ranker.rank([], 3))).toEqual([]);
  expect(pairs(ranker.rank([one], 3))).toEqual([[7, 3]]);
  expect(pairs(ranker.rank([{ ...one, to: 0 }], 3))).toEqual([]);
  expect(pairs(ranker.rank([one], 3))).toEqual([[7, 3]]);
});
