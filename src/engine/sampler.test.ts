import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { random } from "../shared/random.ts";
import { BlockMasses, blockTokens } from "./block-masses.ts";
import { sampleToken } from "./sampler.ts";

type Filter = Parameters<typeof sampleToken>[1];
const plain: Filter = { temperature: 1, topP: 1, topK: 0 };
const draws = 20_000;

const row = (probabilities: readonly number[]): Float32Array =>
  Float32Array.from(probabilities, (probability) => Math.log(probability));

/** Expects each token as often as its probability says, within five standard deviations; one of 0 or 1 exactly. */
function expectFrequencies(logprobs: Float32Array, options: Filter, expected: readonly number[]): void {
  const chance = random(7, "sampler", JSON.stringify(options));
  const counts = expected.map(() => 0);
  for (let i = 0; i < draws; i++) {
    const token = sampleToken(logprobs, options, chance);
    counts[token] = (counts[token] as number) + 1;
  }
  for (const [token, probability] of expected.entries()) {
    const sigma = Math.sqrt(draws * probability * (1 - probability));
    const distance = Math.abs((counts[token] as number) - draws * probability);
    expect(distance, `token ${token} was drawn ${counts[token]} times`).toBeLessThanOrEqual(5 * sigma + 1e-6);
  }
}

/** Probabilities in proportion to the given weights. */
function normalize(weights: readonly number[]): number[] {
  const total = weights.reduce((a, b) => a + b, 0);
  return weights.map((weight) => weight / total);
}

describe("sampleToken", () => {
  const probabilities = [0.1, 0.4, 0, 0.2, 0.3];

  test("at temperature 0 takes the most likely token, of equals the first, whatever the filters", () => {
    const chance = random(1, "unused");
    const ties = row([0.1, 0.35, 0.2, 0.35]);
    for (const topP of [0.01, 1])
      for (const topK of [0, 1, 3]) {
        expect(sampleToken(ties, { temperature: 0, topP, topK }, chance)).toBe(1);
      }
    expect(chance.next()).toBe(random(1, "unused").next());
  });

  test("at temperature 1 draws by the probabilities, and never what has none", () => {
    expectFrequencies(row(probabilities), plain, probabilities);
  });

  test.each([0.5, 0.7, 2, 10])(
    "at temperature %f draws by the powers of the probabilities",
    (temperature) => {
      const expected = normalize(probabilities.map((probability) => probability ** (1 / temperature)));
      expectFrequencies(row(probabilities), { ...plain, temperature }, expected);
    },
  );

  test("a row without some of its tokens shares their mass among the others in proportion", () => {
    const present = [0.1, 0.2, 0.02];
    expectFrequencies(row(present), plain, normalize(present));
    expectFrequencies(row(present), { ...plain, topP: 0.9 }, normalize([0.1, 0.2, 0]));
  });

  test("keeps the topK most likely tokens, of equals the first", () => {
    expectFrequencies(row(probabilities), { ...plain, topK: 2 }, normalize([0, 0.4, 0, 0, 0.3]));
    expectFrequencies(row([0.25, 0.25, 0.25, 0.25]), { ...plain, topK: 3 }, [1 / 3, 1 / 3, 1 / 3, 0]);
    expectFrequencies(row(probabilities), { ...plain, topK: 1 }, [0, 1, 0, 0, 0]);
    expectFrequencies(row(probabilities), { ...plain, topK: 99 }, probabilities);
  });

  test("keeps the fewest likely tokens whose mass reaches topP, always one", () => {
    expectFrequencies(row(probabilities), { ...plain, topP: 0.65 }, normalize([0, 0.4, 0, 0, 0.3]));
    expectFrequencies(row(probabilities), { ...plain, topP: 0.75 }, normalize([0, 0.4, 0, 0.2, 0.3]));
    expectFrequencies(row(probabilities), { ...plain, topP: 1e-9 }, [0, 1, 0, 0, 0]);
  });

  test("cuts the nucleus from what topK and temperature left", () => {
    const options = { temperature: 0.5, topK: 3, topP: 0.8 };
    // Squares of 0.4, 0.3, 0.2 in proportion: 0.55, 0.31, 0.14.
    expectFrequencies(row(probabilities), options, normalize([0, 0.16, 0, 0, 0.09]));
  });

  test("draws only among the kept tokens, all of which are possible", () => {
    const weights = fc.array(fc.oneof(fc.constant(0), fc.double({ min: 1e-30, max: 1, noNaN: true })), {
      minLength: 1,
      maxLength: 40,
    });
    const filters = fc.record({
      temperature: fc.constantFrom(0, 0.1, 1, 3),
      topK: fc.integer({ min: 0, max: 45 }),
      topP: fc.double({ min: 1e-6, max: 1, noNaN: true }),
    });
    fc.assert(
      fc.property(weights, filters, fc.integer(), (values, filter, seed) => {
        fc.pre(values.some((value) => value > 0));
        const logprobs = row(normalize(values));
        const kept = keptTokens(logprobs, filter);
        const chance = random(seed, "kept");
        for (let i = 0; i < 20; i++) expect(kept).toContain(sampleToken(logprobs, filter, chance));
      }),
    );
  });
});

