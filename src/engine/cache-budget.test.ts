import fc from "fast-check";
import { expect, test } from "vitest";
import { steppedRows } from "./cache-budget.ts";
import { tinyModel } from "./engine.fixture.ts";

const model = { ...tinyModel, contextLength: 5000 };

test("a cache has room for its rows, at most a quarter or 64 more, and never less for more of them", () => {
  const rows = fc.integer({ min: 1, max: model.contextLength });
  fc.assert(
    fc.property(rows, rows, (a, b) => {
      const room = steppedRows(model, a);
      expect(room).toBeGreaterThanOrEqual(a);
      expect(room).toBeLessThanOrEqual(Math.min(model.contextLength, Math.max(a + 63, 1.25 * a)));
      expect(steppedRows(model, room)).toBe(room);
      if (a < b) expect(steppedRows(model, b)).toBeGreaterThanOrEqual(room);
    }),
  );
});

test("steps double with what there is, by hand", () => {
  expect([1, 64, 65, 512, 513, 1024, 1025, 4097].map((rows) => steppedRows(model, rows))).toEqual([
    64, 64, 128, 512, 640, 1024, 1280, 5000,
  ]);
});
