import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type GaeOptions,
  generalizedAdvantages,
  type TokenEpisode,
  type TokenEstimates,
  tokenRewards,
  whiten,
} from "./gae.ts";

// Two turns of two tokens with a retrieved text of three between them, after a prompt of one and before a rest of one:
// targets       prompt | a   b | o   o   o | c   d | rest
const actions = [0, 1, 1, 0, 0, 0, 1, 1, 0];
const values = [9, 0.5, 0.25, 0.5, 0.75, 0.25, 0.5, 0.75, 9];
const rewards = [7, 0, 0, 7, 7, 7, 0, 1, 7];
const episode: TokenEpisode = { actions, rewards, values };

const rowsOf = ({ advantages, returns, states }: TokenEstimates): object => ({
  advantages: [...advantages],
  returns: [...returns],
  states: [...states],
});

describe("worked by hand, gamma 1/2 and lambda 1/2, so that each step back weighs 1/4", () => {
  const half = { gamma: 0.5, lambda: 0.5 } as const;

  test("skipping observations: a, b, c, d follow each other", () => {
    // d: 1 - 3/4 = 1/4.            c: 3/8 - 1/2 + 1/16 = -1/16.
    // b: 1/4 - 1/4 - 1/64 = -1/64. a: 1/8 - 1/2 - 1/256 = -97/256.
    expect(rowsOf(generalizedAdvantages(episode, { ...half, observations: "skip" }))).toEqual({
      advantages: [0, -97 / 256, -1 / 64, 0, 0, 0, -1 / 16, 1 / 4, 0],
      returns: [0, 31 / 256, 15 / 64, 0, 0, 0, 7 / 16, 1, 0],
      states: [0, 1, 1, 0, 0, 0, 1, 1, 0],
    });
  });

  test("observations as states: what came after the text reaches what came before it 64 times weaker", () => {
    // d: 1/4.  c: -1/16.
    // o3: 1/4 - 1/4 - 1/64 = -1/64.         o2: 1/8 - 3/4 - 1/256 = -161/256.
    // o1: 3/8 - 1/2 - 161/1024 = -289/1024.  b: 1/4 - 1/4 - 289/4096.   a: 1/8 - 1/2 - 289/16384.
    const b = -289 / 4096;
    const a = -3 / 8 - 289 / 16384;
    expect(rowsOf(generalizedAdvantages(episode, { ...half, observations: "states" }))).toEqual({
      advantages: [0, a, b, 0, 0, 0, -1 / 16, 1 / 4, 0],
      returns: [0, a + 0.5, b + 0.25, 0.5 - 289 / 1024, 0.75 - 161 / 256, 0.25 - 1 / 64, 7 / 16, 1, 0],
      states: [0, 1, 1, 1, 1, 1, 1, 1, 0],
    });
  });

  test("lambda 0 looks one value ahead, lambda 1 with gamma 1 at the outcome alone", () => {
    const ahead = generalizedAdvantages(episode, { gamma: 1, lambda: 0, observations: "skip" });
    expect([...ahead.advantages]).toEqual([0, -0.25, 0.25, 0, 0, 0, 0.25, 0.25, 0]);
    const outcome = generalizedAdvantages(episode, { gamma: 1, lambda: 1, observations: "skip" });
    expect([...outcome.advantages]).toEqual([0, 0.5, 0.75, 0, 0, 0, 0.5, 0.25, 0]);
    expect([...outcome.returns]).toEqual(actions);
  });
});

const unit = fc.double({ min: 0, max: 1, noNaN: true });
const number = fc.double({ min: -2, max: 2, noNaN: true });
const token = fc.record({ isAction: fc.boolean(), reward: number, value: number });
const episodes = fc.array(token, { maxLength: 30 }).map((tokens) => ({
  actions: tokens.map(({ isAction }) => (isAction ? 1 : 0)),
  rewards: tokens.map(({ reward }) => reward),
  values: tokens.map(({ value }) => value),
}));
const options: fc.Arbitrary<GaeOptions> = fc.record({
  gamma: unit,
  lambda: unit,
  observations: fc.constantFrom("skip", "states"),
});

test("the recursion is the double sum of the definition", () => {
  fc.assert(
    fc.property(episodes, options, (sample, how) => {
      const { advantages, returns, states } = generalizedAdvantages(sample, how);
      const naive = naiveAdvantages(sample, how);
      for (let t = 0; t < advantages.length; t++) {
        const expected = naive.get(t) ?? 0;
        expect(states[t]).toBe(naive.has(t) ? 1 : 0);
        expect(advantages[t]).toBeCloseTo(sample.actions[t] === 1 ? expected : 0, 4);
        expect(returns[t]).toBeCloseTo(naive.has(t) ? expected + (sample.values[t] as number) : 0, 4);
      }
    }),
  );
});

test("without discounting both ways of counting time give the same advantages", () => {
  fc.assert(
    fc.property(episodes, (sample) => {
      const [skip, states] = (["skip", "states"] as const).map((observations) =>
        generalizedAdvantages(sample, { gamma: 1, lambda: 1, observations }),
      );
      for (const [t, advantage] of (skip as TokenEstimates).advantages.entries())
        expect(states?.advantages[t]).toBeCloseTo(advantage, 5);
    }),
  );
});

