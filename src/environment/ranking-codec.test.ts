import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseRanking, renderRanking } from "./ranking-codec.ts";

const shape = { count: 3, candidates: 12 };
const reason = "<reason>the second names the mentor</reason>";

describe("parseRanking", () => {
  it.each([
    ["the plain form", `${reason}<rerank>[2] > [12] > [1]</rerank>`],
    ["an empty reason", "<reason></reason><rerank>[2] > [12] > [1]</rerank>"],
    ["text before the reason", `Let me see. ${reason}<rerank>[2] > [12] > [1]</rerank>`],
    ["line ends around the block", `${reason}\n\n<rerank>[2] > [12] > [1]</rerank>\n`],
    ["no spaces around >", `${reason}<rerank>[2]>[12]>[1]</rerank>`],
    ["line ends within the block", `${reason}<rerank>\n[2] >\n[12] > [1]\n</rerank>`],
    ["line ends within the reason", "<reason>a\nb</reason><rerank>[2] > [12] > [1]</rerank>"],
  ])("accepts %s", (_, text) => {
    expect(parseRanking(text, shape)).toEqual([2, 12, 1]);
  });

  it.each([
    ["commas", `${reason}<rerank>[2], [12], [1]</rerank>`],
    ["fewer than K numbers", `${reason}<rerank>[2] > [12]</rerank>`],
    ["more than K numbers", `${reason}<rerank>[2] > [12] > [1] > [3]</rerank>`],
    ["the number N + 1", `${reason}<rerank>[2] > [13] > [1]</rerank>`],
    ["the number 0", `${reason}<rerank>[2] > [0] > [1]</rerank>`],
    ["a negative number", `${reason}<rerank>[2] > [-1] > [1]</rerank>`],
    ["a duplicate", `${reason}<rerank>[2] > [1] > [2]</rerank>`],
    ["a missing reason", "<rerank>[2] > [12] > [1]</rerank>"],
    ["two reasons", `${reason}${reason}<rerank>[2] > [12] > [1]</rerank>`],
    ["a reason that is not closed", "<reason>so<rerank>[2] > [12] > [1]</rerank>"],
    ["the ranking before the reason", `<rerank>[2] > [12] > [1]</rerank>${reason}`],
    ["text after the ranking", `${reason}<rerank>[2] > [12] > [1]</rerank> done`],
    ["text between reason and ranking", `${reason} so <rerank>[2] > [12] > [1]</rerank>`],
    ["a ranking that is not closed", `${reason}<rerank>[2] > [12] > [1]`],
    ["numbers without brackets", `${reason}<rerank>2 > 12 > 1</rerank>`],
    ["two rankings", `${reason}<rerank>[2] > [12] > [1]</rerank><rerank>[2] > [12] > [1]</rerank>`],
    ["a > at the end", `${reason}<rerank>[2] > [12] > [1] ></rerank>`],
    ["nothing", ""],
  ])("rejects %s", (_, text) => {
    expect(parseRanking(text, shape)).toBeUndefined();
  });

  it("reads back every choice that is rendered, and no other shape", () => {
    const order = fc.uniqueArray(fc.integer({ min: 1, max: 50 }), { minLength: 1, maxLength: 10 });
    fc.assert(
      fc.property(order, (numbers) => {
        const text = renderRanking(numbers, "why");
        expect(parseRanking(text, { count: numbers.length, candidates: 50 })).toEqual(numbers);
        expect(parseRanking(text, { count: numbers.length + 1, candidates: 50 })).toBeUndefined();
        expect(
          parseRanking(text, { count: numbers.length, candidates: Math.max(...numbers) - 1 }),
        ).toBeUndefined();
      }),
    );
  });
});
