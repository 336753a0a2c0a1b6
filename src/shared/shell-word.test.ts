import { execFileSync } from "node:child_process";
import fc from "fast-check";
import { expect, test } from "vitest";
import { commandLine } from "./shell-word.ts";

test("plain words stay as they are, others are quoted", () => {
  expect(commandLine("ask", "runs/a-1", "in which country is o'hare ?")).toBe(
    "npx forager ask runs/a-1 'in which country is o'\\''hare ?'",
  );
  expect(commandLine("search", "index", "")).toBe("npx forager search index ''");
});

test("a shell reads the words back as they were", () => {
  const word = fc.string({ unit: fc.constantFrom(..."a b'\"\\$`!*?~#;&|<>(){}[]=\n") });
  fc.assert(
    fc.property(fc.array(word, { maxLength: 4 }), (words) => {
      const script = commandLine(...words).replace("npx forager", "printf '%s\\0'");
      const read = execFileSync("/bin/sh", ["-c", words.length === 0 ? "true" : script], {
        encoding: "utf8",
      });
      expect(read).toBe(words.map((each) => `${each}\0`).join(""));
    }),
    { numRuns: 20 },
  );
});
