import { describe, expect, test } from "vitest";
import { environmentOptionsSchema } from "../environment/environment-options.ts";
import { RetrieverError } from "../errors.ts";
import { scriptedRetriever } from "../retrieval/scripted-retriever.ts";
import { runRollout } from "../rollout/rollout.ts";
import { scriptedPolicy } from "../rollout/scripted-policy.ts";
import { type RewardOptions, reward, rewardOptionsSchema } from "./reward.ts";

const emma = { id: "e", title: "Emma", text: "The novel Emma is by Jane Austen." };

/** Plays `turns`; a query "Emma" finds the passage, "down" fails. */
function play(turns: readonly string[], goldAnswers: readonly string[] = ["Jane Austen"]) {
  return runRollout({
    question: { id: "1", dataset: "test", text: "Who wrote Emma", goldAnswers, goldPassages: [] },
    group: "test/1",
    sample: 0,
    seed: 1,
    policy: scriptedPolicy(turns),
    retriever: scriptedRetriever((query) =>
      query === "down" ? new RetrieverError("down") : query === "Emma" ? [emma] : [],
    ),
    environment: environmentOptionsSchema.parse({ maxSearches: 2 }),
    sampling: { temperature: 1, topP: 1, topK: 0 },
  });
}

const think = "<think>hm</think>";

test("the simple rewards look at the answer alone", async () => {
  const trajectory = await play(["<answer> the novelist Jane AUSTEN </answer>"]);
  expect(reward(trajectory, { type: "exactMatch" })).toEqual({ value: 0, parts: { exactMatch: 0 } });
  expect(reward(trajectory, { type: "coverExactMatch" })).toEqual({
    value: 1,
    parts: { coverExactMatch: 1 },
  });
  expect(reward(trajectory, { type: "tokenF1" }).value).toBeCloseTo(0.8, 12);
  expect(reward(await play(["<answer>jane austen.</answer>"]), { type: "exactMatch" }).value).toBe(1);
});

describe("an episode without an answer earns nothing, though the prompt quotes an answer", () => {
  const silent = ["", "", ""];
  const rewards: RewardOptions[] = [
    { type: "exactMatch" },
    { type: "coverExactMatch" },
    { type: "tokenF1" },
    rewardOptionsSchema.parse({ type: "format" }),
  ];
  test.each(["Beijing", "and"])("gold answer %s", async (gold) => {
    const trajectory = await play(silent, [gold]);
    expect(trajectory.segments[0]?.text).toContain("<answer> Beijing </answer>");
    expect(trajectory.stopReason).toBe("turnLimit");
    for (const options of rewards) expect(reward(trajectory, options).value).toBe(0);
  });
});

describe("the format reward by the table of Search-R1 v0.3", () => {
  const options = { type: "format", structure: 0.2, finalFormat: 0.1, retrieval: 0.05 } as const;
  const search = `${think}<search>Emma</search>`;
  test.each<[string, readonly string[], number]>([
    ["right and well formed", [search, `${think}\n<answer>Jane Austen</answer>`], 1],
    ["right and well formed without a search", [`${think} <answer>Jane Austen</answer>`], 1],
    ["right without reasoning", ["<answer>Jane Austen</answer>"], 0.8],
    ["right after an invalid turn", ["hm", `${think}<answer>Jane Austen</answer>`], 0.8],
    ["right with text before the reasoning", [`So ${think}<answer>Jane Austen</answer>`], 0.8],
    ["right with text after the answer", [`${think}<answer>Jane Austen</answer>!`], 0.8],
    [
      "right with an action quoted in reasoning",
      ["<think><search>x</search></think><answer>Jane Austen</answer>"],
      0.8,
    ],
    ["wrong, well formed, answer retrieved", [search, `${think}<answer>Dickens</answer>`], 0.25],
    [
      "wrong, well formed, answer not retrieved",
      [`${think}<search>x</search>`, `${think}<answer>Dickens</answer>`],
      0.2,
    ],
    ["wrong and ill formed, though retrieved", ["<search>Emma</search>", "<answer>Dickens</answer>"], 0.1],
    ["no answer", [search, search, search], 0],
    ["no answer and an invalid end", [search, think, think], 0],
  ])("%s", async (_, turns, expected) => {
    expect(reward(await play(turns), options).value).toBeCloseTo(expected, 12);
  });

  test("its parts are named", async () => {
    const trajectory = await play([search, `${think}<answer>Dickens</answer>`]);
    expect(reward(trajectory, options).parts).toEqual({ exactMatch: 0, wellFormed: 1, answerRetrieved: 1 });
  });

  test("its defaults are those of the published scripts", () => {
    expect(rewardOptionsSchema.parse({ type: "format" })).toEqual({
      type: "format",
      structure: 0.2,
      finalFormat: 0.1,
      retrieval: 0,
    });
    expect(() => rewardOptionsSchema.parse({ type: "format", score: 1 })).toThrow(/score/);
  });

  test("an observation that was shortened is not held against the policy", async () => {
    const trajectory = await runRollout({
      question: { id: "1", dataset: "test", text: "q", goldAnswers: ["b"], goldPassages: [] },
      group: "g",
      sample: 0,
      seed: 1,
      policy: scriptedPolicy([search, `${think}<answer>b</answer>`]),
      retriever: scriptedRetriever(() => [{ ...emma, text: "x".repeat(10_000) }]),
      environment: environmentOptionsSchema.parse({}),
      sampling: { temperature: 1, topP: 1, topK: 0 },
    });
    expect(trajectory.turns[0]?.truncated).toBe(true);
    expect(reward(trajectory, options).value).toBe(1);
  });
});

