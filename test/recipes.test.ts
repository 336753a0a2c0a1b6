/** Every recipe that ships is right, and the documentation of recipes is what the schema says. */
import { readdirSync } from "node:fs";
import { basename, join } from "node:path";
import { describe, expect, test } from "vitest";
import { loadRecipe, parseRecipe, resolvedYaml } from "../src/config/load-recipe.ts";
import { recipeSchema } from "../src/config/recipe.ts";
import { recipeMarkdown } from "../src/config/recipe-docs.ts";
import { type SchemaNode, schemaTree, variants } from "../src/config/schema-tree.ts";

const root = join(import.meta.dirname, "..");

describe("recipes", () => {
  const files = readdirSync(join(root, "recipes"), { recursive: true, encoding: "utf8" });
  test.each(files.filter((file) => file.endsWith(".yaml")))(
    "%s loads and survives being resolved",
    async (file) => {
      const recipe = await loadRecipe(join(root, "recipes", file));
      expect(`${recipe.name}.yaml`).toBe(basename(file));
      expect(parseRecipe(resolvedYaml(recipe), { file })).toEqual(recipe);
    },
  );
});

test("lab-ppo.yaml is lab.yaml but for its name and its reinforcement", async () => {
  const [lab, ppo] = await Promise.all(
    ["lab.yaml", "lab-ppo.yaml"].map((file) => loadRecipe(join(root, "recipes", file))),
  );
  expect({ ...ppo, name: "lab", stages: ppo?.stages.slice(0, -1) }).toEqual({
    ...lab,
    stages: lab?.stages.slice(0, -1),
  });
  const trajectories = [lab, ppo].map((recipe) => {
    const stage = recipe?.stages.at(-1);
    return stage?.type === "reinforcement"
      ? stage.steps * stage.questionsPerStep * stage.algorithm.groupSize
      : 0;
  });
  expect(trajectories[1]).toBe(trajectories[0]);
});

test("docs/recipes.md is made from the schema (vitest --update writes it)", async () => {
  await expect(recipeMarkdown()).toMatchFileSnapshot(join(root, "docs", "recipes.md"));
});

test("every key of a recipe says what it does", () => {
  expect(undescribed(schemaTree(recipeSchema), "")).toEqual([]);
});

/** Paths of keys without a description; a constant that only names a variant needs none. */
function undescribed(node: SchemaNode, path: string): readonly string[] {
  if (node.items !== undefined) return undescribed(node.items, `${path}[]`);
  return variants(node).flatMap((variant) =>
    Object.entries(variant.properties ?? {}).flatMap(([key, child]) => {
      const here = path === "" ? key : `${path}.${key}`;
      const isSilent = child.description === undefined && child.const === undefined;
      return [...(isSilent ? [here] : []), ...undescribed(child, here)];
    }),
  );
}
