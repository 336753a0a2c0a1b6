import fc from "fast-check";
import { expect, test } from "vitest";
import { FingerprintTable, IdTable } from "./fingerprints.ts";

const id = fc.oneof(
  fc.nat(40).map(String),
  fc.constantFrom("", "00", "01", "-1", "1.0", "1e3", "9007199254740993", "a", "b", "a#0"),
);

test("an id table answers as a map does", () => {
  fc.assert(
    fc.property(fc.array(id, { maxLength: 100 }), (ids) => {
      const table = new IdTable();
      const map = new Map<string, number>();
      for (const [position, id] of ids.entries()) {
        expect(table.add(id, position)).toBe(map.get(id));
        if (!map.has(id)) map.set(id, position);
      }
    }),
  );
});

test("ids in rising order with gaps, and many runs of them, are found again", () => {
  const table = new IdTable();
  const ids = Array.from({ length: 5000 }, (_, i) => String((i * 7919) % 5003));
  for (const [position, id] of ids.entries()) expect(table.add(id, position)).toBeUndefined();
  for (const [position, id] of ids.entries()) expect(table.add(id, 1e6)).toBe(position);
});

test("a million texts that hardly differ have fingerprints of their own, in at most 32 bytes each", () => {
  const table = new FingerprintTable();
  const count = 1_000_000;
  let repeats = 0;
  for (let i = 0; i < count; i++)
    if (table.add(`doc-${i % 1000}/${Math.floor(i / 1000)}`, i) !== undefined) repeats++;
  expect(repeats).toBe(0);
  expect(table.get("doc-7/3")).toBe(3007);
  expect(table.bytes / count).toBeLessThanOrEqual(32);
});
