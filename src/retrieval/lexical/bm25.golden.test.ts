/** Scores of both variants against bm25s; the expected values and their script are in `test/golden/bm25`. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type Bm25Options, buildBm25Index } from "./bm25.ts";

interface Golden {
  readonly passages: readonly string[];
  readonly queries: readonly string[];
  readonly settings: readonly (Pick<Bm25Options, "variant" | "k1" | "b"> & {
    /** (queries, passages) */
    readonly scores: readonly (readonly number[])[];
  })[];
}

const golden = JSON.parse(
  readFileSync(join(import.meta.dirname, "../../../test/golden/bm25/scores.json"), "utf8"),
) as Golden;
const passages = golden.passages.map((text, i) => ({ id: `${i}`, title: "", text }));

test.each(golden.settings)("$variant with k1 $k1 and b $b scores as bm25s does", async (setting) => {
  const { scores: expected, ...options } = setting;
  const index = await buildBm25Index(passages, { ...options, stemming: false, stopWords: false });
  const answers = await index.rank(golden.queries, passages.length);
  for (const [q, { positions, scores }] of answers.entries()) {
    const own = new Float64Array(passages.length);
    for (const [rank, position] of positions.entries()) own[position] = scores[rank] as number;
    // Impacts are kept as 32-bit floats: 24 bits each.
    for (const [i, score] of own.entries()) expect(score).toBeCloseTo(expected[q]?.[i] as number, 5);
  }
});

test("the two variants rank differently", () => {
  const [lucene, plus] = ["lucene", "bm25+"].map((variant) =>
    golden.settings.find((setting) => setting.variant === variant && setting.b === 1),
  );
  const order = (scores: readonly number[]) =>
    [...scores.keys()].sort((a, b) => (scores[b] as number) - (scores[a] as number) || a - b);
  expect(plus?.scores.map(order)).not.toEqual(lucene?.scores.map(order));
});
