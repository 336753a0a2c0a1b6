/** For tests of recipes: two that are right, and what is said of others. */
import { ConfigError } from "../errors.ts";
import { parseRecipe } from "./load-recipe.ts";
import type { Recipe } from "./recipe.ts";

/** A small recipe of a built-in world. */
export const yaml = `name: small
data:
  type: world
  world: { name: atlas }
environment:
  k: 2
  maxTurnTokens: 16
  maxObservationTokens: 40
model:
  { type: fresh, layers: 1, width: 16, heads: 2, keyValueHeads: 2, feedForward: 32, contextLength: 128, vocabularySize: 300 }
stages:
  - type: supervised
    name: warm-up
    steps: 5
    schedule: { learningRate: 0.001 }
  - type: reinforcement
    name: grpo
    steps: 7
    questionsPerStep: 2
    schedule: { learningRate: 0.0001 }
`;

/** A recipe of files, with relative paths and absolute ones. */
export const files = `name: mine
data:
  type: files
  corpus: passages.jsonl
  questions: { train: [a.jsonl, sub/b.jsonl], evaluation: c.jsonl }
retriever: { type: index, path: /abs/index }
model: ../model
stages:
  - { type: reinforcement, name: grpo, steps: 1, questionsPerStep: 1, schedule: { learningRate: 0.1 } }
`;

/** `text` with overrides, as if it lay in /recipes and overrides were given in /here. */
export function parse(text: string, ...overrides: string[]): Recipe {
  return parseRecipe(text, { file: "/recipes/small.yaml", overrides, folder: "/here" });
}

/** What is said about a recipe that is wrong. */
export function messageOf(text: string, ...overrides: string[]): string {
  try {
    parse(text, ...overrides);
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
  throw new Error("the recipe was accepted");
}
