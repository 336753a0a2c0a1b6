import { describe, expect, test } from "vitest";
import { parseRecipe } from "./load-recipe.ts";
import type { Recipe } from "./recipe.ts";

/** A recipe of two reinforcement stages with more keys for each and for the whole. */
function recipe(first: string, second: string, more = ""): Recipe {
  return parseRecipe(
    `
name: two-stages
data: { type: world, world: { name: lab } }
model: { type: fresh, layers: 1, width: 16, heads: 2, keyValueHeads: 1, feedForward: 24, contextLength: 1600, vocabularySize: 300 }
stages:
  - { type: reinforcement, name: search, steps: 5, questionsPerStep: 2, schedule: { learningRate: 0.01 }, ${first} }
  - { type: reinforcement, name: answer, steps: 5, questionsPerStep: 2, schedule: { learningRate: 0.01 }, ${second} }
${more}
`,
    { file: "two-stages.yaml" },
  );
}

const kl = "algorithm: { kl: { coefficient: 0.1 } }";

test("a stage starts anew and takes its steps unless it is told otherwise", () => {
  for (const stage of recipe("carry: []", "carry: []").stages) {
    expect(stage).toMatchObject({ carry: [] });
    expect(stage).not.toHaveProperty("until");
  }
});

test("the rule by which a stage ends has defaults", () => {
  expect(recipe("until: {}", "carry: []").stages[0]).toMatchObject({
    until: { metric: "em", everySteps: 10, patience: 3, n: 256 },
  });
});

test("optimiser, schedule and reference can be carried over", () => {
  expect(recipe(kl, `carry: [optimizer, schedule, reference], ${kl}`).stages[1]).toMatchObject({
    carry: ["optimizer", "schedule", "reference"],
  });
});

describe("refused is", () => {
  test.each<[string, () => unknown, RegExp]>([
    [
      "a first stage that carries anything over",
      () => recipe("carry: [optimizer]", "carry: []"),
      /none before it to take anything over from/,
    ],
    [
      "a reference from a stage without one",
      () => recipe("carry: []", `carry: [reference], ${kl}`),
      /between two stages whose algorithm has a kl term/,
    ],
    [
      "a reference for a stage without one",
      () => recipe(kl, "carry: [reference]"),
      /between two stages whose algorithm has a kl term/,
    ],
    ["something else to carry", () => recipe("carry: []", "carry: [critic]"), /critic|optimizer/],
    [
      "choosing weights by the questions that they are judged by",
      () => recipe("until: {}", "carry: []", "evaluation: { split: validation }"),
      /evaluate on test/,
    ],
    ["another metric", () => recipe("until: { metric: reward }", "carry: []"), /em/],
  ])("%s", (_, make, message) => {
    expect(make).toThrow(message);
  });

  test("a rule without validation questions in files", () => {
    const files = (validation: string): Recipe =>
      parseRecipe(
        `
name: files
data: { type: files, corpus: c.jsonl, questions: { train: t.jsonl, evaluation: e.jsonl${validation} } }
model: somewhere
stages:
  - { type: reinforcement, name: search, steps: 5, questionsPerStep: 2, schedule: { learningRate: 0.01 }, until: {} }
`,
        { file: "/recipes/files.yaml" },
      );
    expect(() => files("")).toThrow(/data\.questions\.validation.*name files of them/);
    expect(files(", validation: v.jsonl").data).toMatchObject({
      questions: { validation: "/recipes/v.jsonl" },
    });
  });
});
