import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type GroupedCall, groupQueries, queryGroupingSchema, queryWords, wordF1 } from "./query-groups.ts";

const options = (given: object = {}) => queryGroupingSchema.parse(given);
const call = (query: string, isAnswerable = true): GroupedCall => ({ query, isAnswerable });
const queriesOf = (calls: readonly GroupedCall[], given: object = {}): string[][] =>
  groupQueries(calls, options({ minMembers: 1, ...given })).map(({ members }) =>
    members.map(({ query }) => query),
  );

describe("queryWords", () => {
  it.each([
    ["U.S.A. a-team the O'Neil", "u s team o neil"],
    ["The  Theatre, an A", "theatre"],
    ["snake_case and Änderung", "snake_case and änderung"],
    ["", ""],
  ])("%j becomes %j", (query, expected) => {
    expect(queryWords(query).join(" ")).toBe(expected);
  });
});

// Values of specs of the paper (tables 5 and 6 among them), computed with the released function.
describe("wordF1", () => {
  it.each([
    ["host city of the 2008 Summer Olympics", "host city of the 2008 Summer Olympic Games", 10 / 13],
    ["Frank Ellis place of death", "Frank Ellis death place", 8 / 9],
    [
      "Embassy of Northern Cyprus in Kemerhisar operator",
      "Embassy of Northern Cyprus in Istanbul operator",
      12 / 14,
    ],
    ["Paris", "Paris France", 2 / 3],
    ["", "Paris", 0],
    ["the", "the", 0],
    ["bo bo lee", "bo lee lee", 4 / 6],
  ])("of %j and %j is %f", (a, b, expected) => {
    expect(wordF1(queryWords(a), queryWords(b))).toBeCloseTo(expected, 12);
    expect(wordF1(queryWords(b), queryWords(a))).toBeCloseTo(expected, 12);
  });
});

describe("groupQueries", () => {
  it("splits by answerability, keeps order and leaves small groups out", () => {
    const calls = [
      call("Frank Ellis place of death"),
      call("Frank Ellis death place"),
      call("Paris"),
      call("frank ellis, place of death", false),
      call("Frank Ellis place of the death"),
    ];
    expect(groupQueries(calls, options())).toEqual([
      { name: "easy/0", members: [calls[0], calls[1], calls[4]] },
    ]);
    expect(groupQueries(calls, options({ minMembers: 1 })).map(({ name }) => name)).toEqual([
      "easy/0",
      "easy/1",
      "hard/0",
    ]);
    expect(queriesOf(calls, { answerability: false })[0]).toHaveLength(4);
    expect(queriesOf(calls, { answerability: false, type: "off" })).toHaveLength(1);
    expect(queriesOf(calls, { type: "off" }).map((group) => group.length)).toEqual([4, 1]);
    expect(queriesOf(calls, { type: "exact" }).map((group) => group.length)).toEqual([2, 1, 1, 1]);
  });

  it("lets the first cluster win, not the best one, and never moves its representative", () => {
    // The third fits both: F1 0.8 with the first, 1 with the second.
    expect(queriesOf([call("p q r s t"), call("p q r s u"), call("p q r s u")])).toEqual([
      ["p q r s t", "p q r s u", "p q r s u"],
    ]);
    // The third is near the second but not near the first, which alone stands for the group.
    expect(queriesOf([call("p q r s t"), call("p q r s u"), call("p q r v u")])).toEqual([
      ["p q r s t", "p q r s u"],
      ["p q r v u"],
    ]);
  });

  it("takes 0.8 as near enough and leaves empty queries alone", () => {
    expect(queriesOf([call("p q r s t"), call("p q r s u")])).toHaveLength(1);
    expect(queriesOf([call("the"), call("the")])).toHaveLength(2);
    expect(queriesOf([])).toEqual([]);
  });

  it("is what a naive version of the published algorithm gives", () => {
    const word = fc.constantFrom("p", "q", "r", "the", "s.", "T");
    const query = fc.array(word, { maxLength: 6 }).map((words) => words.join(" "));
    const calls = fc.array(fc.record({ query, isAnswerable: fc.boolean() }), { maxLength: 14 });
    const threshold = fc.constantFrom(0.5, 0.8, 1);
    fc.assert(
      fc.property(calls, threshold, fc.integer({ min: 1, max: 4 }), (given, least, minMembers) => {
        const groups = groupQueries(given, options({ threshold: least, minMembers }));
        expect(groups.map(({ members }) => members)).toEqual(naive(given, least, minMembers));
      }),
    );
  });
});

/** Written after the pseudocode of algorithm 2, with one loop for each line. */
function naive(calls: readonly GroupedCall[], threshold: number, minMembers: number): GroupedCall[][] {
  const result: GroupedCall[][] = [];
  for (const side of [true, false]) {
    const groups: GroupedCall[][] = [];
    for (const each of calls) {
      if (each.isAnswerable !== side) continue;
      let target: GroupedCall[] | undefined;
      for (const group of groups) {
        if (target) continue;
        const a = queryWords(each.query);
        const b = queryWords((group[0] as GroupedCall).query);
        const rest = [...b];
        let common = 0;
        for (const word of a) {
          const at = rest.indexOf(word);
          if (at >= 0) rest.splice(at, 1);
          if (at >= 0) common++;
        }
        const precision = a.length === 0 ? 0 : common / a.length;
        const recall = b.length === 0 ? 0 : common / b.length;
        const f1 = common === 0 ? 0 : (2 * precision * recall) / (precision + recall);
        if (f1 >= threshold - 1e-12) target = group;
      }
      if (target) target.push(each);
      else groups.push([each]);
    }
    result.push(...groups.filter((group) => group.length >= minMembers));
  }
  return result;
}
