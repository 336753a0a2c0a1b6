/** A language model that grades rankings: what it reads, how its words become a reward, and what its failures are. */
import { describe, expect, it } from "vitest";
import { makeQuestion, makeSegment, makeTrajectory } from "../../test/make-trajectory.ts";
import { queryGroupingSchema } from "../algorithm/query-groups.ts";
import { renderOrder } from "../environment/ranking-codec.ts";
import { PolicyError } from "../errors.ts";
import { readRubric } from "../reward/ranking-judge.ts";
import { rankingRewardSchema } from "../reward/ranking-reward.ts";
import { type Generator, generatorOptionsSchema } from "../rollout/generator.ts";
import { scriptedPolicy } from "../rollout/scripted-policy.ts";
import type { Trajectory } from "../rollout/trajectory.ts";
import { random } from "../shared/random.ts";
import { rankerLessons } from "./ranker-lessons.ts";
import { gradeRankings } from "./ranking-grader.ts";

const candidates = ["no", "it is Paris", "nor this"].map((text, i) => ({
  passage: { id: `${i}`, title: "T", text },
  score: 1,
}));

function ranking(first: number | undefined, place: number): Trajectory {
  const answer = first === undefined ? undefined : renderOrder([first]);
  return makeTrajectory({
    question: makeQuestion(),
    group: "g",
    answer,
    stopReason: answer === undefined ? "turnLimit" : "answer",
    segments: [makeSegment("prompt", [1]), makeSegment("policy", [2, place])],
    turns: [{ action: { type: "answer", answer: answer ?? "" }, passages: candidates }],
    ranking: { turn: place, place, query: "capital of France", count: 1 },
  });
}
const agent = (...rankings: readonly Trajectory[]): Trajectory => makeTrajectory({ group: "g", rankings });

function judge(reply: (prompt: string, seed: number) => string) {
  const prompts: string[] = [];
  const model: Generator = {
    options: generatorOptionsSchema.parse({ temperature: 0.7 }),
    policy: {
      ...scriptedPolicy([]),
      complete: async (contexts) =>
        contexts.map(({ text, seed = 0 }) => {
          prompts.push(text);
          const usage = { promptTokens: 10, completionTokens: 1 };
          return { text: reply(text, seed), finishReason: "stop", usage } as const;
        }),
    },
  };
  return { model, prompts, samples: 4, seed: 1 };
}
const gradesOf = (agents: readonly Trajectory[]) =>
  agents.flatMap(({ rankings = [] }) => rankings.map((call) => call.ranking?.grade));

describe("a judge of rankings", () => {
  it("reads question, gold answers, query, what was shown and what came next, and its grades are averaged", async () => {
    let calls = 0;
    const grader = judge(() => String(calls++ % 4));
    const graded = await gradeRankings([agent(ranking(2, 0))], grader);
    expect(gradesOf(graded)).toEqual([(0 + 1 + 2 + 3) / 4 / 3]);
    expect(grader.prompts).toHaveLength(4);
    expect(grader.prompts[0]).toContain("Reference answers: Paris");
    expect(grader.prompts[0]).toContain("Query: capital of France");
    expect(grader.prompts[0]).toContain("[1] T: it is Paris");
    expect(grader.prompts[0]).not.toContain("nor this");
    expect(grader.prompts[0]).toContain("What the agent wrote next:\n8 9");
  });

  it("is not asked about rankings that break the grammar, and gives 0 for what cannot be read", async () => {
    const grader = judge(() => "splendid");
    expect(gradesOf(await gradeRankings([agent(ranking(undefined, 0), ranking(1, 1))], grader))).toEqual([
      undefined,
      0,
    ]);
    expect(grader.prompts).toHaveLength(4);
  });

  it("whose model fails leaves the ranking out of what is learnt", async () => {
    const grader = judge((prompt) => {
      if (prompt.includes("it is Paris")) throw new PolicyError("no answer");
      return "3";
    });
    const graded = await gradeRankings([agent(ranking(2, 0), ranking(1, 1), ranking(undefined, 2))], grader);
    expect(gradesOf(graded)).toEqual([undefined, 1, undefined]);
    const lessons = rankerLessons(
      graded,
      {
        grouping: queryGroupingSchema.parse({ minMembers: 1 }),
        reward: rankingRewardSchema.parse({ agentFormat: "actions", combine: "judge" }),
        averageDuplicates: false,
        rejectEqualRewards: false,
      },
      { advantage: { normalize: "none" }, random: random(1, "test") },
    );
    expect(lessons.judged.map(({ judgement }) => judgement.value)).toEqual([1, -0.2]);
  });
});

it.each([
  ["2", 2],
  ["Grade: 3.", 3],
  ["<think>0 or 1</think> 1", 1],
  ["4", undefined],
  ["1.5", undefined],
  ["-1", undefined],
  ["none", undefined],
])("the rubric %j is %s", (reply, grade) => {
  expect(readRubric(reply)).toBe(grade);
});
