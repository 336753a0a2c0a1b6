import { describe, expect, it } from "vitest";
import { parseRecipe } from "../config/load-recipe.ts";
import type { Stage } from "../config/stage-options.ts";
import type { MetricRow } from "../reporting/metric-row.ts";
import { bestStep, judgeHealth } from "./health.ts";

const recipe = parseRecipe(
  `
name: watched
data: { type: world, world: { name: lab } }
model: { type: fresh, layers: 1, width: 16, heads: 2, keyValueHeads: 1, feedForward: 24, contextLength: 1024, vocabularySize: 300 }
stages:
  - { type: supervised, name: warm-up, steps: 9, batchSize: 4, schedule: { learningRate: 0.01 } }
  - { type: reinforcement, name: grpo, steps: 99, questionsPerStep: 2, schedule: { learningRate: 0.01 } }
`,
  { file: "watched.yaml" },
);
const [warmUp, grpo] = recipe.stages as [Stage, Stage];

const rows = (values: readonly Omit<MetricRow, "stage" | "step">[]): MetricRow[] =>
  values.map((value, index) => ({ stage: "any", step: index + 1, ...value }));
const rewards = (values: readonly number[]): MetricRow[] =>
  rows(values.map((value) => ({ "reward/mean": value })));
const repeat = <T>(count: number, value: T): T[] => Array.from({ length: count }, () => value);

describe("the watchdog", () => {
  it("stops a supervised stage whose loss or gradient is no number, and nothing else", () => {
    expect(judgeHealth(warmUp, rows([{ "loss/value": 9, "gradient/norm": 1e9 }]))).toEqual({ type: "ok" });
    expect(judgeHealth(warmUp, rows([{ "loss/value": Number.NaN }]))).toMatchObject({
      type: "stop",
      reason: expect.stringContaining("no number"),
    });
    expect(judgeHealth(warmUp, rows([{ "gradient/norm": Number.POSITIVE_INFINITY }])).type).toBe("stop");
  });

  it("stops a reinforcement stage whose reward falls and stays down", () => {
    const high = repeat(20, 0.8);
    expect(judgeHealth(grpo, rewards([...high, ...repeat(4, 0.01)]))).toEqual({ type: "ok" });
    expect(judgeHealth(grpo, rewards([...high, ...repeat(20, 0.01)]))).toMatchObject({
      type: "stop",
      reason: expect.stringContaining("mean reward fell"),
    });
  });

  it("stops one whose turns are no valid actions any more", () => {
    const invalid = (share: number): Omit<MetricRow, "stage" | "step"> => ({
      "reward/mean": 0.1,
      "search/invalid": share,
    });
    expect(judgeHealth(grpo, rows(repeat(40, invalid(0.1))))).toEqual({ type: "ok" });
    const history = rows([...repeat(20, invalid(0.05)), ...repeat(20, invalid(0.95))]);
    expect(judgeHealth(grpo, history)).toMatchObject({
      type: "stop",
      reason: expect.stringContaining("valid actions fell"),
    });
  });

  it("stops one whose trajectories grow without end", () => {
    const long = (tokens: number): Omit<MetricRow, "stage" | "step"> => ({ "length/policyTokens": tokens });
    const history = rows([...repeat(20, long(50)), ...repeat(20, long(900))]);
    expect(judgeHealth(grpo, history)).toMatchObject({
      type: "stop",
      reason: expect.stringContaining("tokens grew"),
    });
  });
});

describe("the best step", () => {
  it("is the one before the end of the best five in a row, the latest of equals", () => {
    expect(bestStep(rewards([0, 0, 0.5, 0.5, 0.5, 0.5, 0.5, 0, 0, 0, 0]))).toBe(6);
    expect(bestStep(rewards(repeat(12, 0.5)))).toBe(11);
  });

  it("is no lucky step", () => {
    expect(bestStep(rewards([...repeat(5, 0), 1, ...repeat(5, 0), ...repeat(5, 0.4)]))).toBe(15);
  });

  it("is the last one whose weights were measured where nothing is rewarded, and 0 before the first", () => {
    expect(bestStep(rows([{ "loss/value": 1 }, { "loss/value": 2 }]))).toBe(1);
    expect(bestStep([])).toBe(0);
  });
});
