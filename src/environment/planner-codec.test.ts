import fc from "fast-check";
import { expect, test } from "vitest";
import { neutralize } from "./neutralize.ts";
import { compactPlannerCodec, plannerCodec, plannerTags } from "./planner-codec.ts";

test.each([
  ["<search> one </search>", { type: "searches", queries: ["one"] }],
  ["<search>one\n\n two\none\n</search>", { type: "searches", queries: ["one", "two"] }],
  ["<think> a <search> b </search></think><call_answer_llm>", { type: "callGenerator" }],
  ["<search> a </search><call_answer_llm>", { type: "searches", queries: ["a"] }],
  ["<call_answer_llm><search> a </search>", { type: "callGenerator" }],
  ["<search> \n </search>", { type: "invalid", reason: "emptyQuery" }],
  ["<search> a <information> b </search>", { type: "invalid", reason: "malformed" }],
  ["<search> a", { type: "invalid", reason: "malformed" }],
  ["<answer> a </answer>", { type: "invalid", reason: "noAction" }],
  ["<think> <call_answer_llm>", { type: "invalid", reason: "malformed" }],
  ["", { type: "invalid", reason: "noAction" }],
])("%j is read", (turn, action) => {
  expect(plannerCodec.parse(turn)).toEqual(action);
});

test.each([plannerCodec, compactPlannerCodec])("$name renders what it reads", (codec) => {
  const queries = fc.uniqueArray(fc.stringMatching(/^[a-z]+( [a-z]+)?$/), { minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(queries, fc.string(), (asked, thought) => {
      const action = { type: "searches", queries: asked } as const;
      expect(codec.parse(codec.renderThought(thought) + codec.render(action))).toEqual(action);
    }),
  );
  expect(codec.parse(codec.render({ type: "callGenerator" }))).toEqual({ type: "callGenerator" });
});

test("no text from outside holds a tag once it is made safe", () => {
  const pieces = fc.constantFrom(
    ...plannerTags,
    "< search >",
    "</ call_answer_llm>",
    "<CALL_ANSWER_LLM>",
    "x",
    "<",
  );
  fc.assert(
    fc.property(fc.array(pieces), (parts) => {
      const safe = neutralize(parts.join(""), plannerTags);
      for (const tag of plannerTags) expect(safe.toLowerCase()).not.toContain(tag);
    }),
  );
});
