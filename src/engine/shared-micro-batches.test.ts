import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { paddedTokens, planMicroBatches } from "./micro-batch.ts";
import { planSharing } from "./shared-micro-batches.ts";

/** Sequences of groups with a prompt each, and answers of the lengths given. */
function groups(prompt: number, lengths: readonly (readonly number[])[]): Int32Array[] {
  return lengths.flatMap((answers, group) =>
    answers.map((length, member) =>
      Int32Array.from({ length: prompt + length }, (_, t) =>
        t < prompt ? 1000 * group + t : 1e6 + 1000 * (10 * group + member) + t,
      ),
    ),
  );
}

describe("planSharing", () => {
  test("takes every sequence once and keeps the budget", () => {
    const lengths = fc.array(fc.array(fc.integer({ min: 0, max: 90 }), { minLength: 1, maxLength: 6 }), {
      minLength: 1,
      maxLength: 6,
    });
    fc.assert(
      fc.property(
        lengths,
        fc.integer({ min: 1, max: 40 }),
        fc.integer({ min: 50, max: 600 }),
        (answers, prompt, tokenBudget) => {
          const sequences = groups(prompt, answers);
          const plan = planSharing(sequences, { tokenBudget, scoresPerToken: 500 });
          const members = plan.flatMap((microBatch) => microBatch.members);
          expect([...members].sort((a, b) => a - b)).toEqual(sequences.map((_, index) => index));
          for (const microBatch of plan) {
            const { time, members: own } = microBatch;
            expect(Math.max(...own.map((index) => sequences[index]?.length as number))).toBe(time);
            expect(own.length === 1 || paddedTokens(microBatch) <= tokenBudget).toBe(true);
          }
        },
      ),
    );
  });

  test("goes by length where nothing begins alike", () => {
    const sequences = groups(0, [[30, 40, 50], [90], [31]]);
    const setting = { tokenBudget: 200, scoresPerToken: 500 };
    expect(planSharing(sequences, setting)).toEqual(planMicroBatches([30, 40, 50, 90, 31], 200));
  });

  test("keeps rollouts of one question together, however the lengths of others lie between theirs", () => {
    const sequences = groups(60, [
      [40, 30],
      [39, 31],
      [38, 32],
    ]);
    const plan = planSharing(sequences, { tokenBudget: 200, scoresPerToken: 2000 });
    expect(plan.map(({ members }) => members)).toEqual([
      [0, 1],
      [2, 3],
      [4, 5],
    ]);
  });

  test("cuts a group whose attention over the longest would cost more than its prompt", () => {
    const sequences = groups(20, [[900, 880, 30, 20]]);
    const plan = planSharing(sequences, { tokenBudget: 4096, scoresPerToken: 1000 });
    expect(plan.map(({ members }) => members)).toEqual([
      [0, 1],
      [2, 3],
    ]);
  });
});
