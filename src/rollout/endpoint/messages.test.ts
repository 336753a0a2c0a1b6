import { expect, test } from "vitest";
import type { ContextPart } from "../policy.ts";
import { messagesOf } from "./messages.ts";

const parts: readonly ContextPart[] = [
  { source: "prompt", text: "Q?" },
  { source: "policy", text: "a" },
  { source: "environment", text: "b" },
  { source: "policy", text: "c" },
  { source: "environment", text: "d" },
  { source: "environment", text: "e" },
];
const text = parts.map((part) => part.text).join("");

test("a text without parts, and a prompt alone, is one message of the user", () => {
  const asked = { messages: [{ role: "user", content: "Q?" }], isOpen: false };
  for (const continuation of ["prefix", "messages"] as const) {
    expect(messagesOf({ text: "Q?" }, continuation)).toEqual(asked);
    expect(messagesOf({ text: "Q?", parts: parts.slice(0, 1) }, continuation)).toEqual(asked);
  }
});

test("later parts are one message of the assistant, or turns", () => {
  expect(messagesOf({ text, parts }, "prefix")).toEqual({
    messages: [
      { role: "user", content: "Q?" },
      { role: "assistant", content: "abcde" },
    ],
    isOpen: true,
  });
  expect(messagesOf({ text, parts }, "messages")).toEqual({
    messages: [
      { role: "user", content: "Q?" },
      { role: "assistant", content: "a" },
      { role: "user", content: "b" },
      { role: "assistant", content: "c" },
      { role: "user", content: "de" },
    ],
    isOpen: false,
  });
});
