/** The tiny recipe of the tests with more of it, parsed. */
import { parse } from "yaml";
import { type Recipe, recipeSchema } from "../src/config/recipe.ts";
import { tinyRecipe } from "./tiny-recipe.ts";

/** `more` are top-level keys in YAML, in the place of those of the tiny recipe. */
export function parseRecipe(more: string): Recipe {
  return recipeSchema.parse({ ...(parse(tinyRecipe) as object), ...(parse(more) as object) });
}
