import fc from "fast-check";
import { expect, test } from "vitest";
import type { FinishReason } from "../../rollout/policy.ts";
import { tinyTokenizer as tokenizer } from "../engine.fixture.ts";
import { profiles } from "./profiles.ts";
import { completionOf } from "./sample.ts";

/** The end of a completion as an embedded engine finds it: token by token. */
function endOf(
  tokens: readonly number[],
  stop: readonly string[],
  maxTokens: number,
): { count: number; reason: FinishReason } | undefined {
  const reach = Math.max(0, ...stop.map((text) => Buffer.byteLength(text)));
  for (const [index, id] of tokens.entries()) {
    if (id >= tokenizer.vocabularySize) return undefined;
    if (id === tokenizer.endOfTextId) return { count: index + 1, reason: "endOfText" };
    const tail = tokenizer.decode(tokens.slice(Math.max(0, index - reach), index + 1));
    if (stop.some((text) => tail.includes(text))) return { count: index + 1, reason: "stop" };
    if (index + 1 === maxTokens) return { count: index + 1, reason: "length" };
  }
  return tokens.length > 0 ? { count: tokens.length, reason: "length" } : undefined;
}

test("a completion ends at the first end of any kind, wherever the server ended it", () => {
  const id = fc.integer({ min: 0, max: tokenizer.vocabularySize });
  const words = fc
    .constantFrom("the", " river", "</search>", "é", "\u{1F30A}", "a")
    .map((text) => tokenizer.encode(text));
  const tokens = fc.array(
    fc.oneof({ weight: 1, arbitrary: id.map((one) => [one]) }, { weight: 4, arbitrary: words }),
  );
  const stop = fc.subarray(["</search>", "river", "er", "\u{1F30A}"]);
  fc.assert(
    fc.property(tokens, stop, fc.integer({ min: 1, max: 30 }), (parts, stops, maxTokens) => {
      const ids = parts.flat();
      const expected = endOf(ids, stops, maxTokens);
      const read = () =>
        completionOf(
          { stop_reason: "length", tokens: ids, logprobs: ids.map((_, index) => -index) },
          { maxTokens, temperature: 1, topP: 1, topK: 0, stop: stops },
          { tokenizer, promptTokens: 1, maxTokens, profile: profiles.forager },
        );
      if (expected === undefined) {
        expect(read).toThrow("engine.tokenizer");
        return;
      }
      const { tokens: kept, logprobs, finishReason } = read();
      expect(finishReason).toBe(expected.reason);
      expect(kept).toEqual(ids.slice(0, expected.count));
      expect(logprobs).toHaveLength(expected.count);
    }),
    { numRuns: 500 },
  );
});
