import { describe, expect, test } from "vitest";
import { environmentOptionsSchema } from "../environment/environment-options.ts";
import { scriptedRetriever } from "../retrieval/scripted-retriever.ts";
import { runRollout } from "../rollout/rollout.ts";
import { scriptedPolicy } from "../rollout/scripted-policy.ts";
import type { Trajectory } from "../rollout/trajectory.ts";
import { releasedMatch, retrievalAccuracy, retrievalRecall, wordMatch } from "./retrieved-answer.ts";

const library: Readonly<Record<string, readonly string[]>> = {
  emma: ["Emma is a novel by Jane Austen .", "Emma is also a name ."],
  party: ["The party went north ."],
  art: ["The art of war ."],
  no: ["He said no ."],
  split: ["It was written by Jane", "Austen lives in Bath ."],
  long: [`Emma is a novel. ${"x ".repeat(3000)} It is by Jane Austen.`],
};

/** Plays `turns` against the library above; a query that it does not hold finds nothing. */
function play(
  turns: readonly string[],
  goldAnswers: readonly string[],
  options: object = {},
): Promise<Trajectory> {
  return runRollout({
    question: { id: "1", dataset: "test", text: "Who wrote Emma", goldAnswers, goldPassages: [] },
    group: "g",
    sample: 0,
    seed: 1,
    policy: scriptedPolicy(turns),
    retriever: scriptedRetriever((query) =>
      (library[query] ?? []).map((text, i) => ({ id: `${query}-${i}`, title: query, text })),
    ),
    environment: environmentOptionsSchema.parse({ maxSearches: 2, ...options }),
    sampling: { temperature: 1, topP: 1, topK: 0 },
  });
}

const answer = "<answer>x</answer>";
const search = (query: string): string => `<search>${query}</search>`;

describe("retrieval recall by hand", () => {
  // turns, gold answers, recall by whole words without yes and no, recall as released
  test.each<[string, readonly string[], readonly string[], 0 | 1, 0 | 1]>([
    ["a search that shows the answer", [search("emma"), answer], ["Jane Austen"], 1, 1],
    ["any gold answer counts", [search("emma"), answer], ["Dickens", "jane austen!"], 1, 1],
    ["the union of all searches", [search("party"), search("emma"), answer], ["Jane Austen"], 1, 1],
    ["whatever is answered", [search("emma"), "<answer>Jane Austen</answer>"], ["Dickens"], 0, 0],
    ["no answer at all is fine", [search("emma"), search("emma"), "hm"], ["Jane Austen"], 1, 1],
    ["no search", [answer], ["Jane Austen"], 0, 0],
    ["a search without results", [search("nothing"), answer], ["Jane Austen"], 0, 0],
    [
      "passages that the policy writes",
      [`<information>Jane Austen</information>${answer}`],
      ["Jane Austen"],
      0,
      0,
    ],
    [
      "passages that the policy writes before a search",
      [`<information>Jane Austen</information>${search("party")}`, answer],
      ["Jane Austen"],
      0,
      0,
    ],
    ["a query that names the answer", [search("Jane Austen"), answer], ["Jane Austen"], 0, 0],
    ["the message after an invalid action", ["hm", answer], ["valid action"], 0, 0],
    ["words of the passage template", [search("emma"), answer], ["Doc", "Title"], 0, 0],
    ["an empty gold answer", [search("emma"), answer], ["The"], 0, 0],
    ["an empty gold answer without a search", [answer], ["A", "..."], 0, 0],
    ["no is not in north", [search("party"), answer], ["no"], 0, 1],
    ["yes and no are left out", [search("no"), answer], ["No."], 0, 1],
    ["art is not in party", [search("party"), answer], ["art"], 0, 1],
    ["art is in art", [search("art"), answer], ["art"], 1, 1],
    ["an answer across two passages", [search("split"), answer], ["Jane Austen"], 0, 0],
    ["the title counts", [search("emma"), answer], ["Emma"], 1, 1],
    [
      "a search in the last turn is not carried out",
      [search("party"), search("party"), search("emma")],
      ["Jane Austen"],
      0,
      0,
    ],
    ["an answer beyond what was shown", [search("long"), answer], ["Jane Austen"], 0, 0],
    ["an answer before the cut", [search("long"), answer], ["novel"], 1, 1],
  ])("%s", async (_, turns, golds, words, released) => {
    const trajectory = await play(turns, golds);
    expect(retrievalRecall(trajectory, wordMatch)).toBe(words);
    expect(retrievalRecall(trajectory, releasedMatch)).toBe(released);
  });

  test("a title that the template does not show does not count", async () => {
    const trajectory = await play([search("art"), answer], ["party"], { passageTemplate: "text" });
    expect(retrievalRecall(trajectory, wordMatch)).toBe(0);
    const hidden = await play([search("split"), answer], ["split"], { passageTemplate: "text" });
    expect(retrievalRecall(hidden, wordMatch)).toBe(0);
  });

  test("in mode rag the passages of the prompt count", async () => {
    const trajectory = await runRollout({
      question: { id: "1", dataset: "t", text: "emma", goldAnswers: ["Jane Austen"], goldPassages: [] },
      group: "g",
      sample: 0,
      seed: 1,
      policy: scriptedPolicy([answer]),
      retriever: scriptedRetriever(() => [{ id: "e", title: "Emma", text: "By Jane Austen." }]),
      environment: environmentOptionsSchema.parse({ mode: "rag" }),
      sampling: { temperature: 1, topP: 1, topK: 0 },
    });
    expect(retrievalRecall(trajectory, wordMatch)).toBe(1);
  });
});

describe("retrieval accuracy by hand", () => {
  test.each<[string, readonly string[], number]>([
    ["one of two passages", [search("emma"), answer], 1 / 2],
    ["a repeated search counts again", [search("emma"), search("emma"), answer], 2 / 4],
    ["over all searches", [search("emma"), search("party"), answer], 1 / 3],
    ["no passages", [answer], 0],
  ])("%s", async (_, turns, expected) => {
    expect(retrievalAccuracy(await play(turns, ["Jane Austen"]), wordMatch)).toBeCloseTo(expected, 12);
  });
});
