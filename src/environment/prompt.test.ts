import { expect, test } from "vitest";
import { findPassageTemplate, passageTemplateNames } from "./passage-template.ts";
import { findPrompt, prepareQuestion, promptNames } from "./prompt.ts";

test("a question is stripped and ends with a question mark", () => {
  expect(prepareQuestion("  who wrote Emma\n")).toBe("who wrote Emma?");
  expect(prepareQuestion("who? ")).toBe("who?");
  expect(prepareQuestion("Name it.")).toBe("Name it.?");
});

test("the Search-R1 prompt holds the published tags in the published order", () => {
  const text = findPrompt("search-r1").render("who wrote Emma?");
  expect(text.match(/<\/?\w+>(?: (?:query|Beijing) <\/\w+>)?/g)).toEqual([
    "<think>",
    "</think>",
    "<search> query </search>",
    "<information>",
    "</information>",
    "<answer>",
    "</answer>",
    "<answer> Beijing </answer>",
  ]);
  expect(text.endsWith(". Question: who wrote Emma?\n")).toBe(true);
});

test("the bare prompt is the question", () => {
  expect(findPrompt("bare").render("a {question} $& b?")).toBe("Question: a {question} $& b?\n");
});

test("every prompt and every passage template has a hash of its own", () => {
  const hashes = [
    ...promptNames.map((name) => findPrompt(name).hash),
    ...passageTemplateNames.map((name) => findPassageTemplate(name).hash),
  ];
  expect(new Set(hashes).size).toBe(promptNames.length + passageTemplateNames.length);
});

test("passages are shown as their template says", () => {
  const passage = { id: "7", title: '"Paris"', text: "A {title} city. $1" };
  const show = (name: (typeof passageTemplateNames)[number]) => findPassageTemplate(name).render(passage, 2);
  expect(show("search-r1")).toBe('Doc 2(Title: "Paris") A {title} city. $1\n');
  expect(show("numbered")).toBe('[2] "Paris": A {title} city. $1\n');
  expect(show("text")).toBe(" A {title} city. $1\n");
});
