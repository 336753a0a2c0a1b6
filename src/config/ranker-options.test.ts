import { describe, expect, it } from "vitest";
import { ConfigError } from "../errors.ts";
import { parseRecipe } from "./load-recipe.ts";
import type { Recipe } from "./recipe.ts";

const model =
  "{ type: fresh, layers: 1, width: 16, heads: 2, keyValueHeads: 2, feedForward: 32, contextLength: 2048, vocabularySize: 300 }";

function parse(ranker: string, stage = "", algorithm = ""): Recipe {
  return parseRecipe(
    `
name: tiny
data: { type: world, world: { name: lab } }
environment: { k: 3 }
model: ${model}
${ranker === "" ? "" : `ranker: ${ranker}`}
stages:
${stage}
  - { type: reinforcement, name: joint, steps: 1, questionsPerStep: 1, schedule: { learningRate: 0.1 }${algorithm} }
`,
    { file: "/recipes/tiny.yaml" },
  );
}

const teaching =
  "  - { type: supervised, name: rank, steps: 1, teacher: { type: ranking }, schedule: { learningRate: 0.1 } }";

describe("the ranker of a recipe", () => {
  it("has the paper's settings by default", () => {
    expect(parse(`{ model: ${model} }`).ranker).toMatchObject({
      type: "generative",
      candidates: 50,
      weights: "own",
      trainable: true,
      sampling: { temperature: 1, topP: 1, topK: 0 },
      grouping: { type: "tokenF1", threshold: 0.8, answerability: true, minMembers: 3 },
      reward: {
        combine: "gated",
        gamma: 0.5,
        gammaIncluded: false,
        penalty: 0.2,
        keepIllFormedAgents: false,
      },
      averageDuplicates: false,
      rejectEqualRewards: false,
    });
  });

  it("may be a path, relative to the recipe", () => {
    expect(parse("{ model: ../ranker }").ranker).toMatchObject({
      model: { type: "pretrained", source: "/ranker" },
    });
  });

  it.each([
    ["{ type: oracle, candidates: 20 }", ""],
    ["{ type: none }", ""],
    ["{ weights: shared }", teaching],
    ["{ trainable: false, model: { type: openai, url: 'http://127.0.0.1:1', model: m } }", ""],
  ])("may be %s", (ranker, stage) => {
    expect(parse(ranker, stage).ranker).toBeDefined();
  });

  it.each([
    ["fewer candidates than are shown", "{ weights: shared, candidates: 2 }", "", "", "3 of 2 candidates"],
    ["own weights without a model", "{}", "", "", "needs a model"],
    ["shared weights with a model", `{ weights: shared, model: ${model} }`, "", "", "leave model out"],
    [
      "shared weights with a rate",
      "{ weights: shared, schedule: { learningRate: 0.1 } }",
      "",
      "",
      "one learning rate",
    ],
    [
      "a served model that is to be trained",
      "{ model: { type: openai, url: 'http://127.0.0.1:1', model: m } }",
      "",
      "",
      "trainable: false",
    ],
    [
      "ppo",
      "{ weights: shared }",
      "",
      ", algorithm: { type: ppo, critic: { schedule: { learningRate: 0.1 } } }",
      "use algorithm.type grpo",
    ],
    ["a reward of another name", "{ weights: shared, reward: { gama: 0.5 } }", "", "", "gama"],
  ])("refuses %s", (_, ranker, stage, algorithm, message) => {
    expect(() => parse(ranker, stage, algorithm)).toThrow(ConfigError);
    expect(() => parse(ranker, stage, algorithm)).toThrow(message);
  });
});
