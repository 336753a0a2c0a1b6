import fc from "fast-check";
import { expect, test } from "vitest";
import type { Passage } from "../corpus/passage.ts";
import { AnswerWriter, lists, scoredDocument } from "./answer-writer.ts";
import { DocumentCache } from "./document-cache.ts";

const textOf = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.string({ unit: fc.constantFrom("a", '"', "\\", "\ud83d", "🗼", "\n") }),
);
const passageOf: fc.Arbitrary<Passage> = fc.record(
  {
    id: fc.constantFrom("1", "2", "3"),
    title: textOf,
    text: textOf,
    extra: fc.record({ url: fc.constantFrom("u", ""), contents: fc.constant("not mine"), note: textOf }),
  },
  { requiredKeys: ["id", "title", "text"] },
);

/** What the writer must be equal to: plain `JSON.stringify` of plain objects. */
function naive({ id, title, text, extra = {} }: Passage): object {
  const url = extra.url === undefined || extra.url === "" ? id : extra.url;
  return {
    id,
    contents: `"${title}"\n${text}`,
    title,
    text,
    ...(extra.note !== undefined && { note: extra.note }),
    url,
  };
}

test("writes what JSON.stringify would, whatever the cache holds", () => {
  fc.assert(
    fc.property(
      fc.array(fc.array(fc.array(fc.tuple(passageOf, fc.double())))),
      fc.constantFrom(0, 3000, 2 ** 20),
      (answers, cacheBytes) => {
        const cache = new DocumentCache(cacheBytes);
        for (const answer of answers) {
          const found = answer.map((list) => list.map(([passage, score]) => ({ passage, score })));
          const bytes = lists(new AnswerWriter(cache, 2 ** 28), found, scoredDocument).finish();
          const json = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)) as unknown;
          const expected = answer.map((list) =>
            list.map(([passage, score]) => ({ document: naive(passage), score })),
          );
          expect(json).toEqual(JSON.parse(JSON.stringify(expected)));
        }
      },
    ),
  );
});

test("gives a document again without writing it, until it is forgotten", () => {
  const cache = new DocumentCache(10_000);
  const passage = (id: number): Passage => ({ id: String(id), title: "", text: "x".repeat(200) });
  const first = cache.get(passage(0));
  expect(cache.get(passage(0))).toBe(first);
  for (let id = 1; id < 100; id++) {
    cache.get(passage(id));
    if (id % 3 === 0) expect(cache.get(passage(0))).toBe(first); // used, and so kept
  }
  for (let id = 1; id < 100; id++) cache.get(passage(id));
  expect(cache.get(passage(0))).not.toBe(first);
});

test("refuses to grow beyond the limit of an answer", () => {
  const out = new AnswerWriter(new DocumentCache(0), 20_000);
  const passage: Passage = { id: "1", title: "", text: "x".repeat(3000) };
  const write = (): AnswerWriter => lists(out, [Array(4).fill({ passage, score: 1 })], scoredDocument);
  expect(write).toThrow("expected an answer of at most 20000 bytes");
});
