import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { editDistance, nearest, suggestion } from "./nearest.ts";

describe("editDistance", () => {
  test.each([
    ["", "", 0],
    ["abc", "", 3],
    ["kitten", "sitting", 3],
    ["serach", "search", 1],
    ["ca", "abc", 3],
  ])("from %j to %j is %i", (a, b, expected) => {
    expect(editDistance(a, b)).toBe(expected);
  });

  test("is symmetric, zero only for equal words, and at most the longer length", () => {
    const word = fc.string({ maxLength: 8, unit: fc.constantFrom("a", "b", "c") });
    fc.assert(
      fc.property(word, word, (a, b) => {
        const distance = editDistance(a, b);
        expect(distance).toBe(editDistance(b, a));
        expect(distance === 0).toBe(a === b);
        expect(distance).toBeLessThanOrEqual(Math.max(a.length, b.length));
        expect(distance).toBeGreaterThanOrEqual(Math.abs(a.length - b.length));
      }),
    );
  });
});

describe("nearest", () => {
  test("finds a mistyped, swapped or wrongly cased key", () => {
    const keys = ["groupSize", "clipLow", "epochs"];
    expect(nearest("gruopSize", keys)).toBe("groupSize");
    expect(nearest("GROUPSIZE", keys)).toBe("groupSize");
    expect(nearest("epoch", keys)).toBe("epochs");
  });

  test("finds nothing when nothing is near, and never replaces a whole short word", () => {
    expect(nearest("temperature", ["k", "maxSearches"])).toBeUndefined();
    expect(nearest("q", ["k"])).toBeUndefined();
  });

  test("a suggestion lists what is known when nothing is near", () => {
    expect(suggestion("temperature", ["k", "seed"])).toBe("; known: k, seed");
    expect(suggestion("x", [])).toBe("");
  });
});
