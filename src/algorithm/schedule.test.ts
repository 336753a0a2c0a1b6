import { expect, test } from "vitest";
import { learningRate, scheduleOptionsSchema } from "./schedule.ts";

function rates(options: unknown, totalSteps: number): number[] {
  const schedule = scheduleOptionsSchema.parse(options);
  return Array.from({ length: totalSteps }, (_, step) => learningRate(step, { ...schedule, totalSteps }));
}

test.each([
  { name: "constant is the default", options: { learningRate: 8 }, expected: [8, 8, 8] },
  {
    name: "warm-up never wastes a step on zero",
    options: { learningRate: 8, warmupSteps: 4 },
    expected: [2, 4, 6, 8, 8, 8],
  },
  {
    name: "linear decay ends at zero",
    options: { learningRate: 8, decay: { type: "linear" } },
    expected: [8, 6, 4, 2, 0],
  },
  {
    name: "linear decay ends at its share of the peak",
    options: { learningRate: 8, warmupSteps: 1, decay: { type: "linear", minRatio: 0.5 } },
    expected: [8, 8, 7, 6, 5, 4],
  },
  {
    name: "cosine decay is half-way in the middle",
    options: { learningRate: 8, decay: { type: "cosine", minRatio: 0.25 } },
    expected: [8, 7.12132, 5, 2.87868, 2],
  },
])("$name", ({ options, expected }) => {
  const actual = rates(options, expected.length);
  for (const [i, value] of expected.entries()) expect(actual[i]).toBeCloseTo(value, 5);
});

test("steps past the end keep the last rate", () => {
  const schedule = scheduleOptionsSchema.parse({ learningRate: 8, decay: { type: "linear", minRatio: 0.5 } });
  expect(learningRate(99, { ...schedule, totalSteps: 5 })).toBe(4);
});

test("a setting that the decay would ignore is refused", () => {
  const options = { learningRate: 1, decay: { type: "constant", minRatio: 0.5 } };
  expect(scheduleOptionsSchema.safeParse(options).success).toBe(false);
});
