import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { MetricKey } from "./metric-keys.ts";
import { type MetricRow, metricRowSchema, recordsUntil, stageOrder, toStoredRow } from "./metric-row.ts";

const row = (stage: string, step: number): MetricRow => ({ stage, step });

describe("a metric row", () => {
  it("comes back from disk as it was", () => {
    const value = fc
      .double({ noNaN: true, noDefaultInfinity: true })
      .filter((number) => !Object.is(number, -0));
    const key = fc.constantFrom<MetricKey>("reward/mean", "stop/answer", "time/step");
    fc.assert(
      fc.property(fc.nat(), fc.dictionary(key, value), (step, values) => {
        const stored = JSON.stringify(toStoredRow({ stage: "grpo", step, ...values }));
        expect(metricRowSchema.parse(JSON.parse(stored))).toEqual({ stage: "grpo", step, ...values });
      }),
    );
  });

  it("stores what is not a number as null and reads it as NaN", () => {
    const stored = toStoredRow({
      stage: "grpo",
      step: 3,
      "loss/value": Number.NaN,
      "ratio/max": Number.POSITIVE_INFINITY,
    });
    expect(stored).toEqual({ stage: "grpo", step: 3, "loss/value": null, "ratio/max": null });
    expect(metricRowSchema.parse(stored)["loss/value"]).toBeNaN();
  });

  it("refuses a key that is not in the table", () => {
    const wrong = { stage: "grpo", step: 1, "reward/typo": 1 } as MetricRow;
    expect(() => toStoredRow(wrong)).toThrow("reward/typo is not in metric-keys.ts");
  });

  it("leaves out keys of another version but not values of a wrong type", () => {
    expect(metricRowSchema.parse({ stage: "grpo", step: 1, "future/key": "x" })).toEqual(row("grpo", 1));
    expect(metricRowSchema.safeParse({ stage: "grpo", step: 1, "reward/mean": "x" }).success).toBe(false);
  });
});

describe("the records up to a position", () => {
  const rows = [row("warm-up", 1), row("warm-up", 2), row("grpo", 1), row("grpo", 2), row("grpo", 3)];
  const until = (stage: string, step: number) => recordsUntil(rows, row(stage, step), stageOrder(rows));

  it("end after the step of its stage", () => {
    expect(until("grpo", 2)).toEqual(rows.slice(0, 4));
  });

  it("hold nothing of later stages", () => {
    expect(until("warm-up", 2)).toEqual(rows.slice(0, 2));
    expect(until("warm-up", 0)).toEqual([]);
  });

  it("hold all earlier stages when the stage itself has not begun", () => {
    expect(until("grpo", 0)).toEqual(rows.slice(0, 2));
    expect(until("third", 0)).toEqual(rows);
  });

  it("hold nothing of a stage that the run does not know yet", () => {
    expect(recordsUntil(rows, row("warm-up", 2), ["warm-up"])).toEqual(rows.slice(0, 2));
    expect(recordsUntil(rows, row("warm-up", 0), [])).toEqual([]);
  });
});
