/**
 * Mode rag, so that every episode of models that know nothing has one search. What this file locks: an agent and a ranker
 * learn in one step, each from its own weights, and such a training goes on bit for bit after an interruption or a kill; a
 * frozen ranker keeps its weights; shared weights have one update.
 */
import { cp, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runForTest } from "../../test/run-cli.ts";
import { parseRecipe } from "../config/load-recipe.ts";
import type { Recipe } from "../config/recipe.ts";
import { InterruptedError } from "../errors.ts";
import type { MetricRow } from "../reporting/metric-row.ts";
import { RunFolder } from "../reporting/run-folder.ts";
import { silentReporter, type TrainingReporter } from "./reporter.ts";
import { metricsIn, runTraining, timeless } from "./training.fixture.ts";

const model = (width: number): string =>
  `{ type: fresh, layers: 1, width: ${width}, heads: 2, keyValueHeads: 1, feedForward: 24, contextLength: 192, vocabularySize: 300 }`;
const ranker = (weights: string): string => `
  candidates: 4
  ${weights}
  prompt: bare
  passages: text
  maxTokens: 12
  grouping: { type: off, minMembers: 2 }
  reward: { agentFormat: actions, keepIllFormedAgents: true }`;

function recipeWith(rankerYaml: string): Recipe {
  return parseRecipe(
    `
name: tiny
seed: 3
data: { type: world, world: { name: lab, entities: 60, relations: 1, hops: [1], distractors: 1, trainQuestions: 60, testQuestions: 8 } }
retriever: { type: bm25, titleWeight: 0, b: 0 }
ranker: ${rankerYaml}
environment: { mode: rag, codec: compact, prompt: bare, passageTemplate: text, k: 1, maxSearches: 1, maxTurnTokens: 16, maxObservationTokens: 24 }
model: ${model(16)}
engine: { type: embedded, threads: 1 }
stages:
  - { type: supervised, name: ranker-warm-up, steps: 40, batchSize: 8, teacher: { type: ranking }, contextTokenWeight: 0, schedule: { learningRate: 0.03 } }
  - { type: supervised, name: warm-up, steps: 80, batchSize: 8, contextTokenWeight: 0, schedule: { learningRate: 0.02 } }
  - type: reinforcement
    name: joint
    steps: 3
    questionsPerStep: 3
    schedule: { learningRate: 0.01 }
    optimizer: { weightDecay: 0.1 }
    reward: { type: formatF1, format: actions }
    algorithm: { groupSize: 4, minibatchSize: 6, rejectGroupsWithoutSignal: false, kl: { coefficient: 0.01 } }
evaluation: { n: 4 }
checkpoint: { everySteps: 40, keep: 99 }
`,
    { file: "tiny.yaml" },
  );
}

const own = recipeWith(ranker(`model: ${model(16)}`));
let folder: string;
const at = (name: string): string => join(folder, name);
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "forager-train-ranker-"));
});
afterAll(async () => await rm(folder, { recursive: true, force: true }));

