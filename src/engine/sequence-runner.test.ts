import { describe, expect, test } from "vitest";
import type { Datum } from "../algorithm/datum.ts";
import type { Loss } from "../algorithm/loss.ts";
import { assert } from "../errors.ts";
import { randomDatum, tinyModel } from "./engine.fixture.ts";
import { initializeParameters, type ParameterSet, zerosLike } from "./parameters.ts";
import { SequenceRunner, type SequenceRunnerOptions } from "./sequence-runner.ts";

const loss: Loss = { type: "crossEntropy" };
const batch = [40, 37, 21, 12, 40].map((length, seed) => randomDatum(length, seed));
const model = { ...tinyModel, layers: 3, tieEmbeddings: true };
const parameters = initializeParameters(model, 4);

/** Data of so many groups, those of a group with one prompt. */
function groupsOf(
  count: number,
  { prompt, lengths }: { readonly prompt: number; readonly lengths: readonly number[] },
): Datum[] {
  return Array.from({ length: count }, (_, group) => {
    const { inputs } = randomDatum(prompt, 100 + group);
    return lengths.map((length, member) => {
      const datum = randomDatum(length, 10 * group + member);
      datum.inputs.set(inputs);
      datum.targets.set(inputs.subarray(1));
      return datum;
    });
  }).flat();
}

async function gradientsOf(
  options: Omit<SequenceRunnerOptions, "threads">,
): Promise<{ readonly gradients: ParameterSet; readonly loss: number; readonly paddedTokens: number }> {
  const runner = new SequenceRunner({ model }, { threads: 1, ...options });
  try {
    const gradients = zerosLike(parameters);
    const report = await runner.forwardBackward(parameters, batch, { loss, gradients });
    return { gradients, ...report };
  } finally {
    await runner.close();
  }
}

/** The largest difference between two sets, relative to the largest number of the first. */
function difference(a: ParameterSet, b: ParameterSet): number {
  let [most, scale] = [0, 0];
  for (const [name, { data }] of a) {
    const other = b.get(name)?.data as Float32Array;
    for (const [i, value] of data.entries()) {
      most = Math.max(most, Math.abs(value - (other[i] as number)));
      scale = Math.max(scale, Math.abs(value));
    }
  }
  return most / scale;
}

