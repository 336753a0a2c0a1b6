import { describe, expect, it } from "vitest";
import { parseRecipe } from "../config/load-recipe.ts";
import type { Recipe } from "../config/recipe.ts";
import type { MetricRow } from "../reporting/metric-row.ts";
import { lastStep, positionAfter, stepsBefore, totalSteps } from "./position.ts";
import {
  isValidationDue,
  judgeValidation,
  referenceStage,
  stageRate,
  stepsCarried,
  stepsTaken,
} from "./stage-switch.ts";

function recipe(second = ""): Recipe {
  return parseRecipe(
    `
name: switching
data: { type: world, world: { name: lab } }
model: { type: fresh, layers: 1, width: 16, heads: 2, keyValueHeads: 1, feedForward: 24, contextLength: 1024, vocabularySize: 300 }
stages:
  - { type: supervised, name: warm-up, steps: 3, batchSize: 4, schedule: { learningRate: 0.01 } }
  - type: reinforcement
    name: search
    steps: 10
    until: { everySteps: 4, patience: 2 }
    questionsPerStep: 2
    schedule: { learningRate: 0.01 }
    algorithm: { kl: { coefficient: 0.1 } }
  - type: reinforcement
    name: answer
    steps: 6
    questionsPerStep: 2
    schedule: { learningRate: 0.1, warmupSteps: 8 }
    algorithm: { kl: { coefficient: 0.1 } }
    ${second}
`,
    { file: "switching.yaml" },
  );
}

const { stages } = recipe();
const [warmUp, search, answer] = stages as [Recipe["stages"][0], Recipe["stages"][0], Recipe["stages"][0]];

/** Rows of the stage `search`, one a step, measured where a score is given. */
const rows = (scores: readonly (number | undefined)[]): MetricRow[] =>
  scores.map((score, index) => ({
    stage: "search",
    step: index + 1,
    ...(score !== undefined && { "validation/em": score, "validation/n": 9 }),
  }));

describe("validation", () => {
  it("is due every so many steps and after the last one, once", () => {
    const due = rows([...Array(10)].map(() => undefined)).filter((row) => isValidationDue(search, row));
    expect(due.map(({ step }) => step)).toEqual([4, 8, 10]);
    expect(isValidationDue(search, { stage: "search", step: 4, "validation/n": 9 })).toBe(false);
    expect(isValidationDue(answer, { stage: "answer", step: 6 })).toBe(false);
  });

  // scores step by step; best step; whether a patience of 2 is over
  it.each<[string, readonly (number | undefined)[], number | undefined, boolean]>([
    ["nothing measured", [undefined, undefined], undefined, false],
    ["one measurement", [undefined, 0.1], 2, false],
    ["rising", [0.1, 0.2, 0.3], 3, false],
    ["one worse", [0.1, 0.3, 0.2], 2, false],
    ["two worse", [0.3, undefined, 0.2, undefined, 0.1], 1, true],
    ["an equal one is no better", [0.3, 0.3, 0.3], 1, true],
    ["a better one after one worse", [0.3, 0.2, 0.4, 0.1], 3, false],
    ["0 from the start", [0, 0, 0], 1, true],
    ["a measurement in which all failed", [0.3, Number.NaN, Number.NaN, 0.2], 1, false],
  ])("%s", (_, scores, bestStep, isOver) => {
    expect(judgeValidation(rows(scores), { metric: "em", patience: 2 })).toEqual({ bestStep, isOver });
  });
});

describe("what goes on", () => {
  const history = rows([undefined, undefined, undefined, 0.4, undefined, undefined, undefined, 0.1]);

  it("is the best step of a stage with until, and all steps of any other", () => {
    expect(stepsTaken(warmUp, history)).toBe(3);
    expect(stepsTaken(search, history)).toBe(4);
    expect(stepsTaken(search, rows([undefined, undefined]))).toBe(2);
  });

  it("is nothing of schedule and reference unless it is carried", () => {
    expect(stepsCarried(stages, 2, history)).toBe(0);
    expect(referenceStage(stages, 2).name).toBe("answer");
    const carrying = recipe("carry: [schedule, reference]").stages;
    expect(stepsCarried(carrying, 2, history)).toBe(4);
    expect(referenceStage(carrying, 2).name).toBe("search");
  });

  it("goes on in the warm-up where the stage before left it", () => {
    expect(stageRate(answer, 0)).toBeCloseTo(0.1 / 8, 12);
    expect(stageRate(answer, 0, 4)).toBeCloseTo((0.1 * 5) / 8, 12);
    expect(stageRate(answer, 5, 4)).toBeCloseTo(0.1, 12);
  });
});

describe("counts", () => {
  it("hold one more for the choice of a stage with until", () => {
    expect(totalSteps({ stages })).toBe(3 + 11 + 6);
    expect(positionAfter({ stages }, 13)).toEqual({ stage: 1, step: 10 });
    expect(positionAfter({ stages }, 14)).toEqual({ stage: 2, step: 0 });
    expect(stepsBefore({ stages }, { stage: 2, step: 1 })).toBe(15);
  });

  it("keep all rows of a stage whose weights were chosen", () => {
    expect(lastStep({ stages }, 14)).toEqual({ stage: "search", step: 10 });
    expect(lastStep({ stages }, 15)).toEqual({ stage: "answer", step: 1 });
  });
});
