import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Retriever } from "../../retrieval/retriever.ts";
import { rankedIds } from "./ranking.ts";
import { retrieveRun } from "./retrieve-run.ts";

/** A retriever that finds passages with these scores, in this order, whatever is asked. */
const finding = (scores: readonly number[]): Retriever => ({
  identity: { method: "fixed", corpusHash: "c", indexHash: "i", parameters: {} },
  retrieve: async (queries) =>
    queries.map(() =>
      scores.map((score, i) => ({ passage: { id: `d${i}`, title: "", text: "text" }, score })),
    ),
});

async function runOf(scores: readonly number[]) {
  for await (const [, entries] of retrieveRun(finding(scores), [{ id: "q", text: "q" }], { k: 100 }))
    return entries;
  return [];
}

describe("a run of a retriever", () => {
  test("ranks equal scores as the retriever did, though trec_eval goes by the id", async () => {
    const entries = await runOf([2, 1, 1, 1 - 1e-12, 0.5]);
    expect(rankedIds(entries)).toEqual(["d0", "d1", "d2", "d3", "d4"]);
    expect(entries.map(({ score }) => score)).toEqual([2, 1, 1 - 2 ** -24, 1 - 2 ** -23, 0.5]);
  });

  test("keeps scores that fall to the last bit", async () => {
    expect((await runOf([1 / 3, 0.1, -1e-20, -5])).map(({ score }) => score)).toEqual([
      1 / 3,
      0.1,
      -1e-20,
      -5,
    ]);
  });

  test("has the order of the retriever, whatever the scores", async () => {
    const score = fc.oneof(
      fc.constantFrom(0, -0, 1, 1e-45, -1e-45),
      fc.double({ min: -1e9, max: 1e9, noNaN: true }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(score, { maxLength: 20 }), async (scores) => {
        const entries = await runOf(scores);
        expect(rankedIds(entries)).toEqual(scores.map((_, i) => `d${i}`));
      }),
    );
  });
});
