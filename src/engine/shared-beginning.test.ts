import fc from "fast-check";
import { expect, test } from "vitest";
import { type Neighbour, sharedBeginning } from "./shared-beginning.ts";

const range = (count: number, from = 0): number[] => Array.from({ length: count }, (_, i) => from + i);
const idle = (cached: readonly number[]): Neighbour => ({ cached, tokens: undefined });

test("takes the longest beginning, and leaves the last token", () => {
  const [short, long] = [idle(range(30)), idle(range(50))];
  expect(sharedBeginning(range(80), 0, [short, long])).toEqual({ neighbour: long, rows: 50 });
  expect(sharedBeginning(range(40), 0, [short, long])).toEqual({ neighbour: long, rows: 39 });
});

test("takes nothing that is little more than what is there already", () => {
  expect(sharedBeginning(range(80), 35, [idle(range(50))])).toBeUndefined();
  expect(sharedBeginning(range(80), 34, [idle(range(50))])?.rows).toBe(50);
});

test("waits for what is being computed only where that is much more than what is there", () => {
  const ready = idle(range(50));
  const running = (count: number): Neighbour => ({ cached: range(20), tokens: range(count) });
  expect(sharedBeginning(range(80), 0, [ready, running(65)])?.neighbour).toBe(ready);
  expect(sharedBeginning(range(80), 0, [ready, running(66)])?.rows).toBe(66);
});

test("what it promises is a beginning of both", () => {
  const tokens = fc.array(fc.integer({ min: 0, max: 1 }), { minLength: 1, maxLength: 60 });
  const neighbour = fc
    .tuple(tokens, fc.double({ min: 0, max: 1, noNaN: true }), fc.boolean())
    .map(([all, share, isIdle]) => {
      const cached = all.slice(0, Math.floor(share * all.length));
      return { cached, tokens: isIdle ? undefined : all };
    });
  fc.assert(
    fc.property(tokens, fc.array(neighbour), fc.nat(60), (context, neighbours, own) => {
      const found = sharedBeginning(context, own, neighbours);
      if (found === undefined) return;
      const whole = found.neighbour.tokens ?? found.neighbour.cached;
      expect(found.rows).toBeGreaterThan(own);
      expect(found.rows).toBeLessThan(context.length);
      expect(whole.slice(0, found.rows)).toEqual(context.slice(0, found.rows));
    }),
  );
});
