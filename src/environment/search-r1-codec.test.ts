import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ConfigError } from "../errors.ts";
import type { Action } from "./action.ts";
import { codecNames, findCodec } from "./codecs.ts";
import { searchR1Codec, searchR1Tags } from "./search-r1-codec.ts";

const search = (query: string): Action => ({ type: "search", query });
const answer = (text: string): Action => ({ type: "answer", answer: text });
const invalid = (reason: Extract<Action, { type: "invalid" }>["reason"]): Action => ({
  type: "invalid",
  reason,
});

describe("reading a turn", () => {
  test.each<[string, string, Action]>([
    ["a search", "<search> capital of France </search>", search("capital of France")],
    ["an answer over two lines", "so\n<answer>\nNew\nYork </answer>", answer("New\nYork")],
    ["reasoning, then an action", "<think>hm</think>\n<search>q</search>", search("q")],
    ["text after the action", "<answer>a</answer> and more <search>q</search>", answer("a")],
    ["the first of two actions", "<search>a</search><search>b</search>", search("a")],
    ["an answer that is not closed before a search", "<answer> <search> q </search>", search("q")],
    ["an answer quoted in reasoning", "<think>not <answer>x</answer></think><search>q</search>", search("q")],
    [
      "two blocks of reasoning",
      "<think>a</think> b <think><answer>x</answer></think><answer>y</answer>",
      answer("y"),
    ],
    ["reasoning opened in the prompt", "maybe <answer>x</answer></think><answer>y</answer>", answer("y")],
    ["reasoning that is never closed", "<think>maybe <answer>x</answer>", invalid("malformed")],
    ["reasoning alone", "<think>hm</think>", invalid("noAction")],
    ["plain text", "Paris", invalid("noAction")],
    ["nothing", "", invalid("noAction")],
    ["an empty query", "<search>  \n</search>", invalid("emptyQuery")],
    ["an empty answer", "<answer></answer>", invalid("emptyAnswer")],
    ["a tag inside an action", "<search>a <search> b</search>", invalid("malformed")],
    ["an information tag inside an action", "<answer>a<information>b</answer>", invalid("malformed")],
    ["an action that is not closed", "<search> q", invalid("malformed")],
    ["a closing tag alone", "q </search>", invalid("malformed")],
    ["tags in other letter case", "<Search>q</Search>", invalid("noAction")],
    ["tags that do not match", "<search>q</answer>", invalid("malformed")],
  ])("%s", (_, turn, expected) => {
    expect(searchR1Codec.parse(turn)).toEqual(expected);
  });
});

test.each(["search-r1", "compact"])("what %s renders, it parses back", (name) => {
  const codec = findCodec(name);
  const content = fc.string({ unit: "grapheme", minLength: 1 }).filter((text) => text.trim() !== "");
  fc.assert(
    fc.property(content, (text) => {
      expect(codec.parse(codec.render({ type: "search", query: text }))).toEqual(search(text.trim()));
      expect(codec.parse(codec.render({ type: "answer", answer: text }))).toEqual(answer(text.trim()));
    }),
  );
});

test("content with tags is rendered without them, and is one action still", () => {
  const content = fc.array(fc.oneof(fc.constantFrom(...searchR1Tags), fc.string()), { minLength: 1 });
  fc.assert(
    fc.property(content, (parts) => {
      const turn = searchR1Codec.render({ type: "search", query: `q${parts.join("")}` });
      expect(searchR1Codec.parse(turn).type).toBe("search");
      expect(turn.match(/<\/?(search|answer|think|information)>/g)).toHaveLength(2);
    }),
  );
});

test("an observation is the published one: a blank line, information, a blank line", () => {
  expect(searchR1Codec.renderObservation("Doc 1\nDoc 2\n")).toBe(
    "\n\n<information>Doc 1\nDoc 2</information>\n\n",
  );
});

test("the compact observation is the block alone", () => {
  expect(findCodec("compact").renderObservation(" one\n two\n")).toBe(
    "<information> one\n two</information>",
  );
});

test("the message for an invalid action names the tags of both actions", () => {
  for (const tag of ["<search>", "</search>", "<answer>", "</answer>"])
    expect(searchR1Codec.invalidMessage).toContain(tag);
});

test("codecs are found by name", () => {
  expect(codecNames.map((name) => findCodec(name).name)).toEqual([...codecNames]);
  expect(() => findCodec("toString")).toThrow(ConfigError);
  expect(() => findCodec("xml")).toThrow(/"xml"; use one of search-r1, compact/);
});
