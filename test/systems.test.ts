/**
 * Every recipe of a published system trains: two steps of each reinforcement stage on an invented world with a model from
 * nothing, in the place of its files and its model. All else is the recipe's own.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { loadRecipe } from "../src/config/load-recipe.ts";
import { RunFolder } from "../src/reporting/run-folder.ts";
import { deficiencyNames } from "../src/reward/deficiencies.ts";
import { silentReporter } from "../src/training/reporter.ts";
import { train } from "../src/training/train.ts";
import { runForTest } from "./run-cli.ts";

const root = join(import.meta.dirname, "..");

const world =
  "data={ type: world, world: { name: lab, entities: 40, nameWords: 20, relations: 1, trainQuestions: 40, validationQuestions: 4, testQuestions: 4 } }";
const model = (contextLength: number): string =>
  `model={ type: fresh, layers: 1, width: 16, heads: 2, keyValueHeads: 2, feedForward: 32, contextLength: ${contextLength}, vocabularySize: 300 }`;
const files = [
  world,
  "retriever={ type: bm25 }",
  model(1600),
  "environment.maxSearches=1",
  "environment.maxTurnTokens=8",
  "environment.maxObservationTokens=40",
];
const steps = (stage: string): string[] => [
  `stages.${stage}.steps=2`,
  `stages.${stage}.questionsPerStep=2`,
  `stages.${stage}.algorithm.minibatchSize=4`,
];
const warmUp = ["stages.warm-up.steps=2", "stages.warm-up.batchSize=4"];

const systems: readonly (readonly [name: string, overrides: readonly string[], stages: readonly string[]])[] =
  [
    ["search-r1-ppo", files, ["ppo"]],
    ["search-r1-grpo", files, ["grpo"]],
    ["search-r1-grpo-format", files, ["grpo"]],
    ["desa", files, ["search", "answer"]],
    [
      "cosearch",
      [
        ...files,
        model(3000),
        model(3000).replace("model=", "ranker.model="),
        "ranker.candidates=4",
        "ranker.maxTokens=16",
        "environment.k=2",
      ],
      ["joint"],
    ],
    [
      "lab-cosearch",
      [world, model(320), ...warmUp, "stages.ranker-warm-up.steps=2", "stages.ranker-warm-up.batchSize=4"],
      ["joint"],
    ],
    [
      "lab-desa",
      [world, "data.world.familiar=8", "data.world.relations=2", model(320), ...warmUp],
      ["search", "answer"],
    ],
  ];

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "forager-systems-"));
});
afterAll(async () => await rm(folder, { recursive: true, force: true }));

test.each(systems)(
  "%s takes two steps of each stage and measures deficiencies",
  async (name, overrides, stages) => {
    const recipe = await loadRecipe(join(root, "recipes", `${name}.yaml`), {
      overrides: [
        ...overrides,
        ...stages.flatMap(steps),
        "engine.threads=1",
        "evaluation.n=4",
        "engine.memoryBudget=1GB",
        "engine.cacheMemory=100MB",
      ],
    });
    const summary = await train({
      recipe,
      folder: join(folder, name),
      resume: false,
      reporter: silentReporter,
      now: () => performance.now(),
      codeVersion: "test",
    });
    const rows = (await (await RunFolder.open(join(folder, name))).readMetrics()).filter(({ stage }) =>
      stages.includes(stage),
    );
    expect(rows.map(({ step }) => step)).toEqual(stages.flatMap(() => [1, 2]));
    for (const deficiency of deficiencyNames) {
      expect(rows[0]?.[`deficiency/${deficiency}`]).toBeGreaterThanOrEqual(0);
      expect(summary.after.summary.overall[deficiency]).toMatchObject({ n: 4 });
    }
  },
);

test.each(systems)("%s passes --dry-run", async (name) => {
  const { code, stdout } = await runForTest("train", join(root, "recipes", `${name}.yaml`), "--dry-run");
  expect(code).toBe(0);
  expect(stdout).toContain(`name: ${name}`);
});
