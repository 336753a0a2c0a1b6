// What this file locks: a policy learns from samples that are one and two steps old as from fresh ones, since the loss corrects
// for their age, and the rows say how old they were. The policy is a softmax over whole turns, trained by its exact gradient.
import { describe, expect, test } from "vitest";
import type { Datum } from "../algorithm/datum.ts";
import type { Loss } from "../algorithm/loss.ts";
import { datumLoss } from "../algorithm/token-loss.ts";
import type { Engine } from "../engine/engine.ts";
import type { MetricRow } from "../reporting/metric-row.ts";
import { random } from "../shared/random.ts";
import { lessonOf, stageOf, ticks, trainStage } from "./sample-ahead.fixture.ts";

/** What the policy can say in a turn; its ids are their places. One of the five is right. */
const turns = ["yes", "no", "maybe", "never", "always"].map((answer) => `<answer>${answer}</answer>`);

/** An engine of five logits, which start equal; sampling and gradients take some turns of the event loop. */
function softmaxEngine(): Engine {
  const logits = new Float64Array(turns.length);
  const gradient = new Float64Array(turns.length);
  const logprobs = (): number[] => {
    const total = Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit), 0));
    return Array.from(logits, (logit) => logit - total);
  };
  const draw = (seed: number): number => {
    let rest = random(seed, "draw").next();
    for (const [id, logprob] of logprobs().entries()) {
      rest -= Math.exp(logprob);
      if (rest < 0) return id;
    }
    return turns.length - 1;
  };
  const rowOf = ({ targets, weights }: Datum): Float32Array => {
    const now = logprobs();
    return Float32Array.from(targets, (id, t) => (weights[t] === 0 ? 0 : (now[id] as number)));
  };
  const engine = {
    tokenizer: { encode: (text: string) => [...Buffer.from(text)], decode: () => "", endOfTextId: 999 },
    contextLength: 4096,
    policy: () => ({
      identity: { type: "softmax", model: "test" },
      complete: async (contexts: readonly { readonly seed: number }[]) => {
        const sampled = contexts.map(({ seed }) => draw(seed));
        const now = logprobs();
        await ticks(1 + ((contexts[0]?.seed ?? 0) % 4));
        return sampled.map((id) => ({
          text: turns[id] as string,
          tokens: [id],
          logprobs: [now[id] as number],
          finishReason: "stop" as const,
          usage: { promptTokens: 0, completionTokens: 1 },
        }));
      },
    }),
    forwardBackward: async (batch: readonly Datum[], loss: Loss) => {
      await ticks(30);
      const rows = batch.map(rowOf);
      let sum = 0;
      for (const [index, datum] of batch.entries()) {
        const { loss: part, derivatives } = datumLoss(loss, datum, rows[index] as Float32Array);
        sum += part;
        for (const [t, derivative] of derivatives.entries())
          for (const [id, logprob] of logprobs().entries())
            gradient[id] =
              (gradient[id] as number) + derivative * (Number(id === datum.targets[t]) - Math.exp(logprob));
      }
      return { loss: sum, logprobs: rows, paddedTokens: 0 };
    },
    step: async ({ learningRate }: { readonly learningRate: number }) => {
      const gradientNorm = Math.hypot(...gradient);
      for (const [id, value] of gradient.entries())
        logits[id] = (logits[id] as number) - learningRate * value;
      gradient.fill(0);
      return { gradientNorm };
    },
  };
  return engine as unknown as Engine;
}

async function trained(maxStaleness: number): Promise<MetricRow[]> {
  const stage = stageOf({
    steps: 30,
    questionsPerStep: 8,
    schedule: { learningRate: 1 },
    algorithm: { groupSize: 8 },
    maxStaleness,
  });
  const lesson = lessonOf(softmaxEngine(), { goldAnswer: "yes", seed: 5 });
  return (await trainStage(lesson, stage)).map(({ row }) => row);
}

const meanOf = (rows: readonly MetricRow[], key: "reward/mean" | "staleness/mean"): number =>
  rows.reduce((sum, row) => sum + (row[key] ?? Number.NaN), 0) / rows.length;

describe("a policy that is trained on samples of weights up to so many steps old", () => {
  test.each([0, 1, 2])("%i: its reward rises from chance to nearly always", async (maxStaleness) => {
    const rows = await trained(maxStaleness);
    expect(meanOf(rows.slice(0, 2), "reward/mean")).toBeLessThan(0.45);
    expect(meanOf(rows.slice(-5), "reward/mean")).toBeGreaterThan(0.9);
    if (maxStaleness === 0) {
      expect(rows.every((row) => row["staleness/mean"] === undefined)).toBe(true);
      return;
    }
    // Once the queue is full, nearly every sample is as old as it may be, and none is older.
    expect(meanOf(rows.slice(5), "staleness/mean")).toBeGreaterThan(0.8 * maxStaleness);
    expect(Math.max(...rows.map((row) => row["staleness/max"] ?? 9))).toBe(maxStaleness);
    // The ratios that correct for it: over samples of the older weights their mean is 1, whatever the newer ones are.
    const learning = rows.slice(3, 15);
    for (const row of learning) expect(Math.abs((row["staleness/ratioMean"] ?? 9) - 1)).toBeLessThan(0.25);
    expect(Math.max(...learning.map((row) => row["staleness/klDivergence"] ?? 0))).toBeGreaterThan(1e-4);
  });
});
