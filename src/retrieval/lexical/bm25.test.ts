import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Passage } from "../../corpus/passage.ts";
import { describeRetriever } from "../retriever.suite.ts";
import { wordsOf } from "./analyze.ts";
import { type Bm25Options, buildBm25Index } from "./bm25.ts";
import { bm25OptionsSchema } from "./bm25-options.ts";
import { STOP_WORDS } from "./stop-words.ts";

describeRetriever("bm25", buildBm25Index);
describeRetriever("bm25 without analysis", (passages) =>
  buildBm25Index(passages, { stopWords: false, stemming: false, titleWeight: 1 }),
);
describeRetriever("bm25 that forgives", (passages) =>
  buildBm25Index(passages, { fuzzy: { n: 3, weight: 0.8, minOverlap: 0.5, maxTerms: 3 } }),
);

const passage = (id: string, title: string, text: string): Passage => ({ id, title, text });

async function ids(
  passages: readonly Passage[],
  query: string,
  options?: Partial<Bm25Options>,
): Promise<string[]> {
  const [answer = []] = await (await buildBm25Index(passages, options)).retrieve([query], 10);
  return answer.map((scored) => scored.passage.id);
}

/** The definition, term by term and passage by passage; impacts rounded to 32 bits like those of the index. */
function bruteForce(passages: readonly Passage[], query: string, options: Bm25Options): Map<string, number> {
  const isContent = (word: string): boolean => !options.stopWords || !STOP_WORDS.has(word);
  const bags = passages.map(({ title, text }) => {
    const titles = Array.from({ length: options.titleWeight }, () => wordsOf(title)).flat();
    const content = wordsOf(text).filter(isContent);
    return { words: [...titles, ...content], length: titles.filter(isContent).length + content.length };
  });
  const mean = bags.reduce((total, { length }) => total + length, 0) / bags.length;
  const words = wordsOf(query);
  const content = words.filter(isContent);
  // The order of first appearance in the corpus, in which the index adds up.
  const order = [...new Set(passages.flatMap(({ title, text }) => [...wordsOf(text), ...wordsOf(title)]))];
  const terms = (content.length > 0 ? content : words).sort((a, b) => order.indexOf(a) - order.indexOf(b));
  const scores = new Map<string, number>();
  for (const term of new Set(terms)) {
    const holders = bags.filter((bag) => bag.words.includes(term)).length;
    const idf = Math.log(1 + (bags.length - holders + 0.5) / (holders + 0.5));
    const weight = terms.filter((other) => other === term).length;
    bags.forEach((bag, index) => {
      const frequency = bag.words.filter((word) => word === term).length;
      if (frequency === 0) return;
      const norm = options.k1 * (1 - options.b + (mean === 0 ? 0 : (options.b * bag.length) / mean));
      const id = (passages[index] as Passage).id;
      scores.set(id, (scores.get(id) ?? 0) + weight * Math.fround((idf * frequency) / (frequency + norm)));
    });
  }
  return scores;
}

const words = fc.constantFrom("ada", "bolt", "cove", "the", "of", "Ada", "dune", "élan", "99");
const sentence = (maxLength: number) => fc.array(words, { maxLength }).map((list) => list.join(" "));
const corpus = fc
  .array(fc.record({ title: sentence(3), text: sentence(12) }), { minLength: 1, maxLength: 60 })
  .map((list) => list.map(({ title, text }, index) => passage(`${index}`, title, text)));
const settings = fc
  .record({
    k1: fc.constantFrom(0, 0.9, 1.2),
    b: fc.constantFrom(0, 0.4, 0.75, 1),
    titleWeight: fc.constantFrom(0, 1, 3),
    stopWords: fc.boolean(),
  })
  .map((values) => bm25OptionsSchema.parse({ ...values, stemming: false }));

test("ranks as the definition does, score for score, ties by position", async () => {
  await fc.assert(
    fc.asyncProperty(
      corpus,
      sentence(6),
      settings,
      fc.integer({ min: 1, max: 70 }),
      async (passages, query, options, k) => {
        const index = await buildBm25Index(passages, options);
        const [answer = []] = await index.retrieve([query], k);
        const expected = [...bruteForce(passages, query, options)]
          .sort(([idA, a], [idB, b]) => b - a || Number(idA) - Number(idB))
          .slice(0, k);
        expect(answer.map(({ passage: { id }, score }) => [id, score])).toEqual(expected);
      },
    ),
    { numRuns: 300 },
  );
});

