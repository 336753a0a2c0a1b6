import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { noiseAt } from "./curriculum.ts";
import { fillTemplate, parseDocuments } from "./templates.ts";

describe("the documents of a reply", () => {
  const expected = [
    { title: "Garda", text: "The largest lake." },
    { title: "Como", text: "A lake in Lombardy." },
  ];
  test.each([
    ["as asked for", "Doc 1: Garda\nThe largest lake.\n\nDoc 2: Como\nA lake in Lombardy.\n"],
    [
      "after thoughts and talk",
      "<think>Doc 1: no</think>Sure!\nDoc 1: Garda\nThe largest lake.\nDoc 2: Como\nA lake in Lombardy.",
    ],
    [
      "after thoughts whose start is missing",
      "Doc 1: no\n</think>\nDoc 1: Garda\nThe largest lake.\nDoc 2: Como\nA lake in Lombardy.",
    ],
    ["in bold", "**Doc 1:** Garda\nThe largest lake.\n**Doc 2: Como**\nA lake in Lombardy."],
    [
      "as headings, CRLF",
      "## Document 1: Garda\r\nThe largest lake.\r\n## Document 2: Como\r\nA lake in Lombardy.\r\n",
    ],
    [
      "in Search-R1's form",
      'Doc 1(Title: "Garda") The largest lake.\nDoc 2(Title: "Como") A lake in Lombardy.',
    ],
    ["as a list", "1. Garda\nThe largest lake.\n2) Como\nA lake in Lombardy."],
    ["in brackets", "[1] Title: Garda\nText: The largest lake.\n[2] Title: Como\nText: A lake in Lombardy."],
    [
      "more than asked for",
      "Doc 1: Garda\nThe largest lake.\nDoc 2: Como\nA lake in Lombardy.\nDoc 3: Iseo\nAnother.",
    ],
  ])("%s are read", (_, reply) => {
    expect(parseDocuments(reply, 2)).toEqual(expected);
  });

  test("may be of one line, which is then the text", () => {
    expect(parseDocuments("Doc 1: The largest lake of Italy is Garda.\nDoc 2: ", 5)).toEqual([
      { title: "", text: "The largest lake of Italy is Garda." },
    ]);
  });

  test("keep lists and numbers of their own", () => {
    const reply = "Doc 1: Lakes\n1. Garda\n3. Como\n1985. A year\nDoc 2: End\nx";
    expect(parseDocuments(reply, 5)).toEqual([
      { title: "Lakes", text: "1. Garda\n3. Como\n1985. A year" },
      { title: "End", text: "x" },
    ]);
  });

  test.each(["", "I cannot help with that.", "Doc 2: late\nstart", "Doc 1:", "<think>Doc 1: x\ny"])(
    "%j are none",
    (reply) => {
      expect(parseDocuments(reply, 5)).toEqual([]);
    },
  );

  test("are found again when written as asked for", () => {
    const line = fc.string({ unit: fc.constantFrom(..."abc. é日"), minLength: 1, maxLength: 20 });
    const text = line.map((s) => s.trim()).filter((s) => /^[abcé日]/.test(s));
    const document = fc.record({ title: text, text });
    fc.assert(
      fc.property(fc.array(document, { minLength: 1, maxLength: 9 }), (documents) => {
        const reply = documents
          .map(({ title, text: body }, i) => `Doc ${i + 1}: ${title}\n${body}`)
          .join("\n");
        expect(parseDocuments(reply, 9)).toEqual(documents);
      }),
    );
  });
});

test("a template is filled once, whatever the query holds", () => {
  const values = { query: "{count} $& {query}", count: "5", words: "30", hint: "" };
  expect(fillTemplate("{query}|{count}|{other}", values)).toBe("{count} $& {query}|5|{other}");
});

describe("the noise", () => {
  const curriculum = { start: 0, end: 0.5, base: 4, steps: 100 };
  test("starts and ends as told, and rises late", () => {
    expect(noiseAt(0, curriculum)).toBe(0);
    expect(noiseAt(100, curriculum)).toBe(0.5);
    // (4^0.5 - 1) / 3 = 1/3 of the way at half time.
    expect(noiseAt(50, curriculum)).toBeCloseTo(0.5 / 3, 12);
    expect(noiseAt(25, { ...curriculum, base: 1 })).toBe(0.125);
  });

  test("stays within its ends and never falls when it should rise", () => {
    const base = fc.double({ min: 0.01, max: 100, noNaN: true });
    fc.assert(
      fc.property(base, fc.integer({ min: -10, max: 200 }), (b, step) => {
        const now = noiseAt(step, { ...curriculum, base: b });
        expect(now).toBeGreaterThanOrEqual(0);
        expect(now).toBeLessThanOrEqual(0.5 + 1e-9);
        expect(noiseAt(step + 1, { ...curriculum, base: b })).toBeGreaterThanOrEqual(now);
      }),
    );
  });
});
