import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { IncrementalDecoder } from "./incremental-decoder.ts";
import { readTokenizer } from "./tokenizer-file.ts";

const tokenizerOf = (kind: string) =>
  readTokenizer(fileURLToPath(new URL(`../../test/golden/tokenizer/${kind}`, import.meta.url)));

describe.each(["smollm2", "qwen2", "mistral"])(
  "token by token with a tokenizer of the kind %s",
  async (kind) => {
    const tokenizer = await tokenizerOf(kind);
    const pieces = (tokens: readonly number[]): string[] => {
      const decoder = new IncrementalDecoder(tokenizer);
      return [...tokens.map((token) => decoder.push(token)), decoder.flush()];
    };

    test("the pieces are the text, and none ends inside a character", () => {
      fc.assert(
        fc.property(fc.string({ unit: "grapheme" }), (text) => {
          if (text.includes("\ufeff")) return;
          const tokens = tokenizer.encode(text);
          const parts = pieces(tokens);
          expect(parts.join("")).toBe(tokenizer.decode(tokens));
          for (const part of parts) expect(part.includes("\ufffd")).toBe(false);
        }),
      );
    });

    test("an emoji comes whole with its last token", () => {
      const tokens = tokenizer.encode("🧭");
      expect(tokens.length).toBeGreaterThan(1);
      const parts = pieces(tokens);
      expect(parts.filter((part) => part !== "")).toEqual(["🧭"]);
      expect(parts.at(-2)).toBe("🧭");
    });

    test("bytes that never become a character are given out at the end", () => {
      const tokens = tokenizer.encode("a🧭").slice(0, -1);
      expect(pieces(tokens).at(-1)).toMatch(/^\ufffd+$/);
      expect(pieces([])).toEqual([""]);
    });
  },
);