describe("bm25", () => {
  test("weighs a title above the text", async () => {
    const passages = [
      passage("text", "Rivers", "the danube and others"),
      passage("title", "Danube", "one of the rivers here"),
    ];
    expect(await ids(passages, "danube")).toEqual(["title", "text"]);
    expect(await ids(passages, "danube", { titleWeight: 0 })).toEqual(["text"]);
  });

  test("finds a title of stop words, which a query with other words ignores", async () => {
    const passages = [
      passage("band", "The Who", "a band from London"),
      passage("lake", "Lake Garda", "who knows the lake"),
    ];
    expect(await ids(passages, "the who")).toEqual(["band"]);
    expect(await ids(passages, "who saw the lake")).toEqual(["lake"]);
  });

  test("keeps a stop word in titles apart from words whose stem it is", async () => {
    const passages = [
      passage("film", "Grown Ups", "a comedy"),
      ...["a", "b", "c", "d"].map((id) => passage(id, "Growing Up", "up and on")),
    ];
    expect(await ids(passages, "ups")).toEqual(["film"]);
    expect(await ids(passages, "up")).toEqual(["a", "b", "c", "d"]);
  });

  test("matches other forms of a word, accents and case aside, unless told not to stem", async () => {
    const passages = [passage("a", "", "Rivers flowing through São Tomé")];
    expect(await ids(passages, "RIVER flows sao tome")).toEqual(["a"]);
    expect(await ids(passages, "river flows", { stemming: false })).toEqual([]);
  });

  test("finds what people type for letters they have no key for, and the other way round", async () => {
    const passages = [passage("a", "Große Straße", ""), passage("b", "Aero", "an island")];
    expect(await ids(passages, "strasse")).toEqual(["a"]);
    expect(await ids(passages, "Ærø")).toEqual(["b"]);
    expect(await ids(passages, "strasse", { folding: "marks" })).toEqual([]);
  });

  test("finds misspelt names when it is told to forgive, behind the names themselves", async () => {
    const passages = [
      passage("a", "Aalborg", ""),
      passage("b", "Alborg", ""),
      passage("c", "Gothenburg", ""),
    ];
    const fuzzy = { n: 3, weight: 0.8, minOverlap: 0.5, maxTerms: 3 };
    expect(await ids(passages, "aalbrg")).toEqual([]);
    expect(await ids(passages, "aalbrg", { fuzzy })).toEqual(["a"]);
    expect(await ids(passages, "alborg", { fuzzy })).toEqual(["b"]);
    expect(await ids(passages, "gothenberg", { fuzzy })).toEqual(["c"]);
    expect(await ids(passages, "zzzz", { fuzzy })).toEqual([]);
  });

  test("does not depend on the order of the words of a query", async () => {
    const index = await buildBm25Index([
      passage("a", "one two", "three four five"),
      passage("b", "two", "one five six"),
    ]);
    const [there, back] = await index.retrieve(["one two three five", "five three two one"], 2);
    expect(back).toEqual(there);
  });

  test("records its options in its identity, so that other options are another index", async () => {
    const passages = [passage("a", "one", "two")];
    const [plain, other] = [await buildBm25Index(passages), await buildBm25Index(passages, { b: 0.4 })];
    expect(plain.identity.parameters).toMatchObject({ k1: 1.2, b: 0.75, titleWeight: 3, fuzzy: false });
    expect(other.identity.corpusHash).toBe(plain.identity.corpusHash);
    expect(other.identity.indexHash).not.toBe(plain.identity.indexHash);
  });

  test("indexes passages as they are read", async () => {
    async function* stream(): AsyncGenerator<Passage> {
      yield passage("a", "one", "");
      yield passage("b", "two", "");
    }
    const index = await buildBm25Index(stream());
    expect((await index.retrieve(["two"], 1))[0]?.[0]?.passage.id).toBe("b");
  });

  test("refuses a corpus without passages", async () => {
    await expect(buildBm25Index([])).rejects.toThrow("cannot index an empty corpus");
  });

  test("refuses options out of range by name", async () => {
    await expect(buildBm25Index([passage("a", "one", "")], { b: 2 })).rejects.toThrow(
      /index options: .*at b/s,
    );
  });
});
