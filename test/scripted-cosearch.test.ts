/**
 * Scripted episodes of CoSearch from the first token to the advantages of the ranker, held field by field against a table
 * that was worked by hand (`golden/episodes/cosearch.json`). Agent, ranker and library are in the table too; nothing in it
 * was written by the program. Numbers are rounded to four digits.
 */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { stages } from "../bench/reproduce/studies/cosearch.ts";
import { queryGroupingSchema } from "../src/algorithm/query-groups.ts";
import { loadRecipe } from "../src/config/load-recipe.ts";
import { environmentOptionsSchema } from "../src/environment/environment-options.ts";
import { rankingPromptSchema } from "../src/environment/ranking-prompt.ts";
import { scriptedRetriever } from "../src/retrieval/scripted-retriever.ts";
import { rankingReward, rankingRewardSchema } from "../src/reward/ranking-reward.ts";
import { reward, rewardOptionsSchema } from "../src/reward/reward.ts";
import { runRollout } from "../src/rollout/rollout.ts";
import { scriptedPolicy } from "../src/rollout/scripted-policy.ts";
import type { Trajectory } from "../src/rollout/trajectory.ts";
import { random } from "../src/shared/random.ts";
import { rankerLessons } from "../src/training/ranker-lessons.ts";

interface Table {
  readonly question: string;
  readonly goldAnswers: readonly string[];
  readonly candidates: number;
  readonly k: number;
  readonly library: Readonly<Record<string, readonly string[]>>;
  readonly passages: Readonly<Record<string, string>>;
  readonly episodes: readonly {
    readonly agent: readonly string[];
    readonly ranker: readonly string[];
    readonly expected: object;
  }[];
  readonly groups: Readonly<Record<"paper" | "released", readonly unknown[]>>;
}

const path = new URL("golden/episodes/cosearch.json", import.meta.url);
const table = JSON.parse(readFileSync(path, "utf8")) as Table;
const versions = {
  paper: { reward: {}, grouping: {}, averageDuplicates: false },
  released: {
    reward: { gamma: 0.8, gammaIncluded: true, answerThreshold: 0.8, keepIllFormedAgents: true },
    grouping: { minMembers: 4 },
    averageDuplicates: true,
  },
} as const;
const round = (value: number): number => Math.round(1e4 * value) / 1e4;

async function play(sample: number): Promise<Trajectory> {
  const { agent, ranker } = table.episodes[sample] as Table["episodes"][number];
  const { question, goldAnswers, candidates, k, library, passages } = table;
  let calls = 0;
  return await runRollout({
    question: { id: "1", dataset: "scripted", text: question, goldAnswers, goldPassages: [] },
    group: "scripted",
    sample,
    seed: 1,
    policy: scriptedPolicy(agent),
    retriever: scriptedRetriever((query) =>
      (library[query] ?? []).map((title) => ({ id: title, title, text: passages[title] as string })),
    ),
    ranker: {
      type: "generative",
      candidates,
      policy: scriptedPolicy(() => ranker[calls++]),
      prompt: rankingPromptSchema.parse({ prompt: "bare" }),
      maxTokens: 99,
      sampling: { temperature: 1, topP: 1, topK: 0 },
    },
    environment: environmentOptionsSchema.parse({ k, maxSearches: 3 }),
    sampling: { temperature: 1, topP: 1, topK: 0 },
  });
}

test.each(table.episodes.map(({ expected }, sample) => ({ sample, expected })))(
  "episode $sample",
  async ({ sample, expected }) => {
    const agent = await play(sample);
    const rankings = agent.rankings ?? [];
    const judged = (version: keyof typeof versions) =>
      rankings.map((ranking) =>
        rankingReward(ranking, agent, rankingRewardSchema.parse(versions[version].reward)),
      );
    expect({
      shown: agent.turns.flatMap(({ passages }) =>
        passages ? [passages.map(({ passage }) => passage.title)] : [],
      ),
      observations: agent.segments.flatMap(({ source, text }) => (source === "environment" ? [text] : [])),
      prompts: rankings.map(({ segments }) => segments[0]?.text),
      rankings: rankings.map(({ answer }) => answer ?? null),
      turns: rankings.map(({ ranking }) => ranking?.turn),
      agentReward: round(reward(agent, rewardOptionsSchema.parse({ type: "formatF1" })).value),
      hits: judged("paper").map(({ hits }) => hits),
      paper: judged("paper").map(({ value }) => round(value)),
      released: judged("released").map(({ value }) => round(value)),
    }).toEqual(expected);
  },
);

test.each(["paper", "released"] as const)("groups and advantages of the version %s", async (version) => {
  const agents = await Promise.all(table.episodes.map((_, sample) => play(sample)));
  const { reward: given, grouping, averageDuplicates } = versions[version];
  const { groups } = rankerLessons(
    agents,
    {
      reward: rankingRewardSchema.parse(given),
      grouping: queryGroupingSchema.parse(grouping),
      averageDuplicates,
      rejectEqualRewards: true,
    },
    { advantage: { normalize: "std" }, random: random(1, "test") },
  );
  expect(
    groups.trajectories.map(({ trajectory, reward: value, advantage }) => [
      trajectory.group,
      trajectory.sample,
      trajectory.ranking?.place,
      round(value),
      round(advantage),
    ]),
  ).toEqual(table.groups[version]);
});

test("the miniature has the stages of its recipe", async () => {
  const recipe = await loadRecipe("recipes/lab-cosearch.yaml");
  const all = [stages.ranker, stages.agent, stages.joint].map((stage) => `{ ${stage} }`).join(", ");
  const study = await loadRecipe("recipes/lab-cosearch.yaml", { overrides: [`stages=[${all}]`] });
  expect(study.stages).toEqual(recipe.stages);
});
