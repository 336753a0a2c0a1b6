/**
 * Scripted episodes of Search-R1 and DeSA from the first token to the reward, held field by field against a table that was
 * worked by hand (`golden/episodes/search-r1.json`): actions, mask, rewards, deficiencies. The policy and the library are
 * in the table too; nothing in it was written by the program.
 */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { environmentOptionsSchema } from "../src/environment/environment-options.ts";
import { scoreTrajectory } from "../src/evaluation/score-trajectory.ts";
import { scriptedRetriever } from "../src/retrieval/scripted-retriever.ts";
import { deficiencies, deficiencyNames } from "../src/reward/deficiencies.ts";
import { reward, rewardOptionsSchema } from "../src/reward/reward.ts";
import { runRollout } from "../src/rollout/rollout.ts";
import { scriptedPolicy } from "../src/rollout/scripted-policy.ts";

interface Table {
  readonly library: Readonly<Record<string, readonly { readonly title: string; readonly text: string }[]>>;
  readonly rewards: Readonly<Record<string, unknown>>;
  readonly episodes: readonly Episode[];
}

interface Episode {
  readonly name: string;
  readonly question: string;
  readonly goldAnswers: readonly string[];
  readonly maxSearches: number;
  readonly policy: readonly string[];
  readonly expected: {
    readonly actions: readonly string[];
    readonly sources: readonly string[];
    readonly observations: readonly string[];
    readonly answer: string | null;
    readonly stopReason: string;
    readonly searches: number;
    /** Absent where the gold answer is yes or no. */
    readonly answerRetrieved?: number;
    readonly deficiencies: readonly string[];
    readonly rewards: Readonly<Record<string, number>>;
  };
}

const path = new URL("golden/episodes/search-r1.json", import.meta.url);
const table = JSON.parse(readFileSync(path, "utf8")) as Table;

test.each(table.episodes)("$name", async (episode) => {
  const { question, goldAnswers, maxSearches, policy, expected } = episode;
  const trajectory = await runRollout({
    question: { id: "1", dataset: "scripted", text: question, goldAnswers, goldPassages: [] },
    group: "scripted/1",
    sample: 0,
    seed: 1,
    policy: scriptedPolicy(policy),
    retriever: scriptedRetriever((query) =>
      (table.library[query] ?? []).map((passage, rank) => ({ id: `${query}-${rank}`, ...passage })),
    ),
    environment: environmentOptionsSchema.parse({ maxSearches }),
    sampling: { temperature: 1, topP: 1, topK: 0 },
  });
  const item = scoreTrajectory(trajectory);
  const found = deficiencies(trajectory);
  expect({
    actions: trajectory.turns.map(({ action }) =>
      action.type === "invalid" ? `invalid: ${action.reason}` : action.type,
    ),
    sources: trajectory.segments.map(({ source }) => source),
    observations: trajectory.segments.flatMap(({ source, text }) => (source === "environment" ? [text] : [])),
    answer: trajectory.answer ?? null,
    stopReason: trajectory.stopReason,
    searches: item.failed ? undefined : item.searches,
    answerRetrieved: item.failed ? undefined : item.answerRetrieved,
    deficiencies: deficiencyNames.filter((name) => found[name] === 1),
    rewards: Object.fromEntries(
      Object.entries(table.rewards).map(([name, options]) => [
        name,
        Math.round(1e9 * reward(trajectory, rewardOptionsSchema.parse(options)).value) / 1e9,
      ]),
    ),
  }).toEqual(expected);
  const own = trajectory.segments.filter(({ source }) => source === "policy").map(({ text }) => text);
  expect(own).toEqual(policy.slice(0, own.length));
});
