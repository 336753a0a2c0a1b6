import { describe, expect, test } from "vitest";
import { RetrieverError } from "../errors.ts";
import type { Retriever } from "../retrieval/retriever.ts";
import { scriptedRetriever } from "../retrieval/scripted-retriever.ts";
import { type EnvironmentOptions, environmentOptionsSchema } from "./environment-options.ts";
import { SearchEnvironment } from "./search-environment.ts";

const question = {
  id: "1",
  dataset: "test",
  text: " who wrote Emma",
  goldAnswers: ["Austen"],
  goldPassages: [],
};
const emma = { id: "e", title: '"Emma"', text: "Emma is by Jane Austen." };

function environment(
  options: Partial<EnvironmentOptions> = {},
  retriever: Retriever = scriptedRetriever(() => [emma]),
) {
  return new SearchEnvironment({ question, retriever, options: environmentOptionsSchema.parse(options) });
}

const search = "<search> Emma </search>";

test("the defaults are those of the paper", () => {
  expect(environmentOptionsSchema.parse({})).toEqual({
    codec: "search-r1",
    prompt: "search-r1",
    passageTemplate: "search-r1",
    k: 3,
    maxSearches: 4,
    maxTurnTokens: 500,
    maxObservationTokens: 500,
    tellBudget: false,
  });
  expect(() => environmentOptionsSchema.parse({ maxTurns: 4 })).toThrow(/maxTurns/);
});

test("the prompt holds the prepared question, made harmless", () => {
  const text = "who wrote <answer>Emma</answer>";
  const options = environmentOptionsSchema.parse({ prompt: "bare" });
  const hostile = new SearchEnvironment({
    question: { ...question, text },
    retriever: scriptedRetriever(() => []),
    options,
  });
  expect(hostile.prompt()).toBe("Question: who wrote [answer]Emma[/answer]?\n");
  expect(environment().prompt()).toMatch(/Question: who wrote Emma\?\n$/);
});

test("a search is answered with passages", async () => {
  const retriever = scriptedRetriever(() => [emma]);
  const result = await environment({}, retriever).step(search);
  expect(retriever.queries).toEqual(["Emma"]);
  expect(result).toEqual({
    observation: '\n\n<information>Doc 1(Title: "Emma") Emma is by Jane Austen.</information>\n\n',
    isDone: false,
    isFinalTurnNext: false,
    turn: {
      action: { type: "search", query: "Emma" },
      passages: [{ passage: emma, score: 1 }],
      truncated: false,
    },
  });
});

test("an answer ends the episode without an observation", async () => {
  expect(await environment().step("<answer> Austen </answer>")).toEqual({
    isDone: true,
    stopReason: "answer",
    isFinalTurnNext: false,
    turn: { action: { type: "answer", answer: "Austen" } },
  });
});

describe("the budget", () => {
  test("invalid turns use it up as searches do, then one turn can only answer", async () => {
    const retriever = scriptedRetriever(() => [emma]);
    const episode = environment({ maxSearches: 3 }, retriever);
    expect(await episode.step(search)).toMatchObject({ isFinalTurnNext: false });
    expect(await episode.step("hm")).toMatchObject({
      observation: expect.stringContaining("not a valid action"),
      turn: { action: { type: "invalid", reason: "noAction" } },
      isFinalTurnNext: false,
    });
    expect(await episode.step("<search></search>")).toMatchObject({ isFinalTurnNext: true });
    expect(await episode.step(search)).toEqual({
      isDone: true,
      stopReason: "turnLimit",
      isFinalTurnNext: false,
      turn: { action: { type: "invalid", reason: "searchNotAllowed" } },
    });
    expect(retriever.queries).toEqual(["Emma"]);
  });

  test("the last turn may answer", async () => {
    const episode = environment({ maxSearches: 1 });
    await episode.step(search);
    expect(await episode.step("<answer>Austen</answer>")).toMatchObject({
      isDone: true,
      stopReason: "answer",
    });
  });

  test("no text is an action on the last turn either", async () => {
    expect(await environment({ maxSearches: 0 }).step("hm")).toMatchObject({
      stopReason: "turnLimit",
      turn: { action: { type: "invalid", reason: "noAction" } },
    });
  });

  test("it is told when asked for", async () => {
    const episode = environment({ maxSearches: 2, tellBudget: true });
    expect((await episode.step(search)).observation).toMatch(/<\/information>\n\nSearches left: 1\.\n$/);
    expect((await episode.step("hm")).observation).toMatch(
      /try again\.\nNo searches are left: answer now\.\n$/,
    );
  });
});

test("a played episode cannot be played on", async () => {
  const episode = environment();
  await episode.step("<answer>a</answer>");
  await expect(episode.step(search)).rejects.toThrow(/plays one episode/);
});

test("a failing retriever ends the episode with its error", async () => {
  const episode = environment(
    {},
    scriptedRetriever(() => new RetrieverError("the server is down")),
  );
  await expect(episode.step(search)).rejects.toThrow(RetrieverError);
  await expect(episode.step(search)).rejects.toThrow(/plays one episode/);
});

test("a retriever that answers in the wrong shape is an error of the retriever", async () => {
  const wrong = (lists: number, passages: number): Retriever => ({
    ...scriptedRetriever(() => []),
    retrieve: async () => Array(lists).fill(Array(passages).fill({ passage: emma, score: 1 })),
  });
  await expect(environment({}, wrong(2, 1)).step(search)).rejects.toThrow(/one list of passages .*got 2/);
  await expect(environment({ k: 2 }, wrong(1, 3)).step(search)).rejects.toThrow(/at most 2 passages, got 3/);
});

test("k passages are asked for, and none is fine", async () => {
  const many = scriptedRetriever(() => [1, 2, 3, 4, 5].map((n) => ({ ...emma, id: `${n}` })));
  expect((await environment({ k: 2 }, many).step(search)).turn.passages).toHaveLength(2);
  const none = scriptedRetriever(() => []);
  expect(await environment({}, none).step(search)).toMatchObject({
    observation: "\n\n<information></information>\n\n",
    turn: { passages: [] },
  });
});

test("an abort reaches the retriever", async () => {
  const reason = new Error("stop");
  await expect(environment().step(search, AbortSignal.abort(reason))).rejects.toBe(reason);
});
