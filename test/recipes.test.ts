/** Every recipe that ships is right, and the documentation of recipes is what the schema says. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { loadRecipe, parseRecipe, resolvedYaml } from "../src/config/load-recipe.ts";
import { recipeSchema } from "../src/config/recipe.ts";
import { recipeMarkdown } from "../src/config/recipe-docs.ts";
import { type SchemaNode, schemaTree, variants } from "../src/config/schema-tree.ts";

const root = join(import.meta.dirname, "..");

describe("recipes", () => {
  test.each(readdirSync(join(root, "recipes")))("%s loads and survives being resolved", async (file) => {
    const recipe = await loadRecipe(join(root, "recipes", file));
    expect(`${recipe.name}.yaml`).toBe(file);
    expect(parseRecipe(resolvedYaml(recipe), { file })).toEqual(recipe);
  });
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
