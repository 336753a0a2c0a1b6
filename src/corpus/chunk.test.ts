import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ConfigError } from "../errors.ts";
import { type ChunkOptions, type CountTokens, chunkOptionsSchema, chunkSpans } from "./chunk.ts";
import { cutDocument } from "./cut-document.ts";
import { fastest } from "./reading.suite.ts";

/** A tokenizer whose tokens are at most three characters of one word; a blank counts to the word after it. */
const countTokens: CountTokens = (text) =>
  [...text.matchAll(/\s?\S+|\s+/g)].reduce((sum, [piece]) => sum + Math.ceil(piece.length / 3), 0);

const pieces = (text: string, options: ChunkOptions): string[] =>
  chunkSpans(text, options, countTokens).map(({ start, end }) => text.slice(start, end));
const words = (size: number, overlap = 0, wholeSentences = false): ChunkOptions => ({
  by: "words",
  size,
  overlap,
  wholeSentences,
});

const text = fc.oneof(
  fc.string({ unit: "grapheme", maxLength: 200 }),
  fc
    .array(
      fc.constantFrom(
        "One",
        "two.",
        "三个词语。",
        "ไทยแลนด์",
        "\n\n",
        "e\u0301",
        "👩‍🚀",
        "a-b",
        "x".repeat(20),
      ),
      {
        maxLength: 60,
      },
    )
    .map((parts) => parts.join(" ")),
);
const options = fc
  .record({
    by: fc.constantFrom("words", "tokens", "sentences"),
    size: fc.integer({ min: 1, max: 12 }),
    overlap: fc.integer({ min: 0, max: 11 }),
    wholeSentences: fc.boolean(),
  })
  .filter(({ size, overlap }) => overlap < size)
  .map(({ wholeSentences, ...rest }) =>
    chunkOptionsSchema.parse(rest.by === "sentences" ? rest : { ...rest, wholeSentences }),
  );

test("pieces without overlap join to the text", () => {
  fc.assert(
    fc.property(text, options, (text, options) => {
      if (options.by === "document") return;
      expect(pieces(text, { ...options, overlap: 0 }).join("")).toBe(text);
    }),
  );
});

test("pieces with overlap go forward, leave no gap and end at the end", () => {
  fc.assert(
    fc.property(text, options, (text, options) => {
      const spans = chunkSpans(text, options, countTokens);
      for (const [i, { start, end }] of spans.entries()) {
        const before = spans[i - 1] ?? { start: -1, end: 0 };
        expect(start > before.start && start <= before.end && end > before.end && end > start).toBe(true);
      }
      expect(spans.at(-1)?.end ?? 0).toBe(text.length);
    }),
  );
});

test("no piece has more tokens than asked, unless it is one character", () => {
  fc.assert(
    fc.property(text, fc.integer({ min: 1, max: 9 }), fc.boolean(), (text, size, wholeSentences) => {
      for (const piece of pieces(text, { by: "tokens", size, overlap: 0, wholeSentences }))
        expect(countTokens(piece) <= size || [...new Intl.Segmenter().segment(piece)].length === 1).toBe(
          true,
        );
    }),
  );
});

test("no piece ends inside a character", () => {
  fc.assert(
    fc.property(text, options, (text, options) => {
      const starts = new Set(Array.from(new Intl.Segmenter("en").segment(text), ({ index }) => index));
      for (const { start } of chunkSpans(text, options, countTokens)) expect(starts.has(start)).toBe(true);
    }),
  );
});

describe("a text is cut", () => {
  test("by words, the blanks before a word with it", () => {
    expect(pieces("a b  c d e", words(2))).toEqual(["a b", "  c d", " e"]);
    expect(pieces("a b c d e", words(3, 1))).toEqual(["a b c", " c d e"]);
  });

  test("by the words of Chinese and Thai, which have no blanks", () => {
    expect(pieces("我喜欢苹果。", words(2)).length).toBeGreaterThan(1);
    expect(pieces("สวัสดีชาวโลก", words(1)).length).toBeGreaterThan(1);
  });

  test("by words, many blanks at the end with the last, no slower than as many words by far", async () => {
    const blanks = " ".repeat(80_000);
    const plain = await fastest(() => chunkSpans("a ".repeat(40_000), words(1)));
    expect(await fastest(() => chunkSpans(`a${blanks}`, words(1)))).toBeLessThan(20 * plain);
    expect(chunkSpans(`a b${blanks}`, words(1))).toEqual([
      { start: 0, end: 1 },
      { start: 1, end: 3 + blanks.length },
    ]);
    expect(chunkSpans(`${blanks}a`, words(1))).toEqual([{ start: 0, end: blanks.length + 1 }]);
  });

  test("by sentences", () => {
    const text = "One is here. Two is there! Three?";
    expect(pieces(text, { by: "sentences", size: 1, overlap: 0 })).toEqual([
      "One is here. ",
      "Two is there! ",
      "Three?",
    ]);
    expect(pieces(text, { by: "sentences", size: 2, overlap: 1 })).toEqual([
      "One is here. Two is there! ",
      "Two is there! Three?",
    ]);
  });

  test("at the ends of sentences, a longer sentence where it must", () => {
    const text = "A b. C d e f g h. I j.";
    expect(pieces(text, words(4, 0, true))).toEqual(["A b.", " C d e f", " g h. I j."]);
  });

  test("not at all when it is one document, and into nothing when it is empty", () => {
    expect(pieces("a b", { by: "document" })).toEqual(["a b"]);
    expect(pieces("", { by: "document" })).toEqual([]);
  });
});

test("tokens without a tokenizer, and an overlap that is not less than the size, are refused", () => {
  const byTokens: ChunkOptions = { by: "tokens", size: 5, overlap: 0, wholeSentences: false };
  expect(() => chunkSpans("a", byTokens)).toThrow(ConfigError);
  expect(chunkOptionsSchema.safeParse({ by: "words", size: 5, overlap: 5 }).success).toBe(false);
  expect(chunkOptionsSchema.safeParse({ by: "words", sise: 5 }).success).toBe(false);
});

test("passages carry the title, and their places point to their text", () => {
  fc.assert(
    fc.property(text, options, (text, chunk) => {
      const passages = cutDocument("d", { title: "T", text, extra: { a: 1 } }, { chunk, countTokens });
      const ids = passages.map(({ id }) => id);
      expect(ids).toEqual(passages.length === 1 ? ["d"] : passages.map((_, i) => `d#${i}`));
      for (const { title, text: piece, source, extra } of passages) {
        expect({ title, extra, document: source?.document }).toEqual({
          title: "T",
          extra: { a: 1 },
          document: "d",
        });
        expect(text.slice(source?.start, source?.end)).toBe(piece);
        expect(piece).toBe(piece.trim());
      }
      // Only blanks are left out.
      const kept = new Set(passages.flatMap(({ source }) => (source ? range(source.start, source.end) : [])));
      for (let i = 0; i < text.length; i++) if (!kept.has(i)) expect(text.charAt(i).trim()).toBe("");
    }),
  );
});

test("a passage names the page on which it starts", () => {
  const document = { title: "", text: "a b\n\nc d", pageStarts: [0, 5] };
  const passages = cutDocument("d", document, { chunk: words(1) });
  expect(passages.map(({ text, source }) => [text, source?.page])).toEqual([
    ["a", 1],
    ["b", 1],
    ["c", 2],
    ["d", 2],
  ]);
});

function range(start: number, end: number): number[] {
  return Array.from({ length: end - start }, (_, i) => start + i);
}
