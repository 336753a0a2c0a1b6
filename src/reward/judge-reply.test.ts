import { expect, test } from "vitest";
import { readGrade, readVerdict } from "./judge-reply.ts";

test.each([
  ["yes", "yes"],
  ["No.", "no"],
  [" **YES** ", "yes"],
  ["<think>no, hm</think>\nyes, it is", "yes"],
  ["yesterday", undefined],
  ["not sure", undefined],
  ["The answer is yes", undefined],
  ["", undefined],
  ["<think>yes", undefined],
])("the verdict %j is %s", (reply, verdict) => {
  expect(readVerdict(reply)).toBe(verdict);
});

test.each([
  ["4", 4],
  ["Grade: 5", 5],
  ["3/5", 3],
  ["<think>1 or 2</think> 2", 2],
  ["0", undefined],
  ["6", undefined],
  ["-3", undefined],
  ["10", undefined],
  ["3.5", undefined],
  ["good", undefined],
  ["<think>it has 5 queries, of which", undefined],
])("the grade %j is %s", (reply, grade) => {
  expect(readGrade(reply)).toBe(grade);
});
