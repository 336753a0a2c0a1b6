import { expect, test } from "vitest";
import { findPassageTemplate, passageTemplateNames } from "./passage-template.ts";
import { episodeModes, findTemplate, prepareQuestion, promptNames, renderPrompt } from "./prompt.ts";

function show(prompt: "search-r1" | "bare", question: string): string {
  return renderPrompt(
    { prompt, mode: "search", codec: "search-r1", examples: [] },
    { question, information: "" },
  );
}

test("a question is stripped and ends with a question mark", () => {
  expect(prepareQuestion("  who wrote Emma\n")).toBe("who wrote Emma?");
  expect(prepareQuestion("who? ")).toBe("who?");
  expect(prepareQuestion("Name it.")).toBe("Name it.?");
});

test("the Search-R1 prompt holds the published tags in the published order", () => {
  const text = show("search-r1", "who wrote Emma?");
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

test("every prompt has a text, and in each mode a text of its own", () => {
  for (const mode of episodeModes) {
    const texts = promptNames.flatMap((prompt) => findTemplate({ prompt, mode }) ?? []);
    expect(new Set(texts).size).toBe(texts.length);
    expect(texts.length).toBeGreaterThan(0);
  }
  for (const prompt of promptNames)
    expect(episodeModes.some((mode) => findTemplate({ prompt, mode }) !== undefined)).toBe(true);
  expect(findTemplate({ prompt: "answer", mode: "search" })).toBeUndefined();
  expect(findTemplate({ prompt: "search-r1", mode: "planner" })).toBeUndefined();
});

test("the bare prompt is the question", () => {
  expect(show("bare", "a {question} $& b?")).toBe("Question: a {question} $& b?\n");
});

test("every passage template has a hash of its own", () => {
  const hashes = passageTemplateNames.map((name) => findPassageTemplate(name).hash);
  expect(new Set(hashes).size).toBe(passageTemplateNames.length);
});

test("passages are shown as their template says", () => {
  const passage = { id: "7", title: '"Paris"', text: "A {title} city. $1" };
  const show = (name: (typeof passageTemplateNames)[number]) => findPassageTemplate(name).render(passage, 2);
  expect(show("search-r1")).toBe('Doc 2(Title: "Paris") A {title} city. $1\n');
  expect(show("numbered")).toBe('[2] "Paris": A {title} city. $1\n');
  expect(show("text")).toBe(" A {title} city. $1\n");
});
