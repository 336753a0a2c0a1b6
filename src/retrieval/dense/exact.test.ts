import fc from "fast-check";
import { expect, test } from "vitest";
import { random } from "../../shared/random.ts";
import { ExactSearch, mergeNeighbours, type Neighbours } from "./exact.ts";

/** Small whole numbers: products are exact in floats, and ties are common. */
function wholeVectors(count: number, dimensions: number, seed: number): Float32Array {
  const chance = random(seed, "vectors");
  return Float32Array.from({ length: count * dimensions }, () => chance.below(7) - 3);
}

function bruteForce(vectors: Float32Array, query: Float32Array, k: number): Neighbours {
  const dimensions = query.length;
  const all = Array.from({ length: vectors.length / dimensions }, (_, position) => {
    const row = vectors.subarray(position * dimensions, (position + 1) * dimensions);
    return { position, score: row.reduce((sum, x, i) => sum + x * (query[i] as number), 0) };
  });
  all.sort((a, b) => b.score - a.score || a.position - b.position);
  const best = all.slice(0, k);
  return { positions: best.map(({ position }) => position), scores: best.map(({ score }) => score) };
}

async function* cut(vectors: Float32Array, dimensions: number, rows: number): AsyncGenerator<Float32Array> {
  for (let at = 0; at < vectors.length; at += rows * dimensions)
    yield vectors.slice(at, at + rows * dimensions);
}

const shapes = fc.record({
  count: fc.integer({ min: 1, max: 200 }),
  dimensions: fc.integer({ min: 1, max: 40 }),
  segment: fc.integer({ min: 1, max: 200 }),
  queries: fc.integer({ min: 0, max: 70 }),
  k: fc.integer({ min: 1, max: 250 }),
  seed: fc.integer({ min: 0, max: 1000 }),
});

test("finds what brute force finds, ties by position, however the vectors are cut into segments", async () => {
  await fc.assert(
    fc.asyncProperty(shapes, async ({ count, dimensions, segment, queries, k, seed }) => {
      const vectors = wholeVectors(count, dimensions, seed);
      const asked = wholeVectors(queries, dimensions, seed + 1);
      const search = await ExactSearch.open(cut(vectors, dimensions, segment), dimensions, 1);
      const found = await search.search(asked, k);
      await search.close();
      const expected = Array.from({ length: queries }, (_, i) =>
        bruteForce(vectors, asked.subarray(i * dimensions, (i + 1) * dimensions), k),
      );
      expect(found).toEqual(expected);
    }),
    { numRuns: 40 },
  );
});

test("gives a query the same scores alone and among others", async () => {
  const [count, dimensions, queries] = [1111, 96, 130];
  const chance = random(3, "normal");
  const normal = (n: number): Float32Array =>
    Float32Array.from({ length: n * dimensions }, () => chance.normal());
  const vectors = normal(count);
  const asked = normal(queries);
  const search = await ExactSearch.open(cut(vectors, dimensions, 500), dimensions, 2);
  const together = await search.search(asked, 20);
  for (const i of [0, 1, 63, 64, 129]) {
    const [alone] = await search.search(asked.subarray(i * dimensions, (i + 1) * dimensions), 20);
    expect(alone).toEqual(together[i]);
  }
  await search.close();
});

test("two answers merge into the best of both, and the first wins ties", () => {
  const a = { positions: [3, 1], scores: [5, 2] };
  const b = { positions: [10, 11, 12], scores: [5, 5, 1] };
  expect(mergeNeighbours(a, b, 4)).toEqual({ positions: [3, 10, 11, 1], scores: [5, 5, 5, 2] });
  expect(mergeNeighbours(a, { positions: [], scores: [] }, 4)).toEqual(a);
  expect(mergeNeighbours({ positions: [0], scores: [Number.NEGATIVE_INFINITY] }, b, 9).positions).toEqual([
    10, 11, 12, 0,
  ]);
});

test("stops with the reason of the signal", async () => {
  const vectors = wholeVectors(50, 4, 1);
  const search = await ExactSearch.open(cut(vectors, 4, 50), 4, 1);
  const reason = new Error("enough");
  await expect(search.search(vectors, 3, AbortSignal.abort(reason))).rejects.toBe(reason);
  await search.close();
});
