/** What an engine elsewhere cannot do is an error of the recipe, with its field, before anything starts. */
import { describe, expect, test } from "vitest";
import { ConfigError } from "../errors.ts";
import { parseRecipe } from "./load-recipe.ts";

const recipe = `
name: far
data: { type: world, world: { name: lab } }
model: { type: remote }
engine: { type: tinker, url: "http://127.0.0.1:8000", rank: 8 }
stages:
  - type: reinforcement
    name: grpo
    steps: 2
    questionsPerStep: 2
    schedule: { learningRate: 1.0e-4 }
    optimizer: { maxGradientNorm: 0 }
`;
const second = `
  - type: reinforcement
    name: more
    steps: 2
    questionsPerStep: 2
    schedule: { learningRate: 1.0e-4 }
    optimizer: { maxGradientNorm: 0 }
`;

function parse(text: string, ...overrides: string[]) {
  return parseRecipe(text, { file: "/recipes/far.yaml", overrides });
}

function refusal(text: string, ...overrides: string[]): string {
  try {
    parse(text, ...overrides);
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    return (error as Error).message;
  }
  throw new Error("the recipe was accepted");
}

test.each(["forager", "skyrl-jax"])("%s trains what it can", (profile) => {
  const { engine } = parse(recipe, `engine.profile=${profile}`);
  expect(engine).toMatchObject({ type: "tinker", concurrency: 64, retries: 8 });
});

/** What the server of skyrl-fsdp was started with. */
const said = "{beta1: 0.9, beta2: 0.95, epsilon: 1.0e-8, weightDecay: 0, maxGradientNorm: 0}";
const fsdp = ["engine.profile=skyrl-fsdp", `engine.serverOptimizer=${said}`];

describe("is refused, with its field", () => {
  const cases: readonly (readonly [string, readonly string[], string, string])[] = [
    [
      "clipping that SkyRL does not know",
      ["engine.profile=skyrl-jax", "stages.grpo.optimizer.maxGradientNorm=1"],
      "stages.grpo.optimizer.maxGradientNorm",
      "set it to 0",
    ],
    [
      "moments that only start-up sets",
      ["engine.profile=skyrl-fsdp"],
      "optimizer.beta1",
      "engine.serverOptimizer.beta1",
    ],
    [
      "adapters where all weights are trained",
      ["engine.profile=verl-tinker"],
      "engine.rank",
      "set rank to 0",
    ],
    [
      "all weights where adapters are trained",
      ["engine.profile=skyrl-jax", "engine.rank=0"],
      "engine.rank",
      "1 or more",
    ],
    [
      "a KL term without a reference",
      [...fsdp, "stages.grpo.algorithm.kl={coefficient: 0.1}"],
      "algorithm.kl",
      "leave kl out",
    ],
    [
      "log-probabilities of another temperature",
      [...fsdp, "stages.grpo.sampling.temperature=0.7"],
      "sampling.temperature",
      "only at 1",
    ],
    [
      "sampling ahead where nobody knows whether it can",
      [
        "engine.profile=verl-tinker",
        "engine.rank=0",
        "engine.serverOptimizer={maxGradientNorm: 0}",
        "stages.grpo.maxStaleness=1",
      ],
      "maxStaleness",
      "leave it at 0",
    ],
    [
      "a fresh model",
      [
        "model={type: fresh, layers: 1, width: 16, heads: 2, keyValueHeads: 2, feedForward: 16, contextLength: 2000, vocabularySize: 300, tieEmbeddings: true}",
      ],
      "model.type",
      "type: remote",
    ],
    ["a remote model here", ["engine={type: embedded}"], "model.type", "engine.type tinker"],
    ["an unknown profile", ["engine.profile=nobody"], "engine.profile", "forager"],
  ];
  test.each(cases)("%s", (_, overrides, path, advice) => {
    const message = refusal(recipe, ...overrides);
    expect(message).toContain(path);
    expect(message).toContain(advice);
  });

  test("a critic", () => {
    const critic = "{type: ppo, critic: {trunk: shared, schedule: {learningRate: 0.001}}}";
    expect(refusal(recipe, `stages.grpo.algorithm=${critic}`)).toContain("algorithm");
  });

  test("a second stage with a fresh optimiser where none can be had", () => {
    const message = refusal(recipe + second, "engine.profile=skyrl-jax");
    expect(message).toContain("carry: [optimizer]");
    parse(recipe + second);
    parse(recipe + second, "engine.profile=skyrl-jax", "stages.more.carry=[optimizer]");
  });
});

test("the server's own optimiser must be the recipe's", () => {
  parse(recipe, "engine.profile=skyrl-fsdp", `engine.serverOptimizer=${said}`);
  const other = said.replace("0.95", "0.999");
  expect(refusal(recipe, "engine.profile=skyrl-fsdp", `engine.serverOptimizer=${other}`)).toContain(
    "it is 0.95, and the server was started with 0.999",
  );
});
