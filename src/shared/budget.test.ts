import { expect, test } from "vitest";
import { RetrieverError } from "../errors.ts";
import { createMeter, isBudgetSpent } from "./budget.ts";

const name = { name: "search budget", code: "retriever" } as const;
const call = { calls: 1, tokens: 0, dollars: 0.001 };

test("prices add up, and a spent budget is recognised behind other errors", () => {
  const meter = createMeter({ maxDollars: 0.3 }, name);
  for (let i = 0; i < 300; i++) meter.reserve(call);
  expect(meter.spent()).toEqual({ calls: 300, tokens: 0, dollars: 0.3 });
  let error: unknown;
  try {
    meter.reserve(call);
  } catch (cause) {
    error = new Error("outer", { cause });
  }
  expect(isBudgetSpent(error)).toBe(true);
  expect(isBudgetSpent(new RetrieverError("down"))).toBe(false);
});

test("tokens are reserved at their most and settled at what they came to", () => {
  const meter = createMeter({ maxTokens: 100 }, name);
  const most = { calls: 1, tokens: 80, dollars: 0 };
  meter.reserve(most);
  expect(() => meter.reserve(most)).toThrow(
    "the search budget of 100 tokens is spent: 1 call with 80 tokens for $0",
  );
  meter.settle(most, { calls: 1, tokens: 15, dollars: 0 });
  meter.reserve(most);
  expect(meter.spent()).toEqual({ calls: 2, tokens: 95, dollars: 0 });
});

test("prices of single tokens are kept to a millionth of a millionth of a dollar", () => {
  const meter = createMeter({}, name);
  for (let i = 0; i < 1000; i++) meter.reserve({ calls: 0, tokens: 1, dollars: 0.15e-6 });
  expect(meter.spent().dollars).toBe(0.00015);
});