test("skipping observations, their number changes nothing", () => {
  fc.assert(
    fc.property(episodes, options, fc.nat(20), (sample, how, count) => {
      const skip = { ...how, observations: "skip" } as const;
      const first = sample.actions.indexOf(1) + 1;
      const stretched = <T>(values: readonly T[], filler: T): T[] =>
        values.toSpliced(first, 0, ...Array.from({ length: count }, () => filler));
      const longer = {
        actions: stretched(sample.actions, 0),
        rewards: stretched(sample.rewards, 5),
        values: stretched(sample.values, 5),
      };
      const acted = ({ advantages }: TokenEstimates, { actions: mask }: { actions: number[] }): number[] =>
        [...advantages].filter((_, t) => mask[t] === 1);
      expect(acted(generalizedAdvantages(longer, skip), longer)).toEqual(
        acted(generalizedAdvantages(sample, skip), sample),
      );
    }),
  );
});

test("values that know every return leave no advantage", () => {
  fc.assert(
    fc.property(episodes, options, (sample, how) => {
      const exact = { ...sample, values: exactValues(sample, how) };
      for (const advantage of generalizedAdvantages(exact, how).advantages)
        expect(advantage).toBeCloseTo(0, 5);
    }),
  );
});

describe("tokenRewards", () => {
  test("the outcome is at the last action, penalties are at all of them", () => {
    expect([...tokenRewards(actions, 1)]).toEqual([0, 0, 0, 0, 0, 0, 0, 1, 0]);
    const penalties = [9, 0.5, -0.25, 9, 9, 9, 0.125, 0.25, 9];
    expect([...tokenRewards(actions, 1, penalties)]).toEqual([0, -0.5, 0.25, 0, 0, 0, -0.125, 0.75, 0]);
  });

  test("a trajectory without an action earns nothing", () => {
    expect([...tokenRewards([0, 0], 1)]).toEqual([0, 0]);
  });
});

describe("whiten", () => {
  test("worked by hand: 1, 2, 3 in two rows have mean 2 and unbiased deviation 1", () => {
    const rows = whiten([Float32Array.of(1, 50, 3), Float32Array.of(2)], [[1, 0, 1], [1]]);
    expect(rows.map((row) => [...row])).toEqual([[expect.closeTo(-1, 6), 0, expect.closeTo(1, 6)], [0]]);
  });

  test("equal entries, a single one, and none give zeros", () => {
    for (const values of [[3, 3, 3], [5], []]) {
      const [row] = whiten([Float32Array.from(values)], [values.map(() => 1)]);
      expect([...(row as Float32Array)]).toEqual(values.map(() => 0));
    }
  });

  test("mean 0 and deviation 1 over what is whitened, whatever lies elsewhere", () => {
    const entries = fc.array(fc.tuple(fc.double({ min: -5, max: 5, noNaN: true }), fc.boolean()), {
      minLength: 3,
      maxLength: 40,
    });
    fc.assert(
      fc.property(entries, (sample) => {
        const mask = sample.map(([, isAction]) => (isAction ? 1 : 0));
        const inside = sample.filter(([, isAction]) => isAction).map(([value]) => value);
        fc.pre(Math.max(...inside) - Math.min(...inside) > 0.1);
        const [row] = whiten([Float32Array.from(sample, ([value]) => value)], [mask]);
        const white = [...(row as Float32Array)].filter((_, t) => mask[t] === 1);
        const mean = white.reduce((sum, value) => sum + value, 0) / white.length;
        const variance = white.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (white.length - 1);
        expect(mean).toBeCloseTo(0, 4);
        expect(variance).toBeCloseTo(1, 3);
        for (const [t, value] of (row as Float32Array).entries()) if (mask[t] === 0) expect(value).toBe(0);
      }),
    );
  });
});

/** A_i = sum over j >= i of (gamma lambda)^(j - i) delta_j, at the targets that count as time. */
function naiveAdvantages(
  sample: TokenEpisode,
  { gamma, lambda, observations }: GaeOptions,
): Map<number, number> {
  const all = Array.from({ length: sample.actions.length }, (_, t) => t);
  const sampled = all.filter((t) => sample.actions[t] === 1);
  const [first = 0, last = -1] = [sampled[0], sampled.at(-1)];
  const times = observations === "skip" ? sampled : all.filter((t) => t >= first && t <= last);
  const value = (i: number): number => (i < times.length ? (sample.values[times[i] as number] as number) : 0);
  const delta = (i: number): number => {
    const t = times[i] as number;
    const reward = sample.actions[t] === 1 ? (sample.rewards[t] as number) : 0;
    return reward + gamma * value(i + 1) - value(i);
  };
  return new Map(
    times.map((t, i) => {
      let sum = 0;
      for (let j = i; j < times.length; j++) sum += (gamma * lambda) ** (j - i) * delta(j);
      return [t, sum];
    }),
  );
}

/** The discounted sums of the rewards that follow. */
function exactValues(sample: TokenEpisode, how: GaeOptions): number[] {
  const zeros = Array.from({ length: sample.actions.length }, () => 0);
  const { returns } = generalizedAdvantages({ ...sample, values: zeros }, { ...how, lambda: 1 });
  return [...returns];
}
