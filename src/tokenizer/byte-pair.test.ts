import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ConfigError } from "../errors.ts";
import { type BytePairTokenizer, createBytePair, endOfText, padding } from "./byte-pair.ts";
import { trainBytePair } from "./byte-pair-training.ts";

interface Golden {
  readonly vocabularySize: number;
  readonly tags: readonly string[];
  readonly corpus: readonly string[];
  readonly vocabulary: readonly string[];
  readonly merges: readonly [string, string][];
  readonly cases: readonly {
    readonly text: string;
    readonly ids: readonly number[];
    readonly decoded: string;
  }[];
}

const path = new URL("../../test/golden/tokenizer/byte-pair.json", import.meta.url);
const golden = JSON.parse(readFileSync(path, "utf8")) as Golden;
const tokenizer = trainBytePair(golden.corpus, {
  vocabularySize: golden.vocabularySize,
  specialTokens: golden.tags,
});

/** Joins the pair of lowest rank again and again, scanning the whole word each time. */
function naiveEncode(
  word: string,
  { vocabulary, merges }: BytePairTokenizer,
  toPieces: (word: string) => string[],
) {
  const rank = new Map(merges.map(([left, right], i) => [`${left}\t${right}`, i]));
  const pieces = toPieces(word);
  for (;;) {
    let best = -1;
    let bestRank = Number.POSITIVE_INFINITY;
    for (let i = 0; i + 1 < pieces.length; i++) {
      const r = rank.get(`${pieces[i]}\t${pieces[i + 1]}`) ?? Number.POSITIVE_INFINITY;
      if (r < bestRank) [best, bestRank] = [i, r];
    }
    if (best === -1) return pieces.map((piece) => vocabulary.indexOf(piece));
    pieces.splice(best, 2, `${pieces[best]}${pieces[best + 1]}`);
  }
}

describe("training", () => {
  test("learns the vocabulary and the merges that the Rust library learns", () => {
    expect(tokenizer.merges).toEqual(golden.merges);
    expect(tokenizer.vocabulary).toEqual(golden.vocabulary);
  });

  test("gives the added tokens the lowest ids, end of text and padding first", () => {
    expect(tokenizer.vocabulary.slice(0, 3)).toEqual([endOfText, padding, "<think>"]);
    expect([tokenizer.endOfTextId, tokenizer.paddingId]).toEqual([0, 1]);
  });

  test("stops early when no pair is frequent enough", () => {
    const small = trainBytePair(["abab ab"], {
      vocabularySize: 1000,
      specialTokens: [],
      lowerFrequencyLimit: 3,
    });
    expect(small.merges).toEqual([["a", "b"]]);
    expect(small.vocabularySize).toBe(2 + 256 + 1);
  });

  test("learns nothing from inside added tokens", () => {
    const options = { vocabularySize: 300, specialTokens: ["<tag>"] };
    expect(trainBytePair(Array(50).fill("<tag>"), options).merges).toEqual([]);
  });

  test("refuses a vocabulary that cannot hold the bytes and the added tokens", () => {
    expect(() => trainBytePair([], { vocabularySize: 258, specialTokens: ["<x>"] })).toThrow(
      /at least 259 .*got 258/,
    );
  });
});

describe("encoding", () => {
  test.each(golden.cases.map((each) => [JSON.stringify(each.text).slice(0, 40), each] as const))(
    "gives the ids of the Rust library for %s",
    (_, { text, ids, decoded }) => {
      expect(tokenizer.encode(text)).toEqual(ids);
      expect(tokenizer.decode(ids)).toBe(decoded);
    },
  );

  test("every Unicode text comes back exactly", () => {
    const piece = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.string({ unit: "grapheme" }),
      fc.constantFrom(...tokenizer.specialTokens, " ", "\n", "the", "\u0085", "\ufeff"),
    );
    fc.assert(
      fc.property(fc.array(piece), (pieces) => {
        const text = pieces.join("");
        expect(tokenizer.decode(tokenizer.encode(text))).toBe(text);
      }),
      { numRuns: 500 },
    );
  });

  test("a lone surrogate comes back as the replacement character", () => {
    expect(tokenizer.decode(tokenizer.encode("a\ud83d b\ude00"))).toBe("a\ufffd b\ufffd");
  });

  test("joins pairs in the order of a naive encoder", () => {
    const pieces = (word: string) => word.split("");
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom("a", "b", "k", "o", "l"), minLength: 1, maxLength: 90 }),
        (word) => {
          expect(tokenizer.encode(word)).toEqual(naiveEncode(word, tokenizer, pieces));
        },
      ),
    );
  });

  test("of added tokens that start at one place the longest is taken", () => {
    const model = { ...tokenizer, specialTokens: [...tokenizer.specialTokens, "<a>", "<a><b>"] };
    const longer = createBytePair({ ...model, vocabulary: [...tokenizer.vocabulary, "<a>", "<a><b>"] });
    expect(longer.encode("<a><b><a>").map((id) => longer.vocabulary[id])).toEqual(["<a><b>", "<a>"]);
  });

  test("a piece of half a character decodes to the replacement character, and an id outside the vocabulary is a defect", () => {
    const half = tokenizer.vocabulary.indexOf("Ð");
    expect(tokenizer.decode([half])).toBe("\ufffd");
    expect(() => tokenizer.decode([tokenizer.vocabularySize])).toThrow(/Assertion failed/);
  });
});

test("the hash depends on vocabulary, merges and added tokens", () => {
  const { vocabulary, merges, specialTokens } = tokenizer;
  expect(createBytePair({ vocabulary, merges, specialTokens }).hash).toBe(tokenizer.hash);
  expect(createBytePair({ vocabulary, merges: merges.slice(0, -1), specialTokens }).hash).not.toBe(
    tokenizer.hash,
  );
});

test("a model that lacks a byte or writes a piece outside the byte alphabet is refused", () => {
  const { vocabulary, merges, specialTokens } = tokenizer;
  const withoutA = vocabulary.map((piece) => (piece === "A" ? "AAAAAAA" : piece));
  expect(() => createBytePair({ vocabulary: withoutA, merges, specialTokens })).toThrow(ConfigError);
  const foreign = [...vocabulary, "日"];
  expect(() => createBytePair({ vocabulary: foreign, merges, specialTokens })).toThrow(/byte alphabet/);
});
