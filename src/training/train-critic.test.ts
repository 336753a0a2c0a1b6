import { cp, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseRecipe } from "../config/load-recipe.ts";
import type { Recipe } from "../config/recipe.ts";
import { InterruptedError } from "../errors.ts";
import type { MetricRow } from "../reporting/metric-row.ts";
import { silentReporter, type TrainingReporter } from "./reporter.ts";
import { metricsIn, runTraining, timeless } from "./training.fixture.ts";

// What this file locks: a training with a critic gives equal runs for equal seeds and goes on bit for bit after an
// interruption or a kill, for both kinds of trunk; train.test.ts does the same without a critic.
const recipeWith = (critic: string): Recipe =>
  parseRecipe(
    `
name: tiny
seed: 3
data: { type: world, world: { name: lab, entities: 60, hops: [1, 2], trainQuestions: 60, testQuestions: 12 } }
environment: { codec: compact, prompt: bare, passageTemplate: text, k: 1, maxSearches: 2, maxTurnTokens: 8, maxObservationTokens: 24 }
model: { type: fresh, layers: 1, width: 16, heads: 2, keyValueHeads: 1, feedForward: 24, contextLength: 128, vocabularySize: 300 }
engine: { type: embedded, threads: 1 }
stages:
  - { type: supervised, name: warm-up, steps: 1, batchSize: 4, schedule: { learningRate: 0.01 } }
  - type: reinforcement
    name: ppo
    steps: 4
    questionsPerStep: 5
    schedule: { learningRate: 0.01 }
    reward: { type: format, structure: 0.2, finalFormat: 0.1, retrieval: 0 }
    algorithm:
      type: ppo
      minibatchSize: 3
      kl: { coefficient: 0.1 }
      gae: { lambda: 0.9, observations: states }
      critic: { ${critic}, schedule: { learningRate: 0.02 }, leadSteps: 1 }
evaluation: { n: 5 }
`,
    { file: "tiny.yaml" },
  );

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "forager-train-critic-"));
});
afterAll(async () => await rm(folder, { recursive: true, force: true }));

describe.each(["own", "shared"])("a training with a critic, trunk: %s", (trunk) => {
  const recipe = recipeWith(`trunk: ${trunk}`);
  const at = (name: string): string => join(folder, `${trunk}-${name}`);
  let whole: readonly MetricRow[];
  beforeAll(async () => {
    await runTraining(at("whole"), recipe);
    whole = await metricsIn(at("whole"));
  });

  it("reports the critic in every step, and the policy once its lead is over", () => {
    const rows = whole.filter(({ stage }) => stage === "ppo");
    expect(rows).toHaveLength(4);
    for (const row of rows) {
      expect(row["critic/loss"]).toBeGreaterThanOrEqual(0);
      expect(row["critic/learningRate"]).toBe(0.02);
    }
    expect(rows.map((row) => row["optimizer/updates"])).toEqual([0, 2, 2, 2]);
    expect(rows[0]?.["loss/value"]).toBeUndefined();
    expect(rows[1]?.["parity/maxLogprobDifference"]).toBeLessThan(1e-3);
    expect(rows[0]?.["critic/valueMean"]).toBe(0);
    expect(rows[1]?.["critic/valueMean"]).not.toBe(0);
  });

  it("keeps the policy as it is while the critic leads", async () => {
    const weights = (count: number): Promise<Buffer> =>
      readFile(join(at("whole"), "checkpoints", `${count}`, "model.safetensors"));
    expect((await readdir(join(at("whole"), "checkpoints", "5"))).sort()).toContain("critic");
    const interrupted = at("lead");
    await runTraining(interrupted, { ...recipe, checkpoint: { everySteps: 1, keep: 9 } });
    const lead = (count: number): Promise<Buffer> =>
      readFile(join(interrupted, "checkpoints", `${count}`, "model.safetensors"));
    expect((await lead(2)).equals(await lead(1))).toBe(true);
    expect((await lead(3)).equals(await lead(2))).toBe(false);
    expect((await lead(5)).equals(await weights(5))).toBe(true);
  });

  it.each([1, 2, 3])(
    "stops after step %i when interrupted and goes on with the same numbers",
    async (step) => {
      const name = at(`interrupted-${step}`);
      const abort = new AbortController();
      const stopping: TrainingReporter = {
        ...silentReporter,
        stepDone: (row) => {
          if (row.stage === "ppo" && row.step === step) abort.abort();
        },
      };
      const options = { signal: abort.signal, reporter: stopping };
      await expect(runTraining(name, recipe, options)).rejects.toThrow(InterruptedError);
      await runTraining(name, recipe, { resume: true });
      expect(timeless(await metricsIn(name))).toEqual(timeless(whole));
    },
  );

  it("does again what a kill tore, from the last whole checkpoint", async () => {
    const sparse = { ...recipe, checkpoint: { everySteps: 1, keep: 9 } };
    await runTraining(at("sparse"), sparse);
    await cp(at("sparse"), at("killed"), { recursive: true });
    for (const step of [4, 5]) await rm(join(at("killed"), "checkpoints", `${step}`), { recursive: true });
    await runTraining(at("killed"), sparse, { resume: true });
    expect(timeless(await metricsIn(at("killed")))).toEqual(timeless(whole));
  });

  it("refuses a checkpoint whose critic is damaged or gone", async () => {
    for (const damage of ["critic.safetensors", "."]) {
      const name = at(`damaged-${damage.length}`);
      await cp(at("sparse"), name, { recursive: true });
      await rm(join(name, "checkpoints", "5"), { recursive: true });
      await rm(join(name, "checkpoints", "4", "critic", damage), { recursive: true });
      await expect(runTraining(name, recipe, { resume: true })).rejects.toThrow(
        expect.objectContaining({ code: expect.stringMatching(/checkpoint|file/) }),
      );
    }
  });
});
