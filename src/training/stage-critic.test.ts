import { expect, test } from "vitest";
import { tinyRecipe } from "../../test/tiny-recipe.ts";
import { parseRecipe } from "../config/load-recipe.ts";
import type { Engine } from "../engine/engine.ts";
import { EngineError } from "../errors.ts";
import { openCritic, requireCritic } from "./stage-critic.ts";

const grpo = parseRecipe(tinyRecipe, { file: "tiny.yaml" });
const ppo = parseRecipe(
  tinyRecipe.replace("{ groupSize: 2 }", "{ type: ppo, critic: { schedule: { learningRate: 0.01 } } }"),
  { file: "tiny.yaml" },
);
const without = {} as Engine;

test("an engine without a critic is refused before anything is trained, by a stage that needs one only", () => {
  expect(() => requireCritic(ppo, without)).toThrow(EngineError);
  expect(() => requireCritic(ppo, without)).toThrow("stage grpo trains with a critic (algorithm.type ppo)");
  expect(() => requireCritic(grpo, without)).not.toThrow();
  expect(() => requireCritic(ppo, { ...without, critic: () => Promise.reject() })).not.toThrow();
});

test("only a stage with a critic opens one", async () => {
  for (const stage of grpo.stages) expect(await openCritic(without, stage, undefined)).toBeUndefined();
});
