import { beforeEach, describe, expect, test } from "vitest";
import { makeItem, makeResult } from "../../test/make-result.ts";
import { makeTrajectory } from "../../test/make-trajectory.ts";
import { liveView, resultNote } from "./live-view.ts";

let written = "";
let time = 0;
const io = {
  note: (text: string) => {
    written += `${text}\n`;
  },
  noteColor: false,
  progress: {
    write: (text: string) => {
      written += text;
    },
    now: () => time,
    isTerminal: true,
    columns: 200,
  },
};
beforeEach(() => {
  written = "";
  time = 0;
});

/** The lines a terminal would show in the end. */
function shown(): string[] {
  return written.split("\n").map((line) => line.split("\r").at(-1)?.replace("\u001b[K", "") ?? "");
}

describe("the live view", () => {
  test("shows stage, rate, remaining time, reward and searches", () => {
    const view = liveView(io);
    view.stageStarted({ name: "grpo", type: "reinforcement", steps: 4, done: 0 });
    time = 2000;
    view.stepDone({ stage: "grpo", step: 1, "reward/mean": 0.5, "search/count": 1.25 });
    expect(shown().at(-1)).toMatch(
      /^grpo ━+─+ 1\/4 steps · .* · 0:06 left · reward 0\.500 · 1\.25 searches a question$/,
    );
  });

  test("shows the loss where there is no reward", () => {
    const view = liveView(io);
    view.stageStarted({ name: "warm-up", type: "supervised", steps: 2, done: 0 });
    view.stepDone({ stage: "warm-up", step: 1, "loss/value": 2.5 });
    expect(shown().at(-1)).toContain("loss 2.500");
  });

  test("goes on with the stage's line after an evaluation", () => {
    const view = liveView(io);
    view.stageStarted({ name: "grpo", type: "reinforcement", steps: 9, done: 0 });
    view.stepDone({ stage: "grpo", step: 1, "reward/mean": 0.5 });
    view.evaluationProgress({ name: "grpo-2", done: 1, total: 2 });
    time = 30_000;
    view.evaluationDone({ name: "grpo-2", result: makeResult([makeItem({ em: 1 })]) });
    view.stepDone({ stage: "grpo", step: 2, "reward/mean": 0.75 });
    expect(shown().at(-1)).toMatch(/^grpo ━+─+ 2\/9 steps · reward 0\.750/);
    time = 32_000;
    view.stepDone({ stage: "grpo", step: 3, "reward/mean": 0.75 });
    view.end();
    const lines = shown();
    expect(lines.some((line) => line.startsWith("evaluating grpo-2") && line.includes("1/2 questions"))).toBe(
      true,
    );
    expect(lines.some((line) => line.startsWith("grpo-2: exact match 1.000"))).toBe(true);
    // Two seconds a step since the evaluation, whose time is not the stage's.
    expect(lines.at(-2)).toMatch(/^grpo ━+─+ 3\/9 steps · 2\.0 s each · 0:12 left · reward 0\.750/);
  });

  test("counts the steps of a resumed stage from where it was", () => {
    const view = liveView(io);
    view.stageStarted({ name: "grpo", type: "reinforcement", steps: 9, done: 5 });
    time = 1000;
    view.stepDone({ stage: "grpo", step: 6, "reward/mean": 0.5 });
    expect(shown().at(-1)).toMatch(/^grpo ━+─+ 6\/9 steps · 1\.0 steps\/s · 0:03 left/);
  });

  test("shows a sample trajectory now and then, not in every step", () => {
    const view = liveView(io);
    const sample = () => view.sample(makeTrajectory({ answer: "Paris" }), 1);
    sample();
    time = 19_000;
    sample();
    expect(written.match(/answer {3}Paris/g)).toHaveLength(1);
    time = 21_000;
    sample();
    expect(written.match(/answer {3}Paris/g)).toHaveLength(2);
  });
});

test("a result in one line says when nothing was scored", () => {
  const failed = {
    dataset: "nq",
    id: "1",
    stopReason: "retrieverFailure",
    failed: true,
    failure: "down",
  } as const;
  expect(resultNote(makeResult([failed]))).toBe("no question was scored, 1 failed");
  expect(resultNote(makeResult([makeItem({ em: 1, searches: 2 }), failed]))).toContain(
    "n = 1, 1 failed), 2.00 searches",
  );
});
