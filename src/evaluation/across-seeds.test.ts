import { expect, test } from "vitest";
import { makeContract, makeItem, makeResult } from "../../test/make-result.ts";
import { acrossSeeds } from "./across-seeds.ts";
import { methodTable } from "./method-table.ts";
import type { EvaluationResult } from "./result.ts";

/** A run that is right in the first `right` of `n` questions. */
function run(seed: number, right: number, n = 60): EvaluationResult {
  const items = Array.from({ length: n }, (_, id) =>
    makeItem({ id: String(id), em: id < right ? 1 : 0, searches: seed, answer: "x" }),
  );
  return makeResult(items, makeContract({ seed, model: { type: "embedded", model: `m${seed}` } }));
}

const options = { seed: 1, metric: "em" } as const;

test("questions get their means, and the interval holds for other seeds too", () => {
  const several = acrossSeeds([run(1, 10), run(2, 50)], options);
  expect(several.items[20]).toMatchObject({ em: 0.5, searches: 1.5 });
  expect(several.items[20]).not.toHaveProperty("answer");
  const { em, searches } = several.summary.overall;
  expect(em).toMatchObject({ n: 60, mean: 0.5 });
  // Seeds of 0.17 and 0.83: half of the resamples draw one of them twice.
  expect(em?.ci[0]).toBeLessThan(0.25);
  expect(em?.ci[1]).toBeGreaterThan(0.75);
  expect(searches?.mean).toBe(1.5);
  expect(several.summary.byDataset.nq?.em).toEqual(em);
});

test("one run is itself; a question that failed with one seed is failed; unequal contracts are refused", () => {
  const one = run(1, 10);
  expect(acrossSeeds([one], options)).toBe(one);
  const failed = {
    dataset: "nq",
    id: "0",
    failed: true,
    stopReason: "policyFailure",
    failure: "down",
  } as const;
  const partly = makeResult([failed, ...run(2, 10).items.slice(1)], makeContract({ seed: 2 }));
  const both = acrossSeeds([one, partly], options);
  expect(both.items[0]).toEqual(failed);
  expect(both.summary.overall).toMatchObject({ n: 59, failed: 1 });
  expect(() => acrossSeeds([one, makeResult(one.items, makeContract({ k: 5 }))], options)).toThrow(
    "differ in k",
  );
});

test("a table compares methods of several seeds over seeds and questions", () => {
  const method = (name: string, ...seeds: readonly EvaluationResult[]) => ({
    name,
    result: acrossSeeds(seeds, options),
    ...(seeds.length > 1 && { seeds }),
  });
  const table = methodTable(
    [
      method("rag", run(1, 20), run(2, 22), run(3, 21)),
      method("better", run(1, 50), run(2, 52), run(3, 51)),
      method("noisy", run(1, 5), run(2, 20), run(3, 50)),
      method("alone", run(1, 50)),
    ],
    { seed: 1 },
  );
  expect(table.rows.map(({ differences }) => differences.nq?.verdict)).toEqual([
    undefined,
    "better",
    "not distinguishable",
    "better",
  ]);
  expect(table.rows[1]?.differences.nq).toMatchObject({ n: 60, mean: 0.5 });
});