/** What top-k and then top-p leave, by definition; a token counts as kept while the mass before it is below topP. */
function keptTokens(logprobs: Float32Array, { temperature, topK, topP }: Filter): number[] {
  const order = [...logprobs.keys()]
    .sort((a, b) => (logprobs[b] as number) - (logprobs[a] as number) || a - b)
    .filter((token) => logprobs[token] !== Number.NEGATIVE_INFINITY);
  const first = order.slice(0, temperature === 0 ? 1 : topK || order.length);
  const peak = logprobs[first[0] as number] as number;
  const weights = first.map((token) =>
    temperature === 0 ? 1 : Math.exp(((logprobs[token] as number) - peak) / temperature),
  );
  const total = weights.reduce((a, b) => a + b, 0);
  const before = weights.map((_, i) => weights.slice(0, i).reduce((a, b) => a + b, 0));
  return first.filter((_, i) => i === 0 || (before[i] as number) < topP * total);
}

describe("the masses of blocks", () => {
  const size = 4096;
  const chance = random(3, "vocabulary");
  const row = Float32Array.from({ length: size }, () => 4 * chance.normal());
  row.fill(Number.NEGATIVE_INFINITY, 640, 704);
  const logTotal = Math.log(row.reduce((sum, value) => sum + Math.exp(value), 0));
  const logprobs = row.map((value) => value - logTotal);
  const masses = new BlockMasses(size, 1);
  afterAll(async () => await masses.rest());

  test.each([
    [1, size],
    [0.5, size],
    [2, 4000],
  ])("draw the same tokens as all probabilities do (temperature %f, %d ids)", async (temperature, count) => {
    const rows = Float32Array.from([...logprobs, ...logprobs.toReversed()]);
    const sums = (await masses.of(rows, [temperature, 1], count)) as Float32Array;
    expect(sums).toHaveLength((2 * size) / blockTokens);
    const options = { ...plain, temperature };
    const drawable = logprobs.subarray(0, count);
    const total = drawable.reduce((sum, value) => sum + Math.exp(value / temperature), 0);
    for (const [block, mass] of sums.subarray(0, size / blockTokens).entries()) {
      const tokens = drawable.subarray(block * blockTokens, (block + 1) * blockTokens);
      const expected = tokens.reduce((sum, value) => sum + Math.exp(value / temperature), 0) / total;
      expect(Math.abs(mass - expected)).toBeLessThan(1e-6);
    }
    let same = 0;
    for (let i = 0; i < 2000; i++) {
      const [one, other] = [random(9, "draws", i), random(9, "draws", i)];
      const token = sampleToken(drawable, options, one, sums.subarray(0, size / blockTokens));
      expect(token).toBeLessThan(count);
      if (token === sampleToken(drawable, options, other)) same++;
    }
    expect(same).toBeGreaterThan(1990);
  });

  test("that are no numbers, or all vanish, choose what is chosen without them", () => {
    const none = new Float32Array(size / blockTokens).fill(Number.NaN);
    const options = { temperature: 1, topK: 0, topP: 1 };
    for (const value of [Number.NaN, Number.NEGATIVE_INFINITY]) {
      const logprobs = new Float32Array(size - 70).fill(value);
      const without = sampleToken(logprobs, options, random(1, "draw"));
      expect(sampleToken(logprobs, options, random(1, "draw"), none)).toBe(without);
      expect(
        sampleToken(
          logprobs,
          options,
          random(1, "draw"),
          none.map(() => 0),
        ),
      ).toBe(without);
      expect(without).toBeLessThan(logprobs.length);
    }
  });

  test("are not made for a small vocabulary, nor for one that is not made of whole blocks", async () => {
    for (const odd of [512, 5000]) {
      const vocabulary = new BlockMasses(odd, 1);
      expect(await vocabulary.of(new Float32Array(odd), [1], odd)).toBeUndefined();
    }
  });
});
