import { describe, expect, it } from "vitest";
import { coSearchCodec } from "./cosearch-codec.ts";

const call = (json: string): string => `<reason>so</reason>\n<tool_call>${json}</tool_call>`;

describe("the codec cosearch", () => {
  it.each([
    [
      "a call",
      call('{"name":"search","arguments":{"query":" bo lee "}}'),
      { type: "search", query: "bo lee" },
    ],
    [
      "a call with further keys",
      call('{"name":"search","id":1,"arguments":{"query":"q","k":3}}'),
      { type: "search", query: "q" },
    ],
    ["an answer", "<reason>so</reason><answer> Paris </answer>", { type: "answer", answer: "Paris" }],
    [
      "the first of two actions",
      `${call('{"name":"search","arguments":{"query":"q"}}')}<answer>x</answer>`,
      { type: "search", query: "q" },
    ],
    [
      "no call within the reason",
      "<reason><answer>x</answer></reason>",
      { type: "invalid", reason: "malformed" },
    ],
    ["no JSON", call("search: q"), { type: "invalid", reason: "malformed" }],
    ["null", call("null"), { type: "invalid", reason: "malformed" }],
    [
      "another tool",
      call('{"name":"calc","arguments":{"query":"q"}}'),
      { type: "invalid", reason: "malformed" },
    ],
    [
      "arguments that are no object",
      call('{"name":"search","arguments":"q"}'),
      { type: "invalid", reason: "emptyQuery" },
    ],
    [
      "an empty query",
      call('{"name":"search","arguments":{"query":" "}}'),
      { type: "invalid", reason: "emptyQuery" },
    ],
    ["an empty answer", "<answer> </answer>", { type: "invalid", reason: "emptyAnswer" }],
    ["text", "I know it", { type: "invalid", reason: "noAction" }],
    ["an unclosed call", "<tool_call>{", { type: "invalid", reason: "malformed" }],
  ])("reads %s", (_, turn, expected) => {
    expect(coSearchCodec.parse(turn)).toEqual(expected);
  });

  it("reads back what it writes, quotes and tags in it made safe", () => {
    const search = { type: "search", query: 'who "is" <answer>x</answer>' } as const;
    expect(coSearchCodec.parse(coSearchCodec.render(search))).toEqual({
      type: "search",
      query: 'who "is" [answer]x[/answer]',
    });
    const answer = { type: "answer", answer: "a </answer> b" } as const;
    expect(coSearchCodec.parse(coSearchCodec.render(answer))).toEqual({
      type: "answer",
      answer: "a [/answer] b",
    });
  });
});
