/** Memory of the models beside the trained one, from recipes and made-up sizes. */
import { expect, test } from "vitest";
import { parseRecipe } from "../../test/parse-recipe.ts";
import { companionProblem, planCompanions } from "./companions.ts";

const fresh = `type: fresh, layers: 2, width: 64, heads: 2, keyValueHeads: 2, feedForward: 64, contextLength: 256, vocabularySize: 500`;

test("a ranker of its own is a companion, a shared one and a served generator are none", async () => {
  const own = await planCompanions(parseRecipe(`ranker: { model: { ${fresh} }, candidates: 5 }`), {});
  expect(own).toMatchObject([{ part: "ranker", bytes: expect.any(Number) }]);
  expect(own[0]?.bytes).toBeGreaterThan(1e6);
  expect(await planCompanions(parseRecipe("ranker: { weights: shared, candidates: 5 }"), {})).toEqual([]);
});

test("models that do not fit together are refused with all numbers and what to change", () => {
  const agent = { peak: 3e9, available: 4e9 };
  expect(companionProblem(agent, [{ part: "generator", bytes: 1e9 }])).toBeUndefined();
  expect(companionProblem(agent, [])).toBeUndefined();
  const problem = companionProblem(agent, [
    { part: "ranker", bytes: 1e9 },
    { part: "generator", bytes: 2e9 },
  ]);
  expect(problem).toMatch(/need 6\.00 GB together \(agent 3\.00 GB, ranker 1\.00 GB, generator 2\.00 GB\)/);
  expect(problem).toMatch(/ranker\.weights: shared, serve what is only asked/);
});
