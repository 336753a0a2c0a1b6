import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { trainBytePair } from "../tokenizer/byte-pair-training.ts";
import { findCodec } from "./codecs.ts";
import { neutralizer } from "./neutralize.ts";
import { type ObservationFormat, renderObservation } from "./observation.ts";
import { findPassageTemplate } from "./passage-template.ts";
import { searchR1Tags } from "./search-r1-codec.ts";

const tokenizer = trainBytePair(["Doc 1(Title: ) the word the word"], {
  vocabularySize: 300,
  specialTokens: searchR1Tags,
});

const format = (maxTokens: number, changes: Partial<ObservationFormat> = {}): ObservationFormat => ({
  codec: findCodec("search-r1"),
  template: findPassageTemplate("search-r1"),
  neutralize: neutralizer([...searchR1Tags, ...tokenizer.specialTokens]),
  maxTokens,
  tokenizer,
  ...changes,
});

const found = (...texts: string[]) =>
  texts.map((text, i) => ({ passage: { id: `${i}`, title: `T${i}`, text }, score: 1 }));

const specialIds = (text: string): string[] =>
  tokenizer
    .encode(text)
    .flatMap((id) =>
      tokenizer.specialTokens.includes(tokenizer.decode([id])) ? [tokenizer.decode([id])] : [],
    );

describe("whatever the passages say", () => {
  const hostile = fc
    .array(
      fc.oneof(
        fc.constantFrom(...tokenizer.specialTokens, "<", ">", "</", "information", "word "),
        fc.string({ unit: "grapheme" }),
      ),
      { maxLength: 60 },
    )
    .map((parts) => parts.join(""));

  test("an observation holds one opening and one closing tag and no other added token", () => {
    fc.assert(
      fc.property(
        fc.array(hostile, { maxLength: 5 }),
        fc.integer({ min: 1, max: 200 }),
        (texts, maxTokens) => {
          const { text } = renderObservation(found(...texts), "", format(maxTokens));
          expect(specialIds(text)).toEqual(["<information>", "</information>"]);
          expect(text.startsWith("\n\n<information>") && text.endsWith("</information>\n\n")).toBe(true);
        },
      ),
      { numRuns: 300 },
    );
  });

  test("it keeps the token limit, unless not even the tags fit", () => {
    fc.assert(
      fc.property(
        fc.array(hostile, { maxLength: 5 }),
        fc.integer({ min: 1, max: 200 }),
        (texts, maxTokens) => {
          const empty = renderObservation([], "", format(1000)).text;
          const { text, isTruncated } = renderObservation(found(...texts), "", format(maxTokens));
          const count = tokenizer.encode(text).length;
          expect(count).toBeLessThanOrEqual(Math.max(maxTokens, tokenizer.encode(empty).length));
          expect(isTruncated).toBe(
            text !== renderObservation(found(...texts), "", format(1e9)).text || count > maxTokens,
          );
        },
      ),
      { numRuns: 300 },
    );
  });
});

test("short passages stay whole when long ones are shortened, and each keeps a share", () => {
  const passages = found("short", "b".repeat(10_000), "c".repeat(10_000));
  const { text, isTruncated } = renderObservation(passages, "", format(200));
  const lines = text.slice("\n\n<information>".length, -"</information>\n\n".length).split("\n");
  expect(isTruncated).toBe(true);
  expect(lines).toHaveLength(3);
  expect(lines[0]).toBe("Doc 1(Title: T0) short");
  const [second, third] = lines.slice(1).map((line) => line.replace(/[^bc]/g, "").length) as [number, number];
  expect(Math.abs(second - third)).toBeLessThanOrEqual(1);
  expect(tokenizer.encode(text).length).toBeGreaterThan(190);
});

test("a character is never cut in half", () => {
  const { text } = renderObservation(found("😀".repeat(200)), "", format(101));
  expect(text).not.toContain("\ufffd");
  expect(text).toContain("😀");
});

test("what the passages hold themselves is kept, replacement characters too", () => {
  const text = `x${"\ufffd".repeat(9)}`;
  expect(renderObservation(found(text), "", format(500)).text).toContain(text);
});

test("a notice follows the block and counts against the limit", () => {
  const { text } = renderObservation(found("b".repeat(1000)), "Searches left: 1.\n", format(100));
  expect(text.endsWith("</information>\n\nSearches left: 1.\n")).toBe(true);
  expect(tokenizer.encode(text).length).toBeLessThanOrEqual(100);
});

test("without a tokenizer four characters count as a token", () => {
  const { text, isTruncated } = renderObservation(
    found("😀".repeat(400)),
    "",
    format(50, { tokenizer: undefined }),
  );
  expect(text.length).toBeLessThanOrEqual(200);
  expect(text.length).toBeGreaterThan(180);
  expect(isTruncated).toBe(true);
  expect(text).not.toMatch(/[\ud800-\udbff](?![\udc00-\udfff])/);
});