describe("DeSA's rewards by hand", () => {
  const search = "<search>Emma</search>";
  const right = "<answer>Jane Austen</answer>";
  const wrong = "<answer>Dickens</answer>";
  const penalised = rewardOptionsSchema.parse({ type: "retrievalRecall", deficiencyPenalty: 0.2 });
  const mixed = rewardOptionsSchema.parse({
    type: "mixture",
    parts: [
      { weight: 0.5, reward: { type: "retrievalRecall" } },
      { weight: 0.5, reward: { type: "exactMatch" } },
    ],
  });
  // turns; recall; recall less 0.2 for each flag; accuracy; half recall and half exact match
  test.each<[string, readonly string[], number, number, number, number]>([
    ["found and used", [search, right], 1, 1, 1, 1],
    ["found, not used", [search, wrong], 1, 1, 1, 0.5],
    ["found twice by one query", [search, search, wrong], 1, 0.8, 1, 0.5],
    ["found after a senseless query", ["<search>x</search>", search, right], 1, 0.8, 1, 1],
    ["found after two kinds of deficiencies", ["<search> </search>", search, wrong], 1, 0.8, 1, 0.5],
    ["known without a search", [right], 0, 0, 0, 0.5],
    ["neither found nor known", ["<search>x</search>", wrong], 0, 0, 0, 0],
  ])("%s", async (_, turns, recall, less, accuracy, half) => {
    const trajectory = await play(turns);
    const value = (options: RewardOptions): number => reward(trajectory, options).value;
    expect(value(rewardOptionsSchema.parse({ type: "retrievalRecall" }))).toBe(recall);
    expect(value(penalised)).toBeCloseTo(less, 12);
    expect(value(rewardOptionsSchema.parse({ type: "retrievalAccuracy" }))).toBe(accuracy);
    expect(value(mixed)).toBe(half);
  });

  test("a mixture names the parts of all its rewards", async () => {
    expect(reward(await play([search, wrong]), mixed).parts).toEqual({ retrievalRecall: 1, exactMatch: 0 });
  });

  test("the defaults find whole words and leave yes and no out; a mixture needs parts and holds no mixture", () => {
    expect(rewardOptionsSchema.parse({ type: "retrievalRecall" })).toEqual({
      type: "retrievalRecall",
      match: "tokens",
      skipYesNo: true,
      deficiencyPenalty: 0,
    });
    expect(() => rewardOptionsSchema.parse({ type: "mixture", parts: [] })).toThrow();
    expect(() =>
      rewardOptionsSchema.parse({ type: "mixture", parts: [{ weight: 1, reward: mixed }] }),
    ).toThrow();
  });
});

test("a trajectory that the world broke off has no reward", async () => {
  const trajectory = await play(["<search>down</search>"]);
  expect(() => reward(trajectory, { type: "exactMatch" })).toThrow(/retrieverFailure has no reward/);
});
