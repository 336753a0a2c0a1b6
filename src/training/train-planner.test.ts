import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parseRecipe } from "../config/load-recipe.ts";
import { InterruptedError } from "../errors.ts";
import { RunFolder } from "../reporting/run-folder.ts";
import { silentReporter, type TrainingReporter } from "./reporter.ts";
import { train } from "./train.ts";

// What this file locks: a planner trains beside a frozen generator, which stays as it was; its answers without a planner
// are found out once and survive an interruption; both algorithms take two steps.
const world = `{ name: lab, entities: 60, hops: [1, 2], trainQuestions: 60, testQuestions: 8 }`;
const model = `{ type: fresh, layers: 1, width: 16, heads: 2, keyValueHeads: 1, feedForward: 24, contextLength: 256, vocabularySize: 300 }`;
const reader = `
name: reader
data: { type: world, world: ${world} }
environment: { codec: compact, prompt: bare, passageTemplate: text, k: 1, maxSearches: 2, maxTurnTokens: 24, maxObservationTokens: 24 }
model: ${model}
engine: { type: embedded, threads: 1 }
stages:
  - { type: supervised, name: warm-up, steps: 1, batchSize: 4, schedule: { learningRate: 0.01 } }
evaluation: { n: 2 }
`;
const planner = `
name: planner
seed: 3
data: { type: world, world: ${world} }
environment:
  { mode: planner, codec: planner-compact, prompt: bare, passageTemplate: text, k: 1, maxSearches: 3, maxSubQueries: 4, maxTurnTokens: 24, maxObservationTokens: 40 }
model: ${model}
generator: { model: READER, prompt: bare, maxAnswerTokens: 12 }
planner: { alpha: 0.1, roundCap: 3, subQueryCap: 4, process: goldRecall }
engine: { type: embedded, threads: 1 }
stages:
  - type: supervised
    name: warm-up
    steps: 2
    batchSize: 4
    teacher: { patience: 0.5, redundancy: 0.5 }
    schedule: { learningRate: 0.01 }
  - type: reinforcement
    name: plan
    steps: 2
    questionsPerStep: 2
    schedule: { learningRate: 0.01 }
    reward: { type: planner }
    algorithm: { groupSize: 3, rejectGroupsWithoutSignal: false }
evaluation: { n: 4 }
`;

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "forager-planner-"));
  await run("reader", reader);
});
afterAll(async () => await rm(folder, { recursive: true, force: true }));

async function run(
  name: string,
  yaml: string,
  { resume = false, reporter = silentReporter, signal }: RunOptions = {},
) {
  const recipe = parseRecipe(yaml.replace("READER", join(folder, "reader")), { file: `${name}.yaml` });
  return await train({
    recipe,
    folder: join(folder, name),
    resume,
    reporter,
    now: () => performance.now(),
    codeVersion: "test",
    signal,
  });
}

interface RunOptions {
  readonly resume?: boolean;
  readonly reporter?: TrainingReporter;
  readonly signal?: AbortSignal;
}

test("a planner is trained with GRPO by its reward, and evaluated with what it and its generator cost", async () => {
  const { after } = await run("grpo", planner);
  const written = await RunFolder.open(join(folder, "grpo"));
  const rows = (await written.readMetrics()).filter(({ stage }) => stage === "plan");
  expect(rows).toHaveLength(2);
  for (const row of rows) expect(row["parity/maxLogprobDifference"]).toBeLessThan(1e-3);
  expect(after.contract.generator).toMatchObject({ type: "embedded", judge: "coverExactMatch" });
  for (const item of after.items) {
    if (item.failed) throw new Error(item.failure);
    expect(item).toMatchObject({ score: expect.any(Number), ragScore: expect.any(Number) });
    expect(item.totalTokens).toBe(item.policyTokens + (item.generatorTokens ?? 0));
  }
  const contract = (await written.readContract()) as { readonly generator?: { readonly promptHash: string } };
  expect(contract.generator?.promptHash).toHaveLength(64);
});

test("the generator's own answers are asked for once a question, and kept when a run goes on", async () => {
  const abort = new AbortController();
  const stopping: TrainingReporter = {
    ...silentReporter,
    stepDone: ({ stage, step }) => {
      if (stage === "plan" && step === 1) abort.abort();
    },
  };
  await expect(run("resumed", planner, { reporter: stopping, signal: abort.signal })).rejects.toBeInstanceOf(
    InterruptedError,
  );
  const early = await baselinesOf("resumed");
  await run("resumed", planner, { resume: true });
  const late = await baselinesOf("resumed");
  expect(late.slice(0, early.length)).toEqual(early);
  const questions = late.map((line) => (JSON.parse(line) as { readonly question: string }).question);
  expect(new Set(questions).size).toBe(questions.length);
  const whole = await (await RunFolder.open(join(folder, "grpo"))).readMetrics();
  const resumed = await (await RunFolder.open(join(folder, "resumed"))).readMetrics();
  expect(resumed.map((row) => row["reward/mean"])).toEqual(whole.map((row) => row["reward/mean"]));
  expect(resumed.map((row) => row["loss/value"])).toEqual(whole.map((row) => row["loss/value"]));
});

async function baselinesOf(name: string): Promise<string[]> {
  const text = await readFile(join(folder, name, "baselines.jsonl"), "utf8");
  return text.trim().split("\n");
}

test("a planner is trained with PPO, one trajectory a question", async () => {
  const ppo = planner.replace(
    "algorithm: { groupSize: 3, rejectGroupsWithoutSignal: false }",
    "algorithm: { type: ppo, groupSize: 1, critic: { schedule: { learningRate: 0.01 } } }",
  );
  const { after } = await run("ppo", ppo);
  expect(after.summary.overall.n).toBe(4);
});
