import { describe, expect, it } from "vitest";
import type { EvaluationContract } from "../../evaluation/contract.ts";
import type { MetricRow } from "../metric-row.ts";
import type { StoredEvaluation } from "../run-folder.ts";
import { learningCurve, trainingFigures } from "./figures.ts";

const contract: EvaluationContract = {
  corpusHash: "c",
  retriever: { method: "bm25", indexHash: "i", parameters: {} },
  k: 3,
  split: "test",
  n: 4,
  questionsHash: "q",
  promptHash: "p",
  templateHash: "t",
  codec: "search-r1",
  limits: {},
  normaliser: "squad",
  judge: "exactMatch",
  sampling: { temperature: 0, topP: 1, topK: 0 },
  model: { type: "scripted", model: "m" },
  codeVersion: "0",
  seed: 1,
};
const size = { width: 340, height: 210 };
const rows = (count: number): MetricRow[] =>
  Array.from({ length: count }, (_, index) => ({
    stage: "grpo",
    step: index + 1,
    "reward/mean": index / count,
  }));

function evaluation(name: string, step: number, changes: Partial<EvaluationContract> = {}): StoredEvaluation {
  const em = { n: 4, mean: 0.5, ci: [0.25, 0.75] as [number, number] };
  const summary = { overall: { n: 4, failed: 0, em }, byDataset: {}, byHops: {}, byKind: {} };
  return { name, stage: "grpo", step, result: { contract: { ...contract, ...changes }, summary, items: [] } };
}

describe("the learning curve", () => {
  it("shows the run's evaluations with intervals, and none made later on other questions", () => {
    const evaluations = [
      evaluation("before", 0),
      evaluation("after", 9),
      evaluation("eval-other", 9, { questionsHash: "other" }),
    ];
    const { markup } = learningCurve(rows(9), evaluations)?.draw(size) ?? { markup: "" };
    expect(markup.match(/<circle/g)).toHaveLength(2);
    expect(markup).toContain("step 9: 0.5 (95 %: 0.25 to 0.75)");
  });

  it("stands a long noisy line back behind its moving average, and shows a short one as it is", () => {
    expect(learningCurve(rows(40), [])?.draw(size).markup).toContain('class="faint');
    expect(learningCurve(rows(9), [])?.draw(size).markup).not.toContain('class="faint');
  });

  it("is absent before anything was rewarded", () => {
    expect(learningCurve([{ stage: "warm-up", step: 1, "loss/value": 3 }], [])).toBeUndefined();
  });
});

describe("the other charts", () => {
  it("are those that have values, and the rest of a step's time is what is left", () => {
    const row: MetricRow = {
      stage: "grpo",
      step: 1,
      "search/count": 1,
      "time/rollout": 2,
      "time/update": 1,
      "time/step": 4,
    };
    const figures = trainingFigures([row, { ...row, step: 2 }]);
    expect(figures.map(({ title }) => title)).toEqual(["Searches per question", "Time of a step"]);
    expect(figures[1]?.draw(size).markup).toContain(
      "rollout: from 2 to 2; update: from 1 to 1; other: from 1 to 1.",
    );
  });

  it("never smooth the learning rate", () => {
    const noisy = rows(40).map(
      (row): MetricRow => ({ stage: row.stage, step: row.step, "optimizer/learningRate": row.step % 2 }),
    );
    const [figure] = trainingFigures(noisy);
    expect(figure?.draw(size).markup).not.toContain('class="faint');
  });
});
