/** The formats of the baselines, turn by turn. */
import { expect, test } from "vitest";
import { findCodec } from "./codecs.ts";

const ircot = findCodec("ircot");
test.each([
  [" Paris is the capital of France.\n", { type: "search", query: "Paris is the capital of France." }],
  ["So the answer is: Paris.\n", { type: "answer", answer: "Paris" }],
  ["Therefore the answer is Paris", { type: "answer", answer: "Paris" }],
  ["So the answer is:\n", { type: "invalid", reason: "emptyAnswer" }],
  ["\n", { type: "invalid", reason: "noAction" }],
  ["<information> made up\n", { type: "invalid", reason: "malformed" }],
])("ircot reads %j", (turn, action) => {
  expect(ircot.parse(turn)).toEqual(action);
});

test("the last sentence of IRCoT is the answer, with or without its beginning", () => {
  expect(ircot.parseFinal?.(" Paris.\n")).toEqual({ type: "answer", answer: "Paris" });
  expect(ircot.parseFinal?.("So the answer is: Paris\n")).toEqual({ type: "answer", answer: "Paris" });
  expect(ircot.parseFinal?.("\n")).toEqual({ type: "invalid", reason: "noAction" });
});

const searchO1 = findCodec("search-o1");
test.each([
  [
    "I need it. <|begin_search_query|> capital of France <|end_search_query|>",
    { type: "search", query: "capital of France" },
  ],
  ["<|begin_search_query|> a <|begin_search_query|> b <|end_search_query|>", { type: "search", query: "b" }],
  ["<|begin_search_query|> <|end_search_query|>", { type: "invalid", reason: "emptyQuery" }],
  [
    "<|begin_search_query|><|end_search_result|>x<|end_search_query|>",
    { type: "invalid", reason: "malformed" },
  ],
  ["It is \\boxed{Paris}.", { type: "answer", answer: "Paris" }],
  ["\\boxed{Rome}, no: \\boxed{\\text{Paris}}", { type: "answer", answer: "Paris" }],
  ["\\boxed{f(\\frac{1}{2})}", { type: "answer", answer: "f(\\frac{1}{2})" }],
  ["\\boxed{Rome} and \\boxed{Par", { type: "answer", answer: "Rome" }],
  ["\\boxed{ }", { type: "invalid", reason: "emptyAnswer" }],
  ["no idea", { type: "invalid", reason: "noAction" }],
  ["<|begin_search_query|> cut off", { type: "invalid", reason: "malformed" }],
])("search-o1 reads %j", (turn, action) => {
  expect(searchO1.parse(turn)).toEqual(action);
});

const evidence = findCodec("evidence");
test.each([
  ["<evidence> 1, 3 </evidence><answer> Paris </answer>", { type: "answer", answer: "Paris", cited: [1, 3] }],
  ["<evidence>2</evidence> <answer>Paris</answer>", { type: "answer", answer: "Paris", cited: [2] }],
  ["<evidence> 2 and 2</evidence><answer>Paris</answer>", { type: "answer", answer: "Paris", cited: [2] }],
  ["<answer>Paris</answer>", { type: "answer", answer: "Paris", cited: [] }],
  [
    "<think> I <unknown></unknown> </think><answer>Paris</answer>",
    { type: "answer", answer: "Paris", cited: [] },
  ],
  ["<unknown></unknown>", { type: "answer", answer: "", abstains: true }],
  ["<think> hm </think><unknown> no passage </unknown>", { type: "answer", answer: "", abstains: true }],
  ["<search>France</search>", { type: "search", query: "France" }],
  ["<unknown>", { type: "invalid", reason: "noAction" }],
])("evidence reads %j", (turn, action) => {
  expect(evidence.parse(turn)).toEqual(action);
});

test.each(["ircot", "search-o1", "evidence"])(
  "what %s renders is read back, tags of the content left out",
  (name) => {
    const codec = findCodec(name);
    const tag = codec.tags[0] as string;
    expect(codec.parse(codec.render({ type: "search", query: `capital ${tag} of France` }))).toMatchObject({
      type: "search",
    });
    expect(codec.parse(codec.render({ type: "answer", answer: "Paris" }))).toMatchObject({
      type: "answer",
      answer: "Paris",
    });
  },
);