describe("training in pieces", () => {
  test.each([{ keptLayers: 0 }, { keptLayers: 1 }, { keptLayers: 2 }])(
    "that keeps %o of 3 layers has the gradient of all kept, bit for bit",
    async (kept) => {
      const whole = await gradientsOf({ tokenBudget: 1000 });
      const again = await gradientsOf({ tokenBudget: 1000, ...kept });
      expect(again.gradients).toEqual(whole.gradients);
      expect(again.loss).toBe(whole.loss);
    },
  );

  test.each([{}, { keyValueHeads: 1 }])(
    "that keeps what attention computes has the gradient without, bit for bit, of common beginnings too (%o)",
    async (variant) => {
      const changed = { ...model, ...variant };
      const own = initializeParameters(changed, 4);
      const long = [192, 193, 256].map((length, seed) => randomDatum(length, seed));
      const data = [...batch, ...long, ...groupsOf(2, { prompt: 170, lengths: [200, 210] })];
      const [kept, again] = await Promise.all(
        [true, false].map(async (keepsAttention) => {
          const runner = new SequenceRunner(
            { model: changed },
            { threads: 1, tokenBudget: 3000, keepsAttention },
          );
          const gradients = zerosLike(own);
          const report = await runner.forwardBackward(own, data, { loss, gradients });
          await runner.close();
          return { gradients, report };
        }),
      );
      expect(kept).toEqual(again);
      expect(kept?.report.sharedTokens).toBeGreaterThan(0);
    },
  );

  test.each([{}, { keyValueHeads: 1 }])(
    "goes back through attention over long sequences block by block (%o)",
    async (variant) => {
      const long = { ...model, ...variant, layers: 1, contextLength: 256 };
      const own = initializeParameters(long, 4);
      const data = [
        ...[210, 191, 256].map((length, seed) => randomDatum(length, seed)),
        ...groupsOf(1, { prompt: 150, lengths: [230, 228] }),
      ];
      const [inBlocks, whole] = await Promise.all(
        [false, true].map(async (inOneRun) => {
          const runner = new SequenceRunner({ model: long }, { threads: 1, tokenBudget: 1000, inOneRun });
          const gradients = zerosLike(own);
          const report = await runner.forwardBackward(own, data, { loss, gradients });
          await runner.close();
          return { gradients, report };
        }),
      );
      assert(inBlocks && whole, "two runs");
      expect(inBlocks.report.sharedTokens).toBeGreaterThan(0);
      expect(difference(whole.gradients, inBlocks.gradients)).toBeLessThan(1e-5);
    },
  );

  test.each([true, false])(
    "goes back through a large vocabulary part by part (tied: %s)",
    async (tieEmbeddings) => {
      const large = { ...model, vocabularySize: 5000, layers: 1, tieEmbeddings };
      const own = initializeParameters(large, 4);
      const [inParts, whole] = await Promise.all(
        [false, true].map(async (inOneRun) => {
          const runner = new SequenceRunner({ model: large }, { threads: 1, tokenBudget: 60, inOneRun });
          const gradients = zerosLike(own);
          await runner.forwardBackward(own, batch, { loss, gradients });
          const logprobs = await runner.logprobs(own, batch);
          await runner.close();
          return { gradients, logprobs };
        }),
      );
      assert(inParts && whole, "two runs");
      expect(difference(whole.gradients, inParts.gradients)).toBeLessThan(1e-5);
      for (const [row, values] of whole.logprobs.entries())
        for (const [t, value] of values.entries()) expect(inParts.logprobs[row]?.[t]).toBeCloseTo(value, 5);
    },
  );

  test("in micro-batches adds up to the gradient of one batch within 1e-5", async () => {
    const whole = await gradientsOf({ tokenBudget: 1000 });
    const single = await gradientsOf({ tokenBudget: 1 });
    expect(single.paddedTokens).toBe(150);
    expect(difference(whole.gradients, single.gradients)).toBeLessThan(1e-5);
    expect(Math.abs(whole.loss - single.loss)).toBeLessThan(1e-5 * whole.loss);
  });

  test.each([1, 2, 3])(
    "of the whole network at once, in %d lanes, adds up to the same within 1e-5",
    async (lanes) => {
      const layered = await gradientsOf({ tokenBudget: 1000 });
      const whole = await gradientsOf({ tokenBudget: 1000, inOneRun: true, lanes });
      expect(difference(layered.gradients, whole.gradients)).toBeLessThan(1e-5);
      expect(Math.abs(layered.loss - whole.loss)).toBeLessThan(1e-5 * layered.loss);
      const again = await gradientsOf({ tokenBudget: 1000, inOneRun: true, lanes });
      expect(again).toEqual(whole);
    },
  );

  test.each([{}, { keyValueHeads: 1, family: "qwen3" as const }, { tieEmbeddings: false }])(
    "computes a common beginning once, with the gradient of each sequence by itself within 1e-5 (%o)",
    async (variant) => {
      const changed = { ...model, ...variant };
      const alike = groupsOf(3, { prompt: 17, lengths: [40, 42, 44] });
      const own = initializeParameters(changed, 4);
      const [together, apart] = await Promise.all(
        [1000, 1].map(async (tokenBudget) => {
          const runner = new SequenceRunner({ model: changed }, { threads: 1, tokenBudget });
          const gradients = zerosLike(own);
          const report = await runner.forwardBackward(own, alike, { loss, gradients });
          const logprobs = await runner.logprobs(own, alike);
          await runner.close();
          return { gradients, report, logprobs };
        }),
      );
      assert(together && apart, "two runs");
      expect(together.report.sharedTokens).toBe(3 * 2 * 17);
      expect(apart.report.sharedTokens).toBeUndefined();
      expect(together.report.paddedTokens).toBe(apart.report.paddedTokens);
      expect(difference(apart.gradients, together.gradients)).toBeLessThan(1e-5);
      expect(Math.abs(apart.report.loss - together.report.loss)).toBeLessThan(1e-5 * apart.report.loss);
      for (const [row, values] of apart.logprobs.entries())
        for (const [t, value] of values.entries()) expect(together.logprobs[row]?.[t]).toBeCloseTo(value, 5);
    },
  );

  test("computes rows of unequal numbers of places with the gradient of each sequence by itself within 1e-5", async () => {
    // Three tokens begin all six, seventeen more each pair.
    const alike = groupsOf(3, { prompt: 20, lengths: [40, 42] });
    for (const { inputs } of alike) inputs.set((alike[0] as Datum).inputs.subarray(0, 3));
    const [together, apart] = await Promise.all(
      [1000, 1].map(async (tokenBudget) => {
        const runner = new SequenceRunner({ model }, { threads: 1, tokenBudget });
        const gradients = zerosLike(parameters);
        const report = await runner.forwardBackward(parameters, alike, { loss, gradients });
        await runner.close();
        return { gradients, report };
      }),
    );
    assert(together && apart, "two runs");
    expect(together.report.sharedTokens).toBe(3 * (6 - 2) + 17 * 3);
    expect(difference(apart.gradients, together.gradients)).toBeLessThan(1e-5);
    expect(Math.abs(apart.report.loss - together.report.loss)).toBeLessThan(1e-5 * apart.report.loss);
  });

  test("side by side, layer by layer, adds up to the same within 1e-5, and the same bits each time", async () => {
    const one = await gradientsOf({ tokenBudget: 1000 });
    const two = await gradientsOf({ tokenBudget: 1000, lanes: 2 });
    expect(difference(one.gradients, two.gradients)).toBeLessThan(1e-5);
    expect(Math.abs(one.loss - two.loss)).toBeLessThan(1e-5 * one.loss);
    expect(await gradientsOf({ tokenBudget: 1000, lanes: 2 })).toEqual(two);
  });

  test("computes at most 15 % of padding and says how many tokens it computed", async () => {
    const { paddedTokens } = await gradientsOf({ tokenBudget: 1000 });
    expect(paddedTokens).toBeGreaterThanOrEqual(150);
    expect(1 - 150 / paddedTokens).toBeLessThanOrEqual(0.15);
  });

  test("gives weightless predictions exactly no gradient", async () => {
    const runner = new SequenceRunner({ model }, { threads: 1, tokenBudget: 1000, keptLayers: 0 });
    const gradients = zerosLike(parameters);
    const weightless = batch.map((datum) => ({ ...datum, weights: new Float32Array(datum.weights.length) }));
    const report = await runner.forwardBackward(parameters, weightless, { loss, gradients });
    await runner.close();
    expect(report.paddedTokens).toBe(0);
    for (const { data } of gradients.values()) expect(data.every((value) => value === 0)).toBe(true);
  });
});
