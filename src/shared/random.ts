/**
 * Seeded random numbers. Every use of chance in Forager draws from a `Random` that was derived from the
 * run's seed and a label, so that a run repeats and a resumed run continues without stored generator state.
 * The generator is sfc32 (Chris Doty-Humphrey, PractRand): 128 bits of state, passes PractRand.
 */

export interface Random {
  /** A number in [0, 1). */
  next(): number;
  /** An integer in [0, bound). */
  below(bound: number): number;
  /** One element; the array must not be empty. */
  pick<T>(values: readonly T[]): T;
  /** A new array in random order (Fisher-Yates). */
  shuffle<T>(values: readonly T[]): T[];
  /** A draw from the standard normal distribution (Box-Muller). */
  normal(): number;
}

/** Returns a generator for `seed` and `labels`, e.g. `random(7, "step", 12)`; equal arguments, equal numbers. */
export function random(seed: number, ...labels: readonly (string | number)[]): Random {
  const hash = hashWords(`${seed}|${labels.join("|")}`);
  let [a, b, c, d] = hash;
  const nextWord = (): number => {
    const t = (((a + b) | 0) + d) | 0;
    d = (d + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (c << 21) | (c >>> 11);
    c = (c + t) | 0;
    return t >>> 0;
  };
  for (let i = 0; i < 12; i++) nextWord();
  const next = (): number => (nextWord() * 2 ** 21 + (nextWord() >>> 11)) / 2 ** 53;
  const below = (bound: number): number => Math.floor(next() * bound);
  return {
    next,
    below,
    pick: (values) => {
      if (values.length === 0) throw new Error("Assertion failed: pick from an empty array");
      return values[below(values.length)] as (typeof values)[number];
    },
    shuffle: (values) => {
      const result = [...values];
      for (let i = result.length - 1; i > 0; i--) {
        const j = below(i + 1);
        [result[i], result[j]] = [result[j] as (typeof result)[number], result[i] as (typeof result)[number]];
      }
      return result;
    },
    normal: () => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next()),
  };
}

/** Four 32-bit words from a string (cyrb128-like mixing), to seed a generator; not for security. */
function hashWords(text: string): [number, number, number, number] {
  let h1 = 1779033703;
  let h2 = 3144134277;
  let h3 = 1013904242;
  let h4 = 2773480762;
  for (let i = 0; i < text.length; i++) {
    const k = text.charCodeAt(i);
    h1 = h2 ^ Math.imul(h1 ^ k, 597399067);
    h2 = h3 ^ Math.imul(h2 ^ k, 2869860233);
    h3 = h4 ^ Math.imul(h3 ^ k, 951274213);
    h4 = h1 ^ Math.imul(h4 ^ k, 2716044179);
  }
  return [h1 | 0, h2 | 0, h3 | 0, h4 | 0];
}
