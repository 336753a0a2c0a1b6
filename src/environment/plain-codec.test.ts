import { expect, test } from "vitest";
import { plainCodec } from "./plain-codec.ts";

test.each([
  [" Jane Austen\n", "Jane Austen"],
  ["Jane Austen", "Jane Austen"],
  ["\n\n Austen \nand more", "Austen"],
  ["Answer: Austen", "Austen"],
  ["<answer> Austen </answer>", "<answer> Austen </answer>"],
])("%j answers %j", (turn, answer) => {
  expect(plainCodec.parse(turn)).toEqual({ type: "answer", answer });
});

test.each(["", "\n", "Answer:\n"])("%j is no answer", (turn) => {
  expect(plainCodec.parse(turn)).toEqual({ type: "invalid", reason: "emptyAnswer" });
});

test("what is rendered is one line and read back as it was", () => {
  const turn = plainCodec.render({ type: "answer", answer: " The\nHague " });
  expect(turn).toBe(" The Hague\n");
  expect(plainCodec.parse(turn)).toEqual({ type: "answer", answer: "The Hague" });
});
