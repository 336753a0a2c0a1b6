import { expect, test } from "vitest";
import { parse } from "yaml";
import { hostileText } from "../../test/made-up-run.ts";
import { makeContract, makeItem, makeResult } from "../../test/make-result.ts";
import { codeBlock, markdownText } from "./markdown.ts";
import { renderModelCard } from "./model-card.ts";
import { type CardRun, exportTargets, type ModelCard } from "./model-card-parts.ts";

const result = makeResult(
  [
    makeItem({ id: "1", em: 1, f1: 1, coverEm: 1 }),
    makeItem({ id: "2" }),
    makeItem({ id: "3", dataset: "a|b" }),
  ],
  makeContract({ questionsHash: "abc" }),
);
const run: CardRun = {
  recipeName: "my-agent",
  recipeYaml: "name: my-agent\nprompt: '```'\n",
  step: 40,
  totalSteps: 60,
  stages: ["warm-up: 20 steps, supervised", "grpo: 40 steps, reinforcement"],
  data: [["questions to train on", "12, SHA-256 0a1b"]],
  evaluations: [
    { name: "before", stage: "grpo", step: 0, result, isOfTheseWeights: false },
    { name: "after", stage: "grpo", step: 20, result, isOfTheseWeights: true },
  ],
  prompt: {
    opening: "Question: {question}\n",
    stopStrings: ["</search>", "</answer>"],
    example: "<search> q</search>",
  },
};
const card: ModelCard = {
  name: "agent",
  target: "hf",
  type: "F32",
  file: "model.safetensors",
  family: "llama",
  parameters: 134_515_008,
  context: 8192,
  licence: "Apache-2.0",
  base: { name: "owner/base", isOnHub: true, revision: "main", hash: "ff00" },
  run,
  version: "1.2.3",
};

const frontOf = (text: string): Record<string, unknown> =>
  parse(/^---\n([\s\S]*?)\n---\n/.exec(text)?.[1] ?? "") as Record<string, unknown>;

test("the front matter says what the hub asks: licence, base, library, and the scores of these weights alone", () => {
  expect(frontOf(renderModelCard(card))).toEqual({
    license: "apache-2.0",
    base_model: "owner/base",
    base_model_relation: "finetune",
    library_name: "transformers",
    pipeline_tag: "text-generation",
    tags: ["forager", "search-agent", "question-answering"],
    "model-index": [
      {
        name: "agent",
        results: [
          {
            task: { type: "question-answering" },
            dataset: { type: "custom", name: "after: 3 questions", split: "test", revision: "abc" },
            metrics: [
              { type: "exact_match", value: 0.3333 },
              { type: "f1", value: 0.3333 },
            ],
          },
        ],
      },
    ],
  });
});

test("scores have n and an interval, and say whether they are of these weights", () => {
  const text = renderModelCard(card);
  expect(text).toMatch(/\| before \| no \| all \| 3 \| 33\.3 \(0\.0 to 100\.0\) \|/);
  expect(text).toMatch(/\| after \| yes \| a\\\|b \| 1 \|/);
  expect(text).toContain("after 40 of 60 steps");
  expect(text).toContain("SHA-256 of its files ff00");
  expect(text).toContain("licence of that model: Apache-2.0");
});

test.each(exportTargets)("a card for %s shows how its library and Forager load it", (target) => {
  const text = renderModelCard({ ...card, target, file: "agent-F32.gguf" });
  const expected = {
    hf: "AutoModelForCausalLM",
    merged: "vllm serve",
    peft: "PeftModel",
    gguf: "agent-F32.gguf",
  };
  expect(text).toContain(expected[target]);
  expect(text).toContain("forager complete --model PATH");
  expect(frontOf(text).base_model_relation).toBe(target === "peft" ? "adapter" : "finetune");
});

test("what is not known is said, not made up", () => {
  const { licence: _, base: __, run: ___, ...bare } = card;
  const fresh = renderModelCard({ ...bare, run });
  expect(fresh).toContain("trained from nothing and has no licence yet");
  expect(frontOf(fresh)).not.toHaveProperty("license");
  const converted = renderModelCard({ ...bare, base: { name: "base.gguf", isOnHub: false } });
  expect(converted).toContain("not known here, look it up");
  expect(converted).not.toContain("## Scores");
  expect(renderModelCard({ ...bare, run: { ...run, evaluations: [] } })).toContain("holds no evaluation");
});

test("text from data becomes no markup", () => {
  const dataset = `${hostileText}|\n# heading [link](javascript:x) \`code\``;
  const hostile = makeResult([makeItem({ dataset }), makeItem({ dataset: "other" })]);
  const text = renderModelCard({
    ...card,
    name: hostileText,
    run: {
      ...run,
      recipeName: hostileText,
      recipeYaml: `a: '${"`".repeat(5)}'\n`,
      evaluations: [{ name: "after", stage: "grpo", step: 20, result: hostile, isOfTheseWeights: true }],
    },
  });
  const outside = text.replace(/^---\n[\s\S]*?\n---\n/, "").replace(/^(`{3,})\w*\n[\s\S]*?\n\1$/gm, "");
  expect(outside).not.toMatch(/(?<!\\)<(script|img|svg|\/script)/);
  expect(outside).not.toMatch(/(?<!\\)\]\(|^# heading/m);
  expect(text).toContain("`".repeat(6));
  expect(frontOf(text)["model-index"]).toMatchObject([{ name: hostileText }]);
});

test("signs of Markdown are escaped and lines joined", () => {
  expect(markdownText("a_b *c*\n| <d> & `e` #1")).toBe("a\\_b \\*c\\* \\| \\<d\\> \\& \\`e\\` \\#1");
});

test("a fence is longer than any in the code", () => {
  expect(codeBlock("x\n````\n\n", "sh")).toBe("`````sh\nx\n````\n`````");
});
