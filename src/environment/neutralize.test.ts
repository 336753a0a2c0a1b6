import fc from "fast-check";
import { expect, test } from "vitest";
import { neutralize } from "./neutralize.ts";
import { searchR1Tags } from "./search-r1-codec.ts";

const reserved = [...searchR1Tags, "<|endoftext|>", "[CLS]", "</s>"];

test.each([
  ["<answer>x</answer>", "[answer]x[/answer]"],
  ["< ANSWER >x< / Answer\n>", "[ANSWER]x[/ Answer]"],
  ["a<|endoftext|>b", "a[|endoftext|]b"],
  ["a[CLS]b", "a[ CLS]b"],
  ["<<search>>", "<[search]>"],
  ["</</search>search>", "</[/search]search>"],
  ["</s>", "[/s]"],
  ["1 < 2 > 0, <b>bold</b>, <answers>", "1 < 2 > 0, <b>bold</b>, <answers>"],
])("%j becomes %j", (text, expected) => {
  expect(neutralize(text, reserved)).toBe(expected);
});

test("whatever the text, nothing reserved is left, and harmless text is unchanged", () => {
  const part = fc.oneof(
    fc.constantFrom("<", ">", "/", " ", "\n", "[", "]", "|", "answer", "SEARCH", "s", "CLS", ...reserved),
    fc.string(),
  );
  fc.assert(
    fc.property(fc.array(part), (parts) => {
      const text = parts.join("");
      const safe = neutralize(text, reserved);
      const squeezed = safe.replace(/\s/g, "").toLowerCase();
      for (const token of searchR1Tags) expect(squeezed).not.toContain(token);
      for (const token of reserved) expect(safe).not.toContain(token);
      expect(neutralize(safe, reserved)).toBe(safe);
      if (!/[<[]/.test(text)) expect(safe).toBe(text);
    }),
    { numRuns: 500 },
  );
});

test("a replacement that makes another reserved token does not survive, nor does a token of one character", () => {
  expect(neutralize("<a>", ["<a>", "[a]"])).toBe("[ a]");
  expect(neutralize("<a>", ["<a>", "[a]", "[ a]"])).toBe("[  a]");
  expect(neutralize("x¤y", ["¤"])).toBe("xy");
  expect(neutralize("a b", ["a b", "a  b", "a   b", "a    b"])).toBe("a     b");
  expect(
    neutralize("<a>", ["<a>", "[a]", "[ a]", ..."123456789".split("").map((n) => `[${" ".repeat(+n)}a]`)]),
  ).toBe("");
});

test("tokens of white space alone are left, for they do no harm", () => {
  expect(neutralize("a  b", ["  "])).toBe("a  b");
});
