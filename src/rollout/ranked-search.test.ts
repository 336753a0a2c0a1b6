import { describe, expect, it } from "vitest";
import { rankingTags, renderRanking } from "../environment/ranking-codec.ts";
import { rankingPromptSchema } from "../environment/ranking-prompt.ts";
import { searchR1Tags } from "../environment/search-r1-codec.ts";
import { PolicyError } from "../errors.ts";
import { scriptedRetriever } from "../retrieval/scripted-retriever.ts";
import { trainBytePair } from "../tokenizer/byte-pair-training.ts";
import type { Policy } from "./policy.ts";
import { oracleChoice, type Ranker } from "./ranked-search.ts";
import { play } from "./rollout.fixture.ts";
import { scriptedPolicy } from "./scripted-policy.ts";
import type { Trajectory } from "./trajectory.ts";

const tokenizer = trainBytePair([], {
  vocabularySize: 270,
  specialTokens: [...searchR1Tags, ...rankingTags],
});
const passages = ["one", "two", "three", "four"].map((text, i) => ({ id: `${i + 1}`, title: "T", text }));
const ranker = (policy: Policy, contextLength?: number): Ranker => ({
  type: "generative",
  candidates: 4,
  policy,
  tokenizer,
  contextLength,
  prompt: rankingPromptSchema.parse({ prompt: "bare", passages: "text" }),
  maxTokens: 80,
  sampling: { temperature: 1, topP: 1, topK: 0 },
});
const search = (query: string) => `<search> ${query}</search>`;
const playWith = (given: Ranker, queries: readonly string[] = ["q1"]): Promise<Trajectory> =>
  play({
    turns: [...queries.map(search), "<answer> b</answer>"],
    environment: { k: 2, passageTemplate: "text" },
    retriever: scriptedRetriever(() => passages),
    ranker: given,
  });
const shown = ({ turns }: Trajectory) =>
  turns.map(({ passages: all }) => all?.map(({ passage }) => passage.id));

describe("a generative ranker", () => {
  it("chooses what the agent sees, and is recorded apart with its turn", async () => {
    const policy = scriptedPolicy(() => renderRanking([3, 1]), tokenizer);
    const trajectory = await playWith(ranker(policy), ["q1", "q2"]);
    expect(shown(trajectory)).toEqual([["3", "1"], ["3", "1"], undefined]);
    expect(trajectory.segments[2]?.text).toContain("three");
    const [first, second] = trajectory.rankings ?? [];
    expect(second?.ranking).toEqual({ turn: 1, place: 1, query: "q2", count: 2 });
    expect(first).toMatchObject({
      group: trajectory.group,
      sample: trajectory.sample,
      answer: "[3] > [1]",
      stopReason: "answer",
    });
    expect(first?.segments.map(({ source }) => source)).toEqual(["prompt", "policy"]);
    expect(first?.segments[0]?.text).toBe("Question: q?\nQuery: q1\n[1] one\n[2] two\n[3] three\n[4] four\n");
    expect(first?.segments[1]?.logprobs).toHaveLength(first?.segments[1]?.tokens.length as number);
    expect(first?.turns[0]?.passages?.map(({ passage }) => passage.id)).toEqual(["1", "2", "3", "4"]);
    expect(new Set(policy.calls.map(({ episode }) => episode)).size).toBe(2);
    expect(new Set(policy.calls.map(({ seed }) => seed)).size).toBe(2);
  });

  it("leaves the retriever's best where the ranking breaks the grammar", async () => {
    const trajectory = await playWith(ranker(scriptedPolicy(() => "[3] > [1]", tokenizer)));
    expect(shown(trajectory)[0]).toEqual(["1", "2"]);
    expect(trajectory.rankings?.[0]).toMatchObject({ answer: undefined, stopReason: "turnLimit" });
    expect(trajectory.stopReason).toBe("answer");
  });

  it("leaves the retriever's best where the ranker fails, and says so", async () => {
    const failing: Policy = {
      identity: { type: "test", model: "broken" },
      complete: () => Promise.reject(new PolicyError("out of order")),
    };
    const trajectory = await playWith(ranker(failing));
    expect(shown(trajectory)[0]).toEqual(["1", "2"]);
    expect(trajectory.rankings?.[0]).toMatchObject({ stopReason: "policyFailure", failure: "out of order" });
  });

  it("cuts candidates until a ranking fits, and gives up where none can", async () => {
    const policy = scriptedPolicy(() => renderRanking([2, 1]), tokenizer);
    const cut = await playWith(ranker(policy, 135));
    expect(cut.rankings?.[0]?.turns[0]?.truncated).toBe(true);
    expect(cut.rankings?.[0]?.segments[0]?.text).toContain("[1] on\n[2] tw\n");
    expect(shown(cut)[0]).toEqual(["2", "1"]);
    const full = await playWith(ranker(policy, 40));
    expect(full.rankings?.[0]?.stopReason).toBe("contextLimit");
    expect(shown(full)[0]).toEqual(["1", "2"]);
  });

  it("is not asked about nothing", async () => {
    const policy = scriptedPolicy([], tokenizer);
    const trajectory = await play({
      turns: [search("q1"), "<answer> b</answer>"],
      environment: { k: 2 },
      retriever: scriptedRetriever(() => []),
      ranker: ranker(policy),
    });
    expect(policy.calls).toHaveLength(0);
    expect(trajectory.rankings).toEqual([]);
  });

  it("ranks among fewer candidates than are asked for", async () => {
    const policy = scriptedPolicy(() => renderRanking([1]), tokenizer);
    const trajectory = await play({
      turns: [search("q1"), "<answer> b</answer>"],
      environment: { k: 2 },
      retriever: scriptedRetriever(() => passages.slice(0, 1)),
      ranker: ranker(policy),
    });
    expect(shown(trajectory)[0]).toEqual(["1"]);
  });
});

describe("the oracle", () => {
  const candidates = ["x", "b", "y", "B .", "ab"].map((text, i) => ({
    passage: { id: `${i + 1}`, title: "T", text },
    score: 1 - i / 10,
  }));
  const ids = (golds: readonly string[], k: number) =>
    oracleChoice(candidates, golds, k).map(({ passage }) => passage.id);

  it.each([
    ["the relevant ones first, then the best of the others", ["b"], 3, ["2", "4", "1"]],
    ["only relevant ones where they are enough", ["b"], 1, ["2"]],
    ["the retriever's best without any", ["z"], 2, ["1", "2"]],
    ["all of few", ["b"], 9, ["2", "4", "1", "3", "5"]],
  ])("shows %s", (_, golds, k, expected) => {
    expect(ids(golds, k)).toEqual(expected);
  });

  it("works during an episode, on every search", async () => {
    const trajectory = await play({
      question: { id: "1", dataset: "t", text: "q", goldAnswers: ["three"], goldPassages: [] },
      turns: [search("q1"), search("q2"), "<answer> b</answer>"],
      environment: { k: 1 },
      retriever: scriptedRetriever(() => passages),
      ranker: { type: "oracle", candidates: 4 },
    });
    expect(shown(trajectory)).toEqual([["3"], ["3"], undefined]);
    expect(trajectory.rankings).toBeUndefined();
  });
});
