/**
 * Scripted episodes of AI-SearchPlanner from the first token to the reward, held field by field against a table that was
 * worked by hand (`golden/episodes/ai-search-planner.json`). Planner, generator and library are in the table too.
 */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { plannerSchema } from "../src/config/planner-options.ts";
import { environmentOptionsSchema } from "../src/environment/environment-options.ts";
import { scriptedRetriever } from "../src/retrieval/scripted-retriever.ts";
import { plannerReward } from "../src/reward/planner-reward.ts";
import { type Generator, generatorOptionsSchema } from "../src/rollout/generator.ts";
import { runRollout } from "../src/rollout/rollout.ts";
import { scriptedPolicy } from "../src/rollout/scripted-policy.ts";
import type { Trajectory } from "../src/rollout/trajectory.ts";
import { queries, searchCount } from "../src/rollout/trajectory-view.ts";
import { Assessor } from "../src/training/assessor.ts";

interface Table {
  readonly library: Readonly<Record<string, readonly { readonly title: string; readonly text: string }[]>>;
  readonly question: string;
  readonly goldAnswers: readonly string[];
  readonly goldPassages: readonly string[];
  readonly planner: unknown;
  readonly maxSearches: number;
  readonly maxSubQueries: number;
  readonly episodes: readonly Episode[];
}

interface Episode {
  readonly name: string;
  readonly policy: readonly string[];
  readonly generator: { readonly whole: string; readonly direct: string; readonly rag: string };
  readonly expected: unknown;
}

const path = new URL("golden/episodes/ai-search-planner.json", import.meta.url);
const table = JSON.parse(readFileSync(path, "utf8")) as Table;
const planner = plannerSchema.parse(table.planner);
const { maxSearches, maxSubQueries } = table;
const environment = environmentOptionsSchema.parse({
  ...{ mode: "planner", codec: "planner", prompt: "planner" },
  ...{ maxSearches, maxSubQueries },
});
const retriever = scriptedRetriever((query) =>
  (table.library[query] ?? []).map((passage, rank) => ({ id: `${query}-${rank}`, ...passage })),
);

function generatorOf({ generator: { whole, direct, rag } }: Episode): Generator {
  const script = (text: string): string =>
    text.includes("Record of the search:") ? whole : text.includes("Passages:") ? rag : direct;
  return {
    policy: scriptedPolicy(({ text }) => script(text)),
    options: generatorOptionsSchema.parse({}),
  };
}

test.each(table.episodes)("$name", async (episode) => {
  const generator = generatorOf(episode);
  const { question: text, goldAnswers, goldPassages } = table;
  const played = await runRollout({
    question: { id: "1", dataset: "scripted", text, goldAnswers, goldPassages },
    group: "scripted/1",
    sample: 0,
    seed: 1,
    policy: scriptedPolicy(episode.policy),
    retriever,
    environment,
    generator,
    sampling: { temperature: 1, topP: 1, topK: 0 },
  });
  const assessor = new Assessor({
    recipe: { environment, planner, seed: 1 },
    models: { generator, judge: { rule: planner.judge.rule } },
    retriever,
  });
  const [trajectory] = (await assessor.assess([played], { withBaselines: true })) as [Trajectory];
  const { score, directScore, ragScore, grade } = trajectory.assessment ?? {};
  const { value, parts } = plannerReward(trajectory, planner);
  const rounded = (number: number): number => Math.round(1e9 * number) / 1e9;
  expect({
    actions: trajectory.turns.map(({ action }) => action.type),
    sources: trajectory.segments.map(({ source }) => source),
    answer: trajectory.answer ?? null,
    isForced: trajectory.generated?.isForced,
    rounds: searchCount(trajectory),
    subQueries: queries(trajectory).length,
    assessment: { score, directScore, ragScore, grade },
    parts: Object.fromEntries(Object.entries(parts).map(([name, part]) => [name, rounded(part)])),
    reward: rounded(value),
  }).toEqual(episode.expected);
});