describe("a training of agent and ranker", () => {
  let whole: readonly MetricRow[];
  beforeAll(async () => {
    await runTraining(at("whole"), own);
    whole = await metricsIn(at("whole"));
  });

  it("trains both in every step, each from what it sampled", () => {
    const rows = whole.filter(({ stage }) => stage === "joint");
    expect(rows).toHaveLength(3);
    for (const row of rows) {
      expect(row["ranker/calls"]).toBeGreaterThan(0);
      expect(row["ranker/updates"]).toBeGreaterThan(0);
      expect(row["ranker/maxLogprobDifference"]).toBeLessThan(1e-3);
      expect(row["ranker/klReference"]).toBeGreaterThanOrEqual(0);
      expect(row["parity/maxLogprobDifference"]).toBeLessThan(1e-3);
    }
  });

  it("trains in a warm-up the one it is for", async () => {
    const same = async (part: string, a: number, b: number): Promise<boolean> =>
      (await weights("whole", part, a)).equals(await weights("whole", part, b));
    expect(await same("", 0, 40)).toBe(true);
    expect(await same("ranker", 0, 40)).toBe(false);
    expect(await same("", 40, 120)).toBe(false);
    expect(await same("ranker", 40, 120)).toBe(true);
    expect(await same("ranker", 120, 123)).toBe(false);
  });

  it("keeps the ranker's calls beside the agent's trajectories", async () => {
    const folderOf = await RunFolder.open(at("whole"));
    const [call] = await folderOf.readTrajectories("joint-rankings");
    expect(call?.trajectory.ranking).toMatchObject({ turn: 0, count: 1 });
    expect(call?.reward).toBeDefined();
    expect(call?.pieces).toBeUndefined();
    const [evaluated] = await folderOf.readTrajectories("after-rankings");
    expect(evaluated?.trajectory.segments[0]?.text).toContain("Query:");
    const [agent] = await folderOf.readTrajectories("joint");
    expect(agent?.trajectory.rankings).toBeUndefined();
  });

  it.each([
    ["ranker-warm-up", 3],
    ["joint", 2],
  ])("stops in %s after step %i when interrupted and goes on with the same numbers", async (stage, step) => {
    const abort = new AbortController();
    const stopping: TrainingReporter = {
      ...silentReporter,
      stepDone: (row) => {
        if (row.stage === stage && row.step === step) abort.abort();
      },
    };
    const name = at(`interrupted-${stage}`);
    await expect(runTraining(name, own, { signal: abort.signal, reporter: stopping })).rejects.toThrow(
      InterruptedError,
    );
    await runTraining(name, own, { resume: true });
    expect(timeless(await metricsIn(name))).toEqual(timeless(whole));
    expect(
      (await weights(`interrupted-${stage}`, "ranker", 123)).equals(await weights("whole", "ranker", 123)),
    ).toBe(true);
  });

  it("does again what a kill tore, from the last whole checkpoint", async () => {
    await cp(at("whole"), at("killed"), { recursive: true });
    for (const step of [80, 120, 123])
      await rm(join(at("killed"), "checkpoints", `${step}`), { recursive: true });
    await runTraining(at("killed"), own, { resume: true });
    expect(timeless(await metricsIn(at("killed")))).toEqual(timeless(whole));
  });

  it("refuses a checkpoint whose ranker is gone", async () => {
    await cp(at("whole"), at("damaged"), { recursive: true });
    await rm(join(at("damaged"), "checkpoints", "123"), { recursive: true });
    await rm(join(at("damaged"), "checkpoints", "120", "ranker"), { recursive: true });
    await expect(runTraining(at("damaged"), own, { resume: true })).rejects.toThrow(
      expect.objectContaining({ code: expect.stringMatching(/checkpoint|file/) }),
    );
  });

  it("is evaluated and asked with its ranker", async () => {
    const { code, json, stderr } = await runForTest("eval", at("whole"), "--json");
    expect(code, stderr).toBe(0);
    const { file } = json as { readonly file: string };
    const stored = await (await RunFolder.open(at("whole"))).readEvaluations();
    const { result } = stored.find(({ name }) => file.endsWith(`${name}.json`)) ?? {};
    expect(result?.summary.overall.rankings?.mean).toBe(1);
    expect(result?.contract.ranker).toMatchObject({ type: "generative", candidates: 4, temperature: 0 });
    const oracle = await runForTest(
      "eval",
      at("whole"),
      "--set",
      "ranker={ type: oracle, candidates: 4 }",
      "--out",
      at("oracle.json"),
    );
    expect(oracle.code, oracle.stderr).toBe(0);
    expect(JSON.parse(await readFile(at("oracle.json"), "utf8")).contract.ranker).toEqual({
      type: "oracle",
      candidates: 4,
    });
    const asked = await runForTest("ask", at("whole"), "who is the mentor of nobody ?", "--json");
    expect([0, 1]).toContain(asked.code);
  });
});

it("refuses to teach a ranker that the recipe does not have", async () => {
  const without = { ...own, ranker: { type: "oracle", candidates: 4 } } as const;
  await expect(runTraining(at("untaught"), without)).rejects.toThrow("the recipe has none");
});

it("keeps a frozen ranker as its warm-up left it", async () => {
  await runTraining(at("frozen"), recipeWith(ranker(`trainable: false\n  model: ${model(16)}`)));
  expect((await weights("frozen", "ranker", 40)).equals(await weights("frozen", "ranker", 123))).toBe(true);
  const rows = (await metricsIn(at("frozen"))).filter(({ stage }) => stage === "joint");
  expect(rows[0]?.["ranker/calls"]).toBeGreaterThan(0);
  expect(rows[0]?.["ranker/updates"]).toBeUndefined();
});

it("trains shared weights on both parts in one update", async () => {
  await runTraining(at("shared"), recipeWith(ranker("weights: shared")));
  const rows = (await metricsIn(at("shared"))).filter(({ stage }) => stage === "joint");
  expect(rows).toHaveLength(3);
  for (const row of rows) {
    expect(row["ranker/updates"]).toBeUndefined();
    expect(row["optimizer/updates"]).toBeGreaterThan(0);
    expect(row["parity/maxLogprobDifference"]).toBeLessThan(1e-3);
  }
});

function weights(run: string, part: string, count: number): Promise<Buffer> {
  return readFile(join(at(run), "checkpoints", `${count}`, part, "model.safetensors"));
}
