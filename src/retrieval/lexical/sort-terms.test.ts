import fc from "fast-check";
import { expect, test } from "vitest";
import { sortTerms } from "./sort-terms.ts";

test("sorts as the engine does, whatever the letters", () => {
  const letter = fc.constantFrom(..."ab09zé東\u{1d400}{`/:A\0");
  const term = fc.oneof(
    fc.string({ unit: letter, maxLength: 8 }),
    fc.string({ unit: "binary", maxLength: 4 }),
    fc.nat(30).map((n) => `capital${n}`),
  );
  fc.assert(
    fc.property(fc.array(term, { maxLength: 80 }), (terms) => {
      expect(sortTerms(terms)).toEqual(terms.slice().sort());
    }),
    { numRuns: 500 },
  );
});
