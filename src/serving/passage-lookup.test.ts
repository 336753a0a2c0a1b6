import fc from "fast-check";
import { expect, test } from "vitest";
import type { Passage } from "../corpus/passage.ts";
import { passageLookup } from "./passage-lookup.ts";

const key = fc.constantFrom("", "a", "b", "c", "https://a", "日本", "aa", "ab");
const passageOf: fc.Arbitrary<Passage> = fc.record(
  { id: key, title: fc.constant(""), text: fc.string(), extra: fc.record({ url: key }) },
  { requiredKeys: ["id", "title", "text"] },
);

test("finds what a walk through all passages finds: the first id, or else the first url", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(passageOf), fc.array(key), async (passages, keys) => {
      const lookup = passageLookup({
        count: passages.length,
        get: (position) => passages[position] as Passage,
      });
      for (const wanted of keys) {
        const byId = passages.find(({ id }) => id === wanted);
        const byUrl = passages.find(({ id, extra }) => (extra?.url || id) === wanted);
        expect(await lookup(wanted)).toBe(byId ?? byUrl);
      }
    }),
  );
});

test("finds every one of many passages, also when asked while the table is made", async () => {
  const count = 5000;
  let reads = 0;
  const get = (position: number): Passage => {
    reads++;
    return { id: `passage-${position}`, title: "", text: "" };
  };
  const lookup = passageLookup({ count, get });
  expect(reads).toBe(0);
  const found = await Promise.all(Array.from({ length: count }, (_, i) => lookup(`passage-${i}`)));
  expect(found.map((passage) => passage?.id)).toEqual(
    Array.from({ length: count }, (_, i) => `passage-${i}`),
  );
  expect(await lookup("passage-5000")).toBeUndefined();
});

test("makes the table again after the store could not be read", async () => {
  let isBroken = true;
  const get = (): Passage => {
    if (isBroken) throw new Error("the disk is away");
    return { id: "a", title: "", text: "" };
  };
  const lookup = passageLookup({ count: 1, get });
  await expect(lookup("a")).rejects.toThrow("the disk is away");
  isBroken = false;
  expect((await lookup("a"))?.id).toBe("a");
});
