import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { random } from "../shared/random.ts";
import { mostLikely } from "./most-likely.ts";

/** The definition. */
function plain(logprobs: Float32Array): number {
  let best = 0;
  for (const [token, logprob] of logprobs.entries()) if (logprob > (logprobs[best] as number)) best = token;
  return best;
}

function row(tokens: number, seed: number): Float32Array {
  const chance = random(seed, "row");
  return Float32Array.from({ length: tokens }, () => -20 * chance.next());
}

describe("the most likely token", () => {
  test("is found at every place of vocabularies of all lengths, ties going to the lower id", () => {
    const cases = fc.record({
      tokens: fc.integer({ min: 1, max: 6000 }),
      first: fc.nat(),
      second: fc.nat(),
      seed: fc.nat(50),
    });
    fc.assert(
      fc.property(cases, ({ tokens, first, second, seed }) => {
        const logprobs = row(tokens, seed);
        logprobs[first % tokens] = 0;
        logprobs[second % tokens] = 0;
        expect(mostLikely(logprobs)).toBe(Math.min(first % tokens, second % tokens));
      }),
    );
  });

  test("of part of a large row is within that part", () => {
    const logprobs = row(49_152, 1);
    logprobs[49_000] = 0;
    const part = logprobs.subarray(0, 48_999);
    expect(mostLikely(part)).toBe(plain(part));
    expect(mostLikely(logprobs)).toBe(49_000);
  });

  test("is one of the numbers where some are none, and the first where all are impossible", () => {
    for (const place of [0, 5, 70, 4999]) {
      const logprobs = row(5000, 2);
      logprobs[place] = Number.NaN;
      expect(mostLikely(logprobs)).toBe(plain(logprobs));
    }
    for (const value of [Number.NEGATIVE_INFINITY, Number.NaN])
      expect(mostLikely(new Float32Array(5000).fill(value))).toBe(0);
  });
});
