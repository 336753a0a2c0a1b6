import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { loadRecipe } from "../src/config/load-recipe.ts";
import { tinyEngine } from "../src/engine/engine.fixture.ts";
import { InterruptedError } from "../src/errors.ts";
import type { MetricRow } from "../src/reporting/metric-row.ts";
import { RunFolder } from "../src/reporting/run-folder.ts";
import { silentReporter, type TrainingReporter } from "../src/training/reporter.ts";
import { train } from "../src/training/train.ts";
import { type ServedModel, serveModel } from "./served-model.ts";

// A real model behind a real server, trained one step ahead: what recipes/cluster/large-run-smoke.yaml shows.
let folder: string;
let server: ServedModel;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "forager-ahead-"));
  const base = join(folder, "base");
  const engine = await tinyEngine();
  await engine.save(base);
  await engine.close();
  server = await serveModel(base, folder);
});
afterAll(async () => {
  await server?.close();
  await rm(folder, { recursive: true, force: true });
});

async function run(
  name: string,
  how: {
    readonly resume?: boolean;
    readonly signal?: AbortSignal;
    readonly reporter?: TrainingReporter;
  } = {},
): Promise<readonly MetricRow[]> {
  const overrides = [
    `engine.url=${server.url}`,
    "engine.tokenizer=base",
    "engine.downloadAdapters=false",
    "stages.grpo.steps=5",
    "evaluation.n=2",
  ];
  const file = join(import.meta.dirname, "..", "recipes", "cluster", "large-run-smoke.yaml");
  const recipe = await loadRecipe(file, {
    overrides: overrides.map((set) => set.replace("=base", `=${join(folder, "base")}`)),
  });
  const { resume = false, reporter = silentReporter, signal } = how;
  const path = join(folder, name);
  await train({
    recipe,
    folder: path,
    resume,
    reporter,
    signal,
    now: () => performance.now(),
    codeVersion: "test",
  });
  return await (await RunFolder.open(path)).readMetrics();
}

const agesOf = (rows: readonly MetricRow[]): (number | undefined)[] =>
  rows.map((row) => row["staleness/max"]);

test("a model behind a server is trained on samples that are one step old", async () => {
  const rows = await run("whole");
  expect(rows.map(({ step }) => step)).toEqual([1, 2, 3, 4, 5]);
  expect(agesOf(rows)[0]).toBe(0);
  expect(agesOf(rows).slice(1)).toContain(1);
  expect(Math.max(...agesOf(rows).map((age) => age ?? 9))).toBe(1);
  expect(rows[0]?.["parity/maxLogprobDifference"]).toBeLessThan(1e-3);
  for (const row of rows.filter((row) => row["staleness/max"] === 1)) {
    expect(row["parity/maxLogprobDifference"]).toBeUndefined();
    expect(row["staleness/ratioMax"]).toBeGreaterThan(0);
  }
});

test("an interrupted run samples again what was in flight, and goes on with fresh samples", async () => {
  const stop = new AbortController();
  const reporter = {
    ...silentReporter,
    stepDone: ({ step }: MetricRow) => {
      if (step === 2) stop.abort();
    },
  };
  await expect(run("stopped", { signal: stop.signal, reporter })).rejects.toThrow(InterruptedError);
  const rows = await run("stopped", { resume: true });
  expect(rows.map(({ step }) => step)).toEqual([1, 2, 3, 4, 5]);
  expect(agesOf(rows)[2]).toBe(0);
});
