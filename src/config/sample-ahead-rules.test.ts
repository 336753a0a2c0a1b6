import { describe, expect, test } from "vitest";
import { parseRecipe } from "../../test/parse-recipe.ts";

const engine = "{ type: tinker, url: 'http://127.0.0.1:8000' }";

/** The tiny recipe with an engine elsewhere and one stage that samples ahead. */
function ahead(stage = "", there = engine): () => unknown {
  return () =>
    parseRecipe(
      `engine: ${there}\nmodel: { type: remote }\nstages:\n  - { type: reinforcement, name: grpo, steps: 2, questionsPerStep: 2, schedule: { learningRate: 0.1 }, maxStaleness: 2, ${stage} }`,
    );
}

test("a stage is strictly on-policy unless it says otherwise, and its failures are played again", () => {
  const [stage] = parseRecipe("").stages.slice(-1);
  expect(stage).toMatchObject({ maxStaleness: 0, episodeRetries: 2 });
  expect(stage).not.toHaveProperty("maxInFlight");
});

test("an engine elsewhere may sample ahead", () => {
  expect(ahead()()).toMatchObject({ stages: [{ maxStaleness: 2 }] });
});

describe("sampling ahead is refused", () => {
  test("with the embedded engine, which does one at a time", () => {
    const stages =
      "stages: [{ type: reinforcement, name: grpo, steps: 2, questionsPerStep: 2, schedule: { learningRate: 0.1 }, maxStaleness: 1 }]";
    expect(() => parseRecipe(stages)).toThrow(/embedded engine samples and trains in turns/);
  });

  test.each([
    ["algorithm: { type: rejectionSampling }", /without a probability ratio/],
    ["algorithm: { maskRetrieved: false }", /no log-probability of the older weights/],
  ])("with %s", (stage, message) => {
    expect(ahead(stage)).toThrow(message);
  });

  test("with a server of which nothing is known", () => {
    expect(
      ahead(
        "",
        "{ type: tinker, url: 'http://127.0.0.1:8000', profile: verl-tinker, rank: 0, serverOptimizer: { maxGradientNorm: 1 } }",
      ),
    ).toThrow(/VeRL-Tinker sampling between a gradient and its step/);
  });
});
