/** The teacher of real questions, over a corpus of four passages that a script searches by words. */
import { expect, test } from "vitest";
import type { Passage } from "../corpus/passage.ts";
import type { Question } from "../corpus/question.ts";
import { type EnvironmentOptions, environmentOptionsSchema } from "../environment/environment-options.ts";
import { searchR1Tags } from "../environment/search-r1-codec.ts";
import { RetrieverError } from "../errors.ts";
import { scriptedRetriever } from "../retrieval/scripted-retriever.ts";
import { trainBytePair } from "../tokenizer/byte-pair-training.ts";
import { findGoldPlan } from "./gold-plan.ts";
import { mentions } from "./mentions.ts";
import { demonstrate, teacherOptionsSchema } from "./teacher.ts";
import type { Trajectory } from "./trajectory.ts";
import { queries } from "./trajectory-view.ts";

const tokenizer = trainBytePair([], { vocabularySize: 266, specialTokens: searchR1Tags });
const corpus: readonly Passage[] = [
  { id: "f", title: "Faust", text: "A play by Johann Goethe." },
  { id: "g", title: "Johann Goethe", text: "Born in Frankfurt." },
  { id: "k", title: "Kafka", text: "Born in Prague." },
  { id: "x", title: "Nobody", text: "Nothing." },
];
const titles = new Map(corpus.map(({ id, title }) => [id, title]));
/** One passage for a query: the first whose title the query names. */
const retriever = scriptedRetriever((query) =>
  corpus.filter(({ title }) => mentions(query, title)).slice(0, 1),
);

function question(changed: Partial<Question> = {}): Question {
  return {
    id: "1",
    dataset: "made",
    text: "Where was the author of Faust born?",
    goldAnswers: ["Frankfurt"],
    goldPassages: ["f", "g"],
    ...changed,
  };
}

async function taught(asked: readonly Question[], environment: Partial<EnvironmentOptions> = {}) {
  const requests = asked.map((each) => ({ question: each, group: each.id, sample: 0, seed: 3 }));
  const options = environmentOptionsSchema.parse({ prompt: "bare", k: 1, ...environment });
  return await demonstrate(
    requests,
    { retriever, environment: options, tokenizer, titles },
    teacherOptionsSchema.parse({ type: "goldPassages" }),
  );
}

const reasonOf = async (asked: Question, environment: Partial<EnvironmentOptions> = {}) =>
  (await taught([asked], environment)).dropped[0]?.reason;

test("it searches until every gold passage is found, the next one by what it has read, and gives the gold answer", async () => {
  const { trajectories, dropped } = await taught([question()]);
  expect(dropped).toEqual([]);
  const [shown] = trajectories as [Trajectory];
  expect(queries(shown)).toEqual(["Where was the author of Faust born?", "Johann Goethe"]);
  expect(shown.answer).toBe("Frankfurt");
  const turns = shown.segments.filter(({ source }) => source === "policy").map(({ text }) => text);
  expect(turns[1]).toMatch(/^<think> .*Faust.*Johann Goethe\.<\/think>\n<search> Johann Goethe<\/search>$/);
  expect(turns[2]).toMatch(/^<think> .*Johann Goethe.*<\/think>\n<answer> Frankfurt<\/answer>$/);
});

test("thoughts vary from question to question and are the same in every run", async () => {
  const asked = Array.from({ length: 12 }, (_, id) => question({ id: `${id}` }));
  const first = async () =>
    (await taught(asked)).trajectories.map(({ segments }) => segments[1]?.text.split("</think>")[0]);
  const thoughts = await first();
  expect(new Set(thoughts).size).toBeGreaterThan(1);
  expect(await first()).toEqual(thoughts);
});

test("what cannot be shown honestly is dropped and says why", async () => {
  expect(await reasonOf(question({ goldPassages: [] }))).toBe("noGoldPassages");
  expect(await reasonOf(question({ goldPassages: ["f", "k"] }))).toBe("goldNotFound");
  expect(await reasonOf(question(), { maxSearches: 1 })).toBe("goldNotFound");
  expect(await reasonOf(question({ goldAnswers: ["Weimar"] }))).toBe("answerNotShown");
  expect(await reasonOf(question(), { maxTurnTokens: 40 })).toBe("tooLong");
  expect(await reasonOf(question({ goldAnswers: ["yes"] }))).toBeUndefined();
});

test("it asks for nothing that was cut away before it could be read", async () => {
  const long = { ...(corpus[0] as Passage), text: `${"A long story. ".repeat(20)} By Johann Goethe.` };
  const cut = scriptedRetriever((query) => (mentions(query, "Faust") ? [long] : corpus.slice(1, 2)));
  const reasons = [400, 60].map(async (maxObservationTokens) => {
    const environment = environmentOptionsSchema.parse({ prompt: "bare", k: 1, maxObservationTokens });
    const requests = [{ question: question(), group: "1", sample: 0, seed: 3 }];
    const teacher = teacherOptionsSchema.parse({ type: "goldPassages" });
    const setting = { retriever: cut, environment, tokenizer, titles };
    return (await demonstrate(requests, setting, teacher)).dropped.map(({ reason }) => reason);
  });
  expect(await Promise.all(reasons)).toEqual([[], ["goldNotFound"]]);
});

test("the rest of a batch is shown in order", async () => {
  const { trajectories, dropped } = await taught([
    question({ id: "a" }),
    question({ id: "b", goldPassages: ["x", "k"] }),
    question({ id: "c" }),
  ]);
  expect(trajectories.map((shown) => shown.question.id)).toEqual(["a", "c"]);
  expect(dropped.map(({ request }) => request.question.id)).toEqual(["b"]);
});

test("in the modes without searches it answers at once, whatever is marked", async () => {
  for (const mode of ["direct", "rag"] as const) {
    const { trajectories } = await taught([question({ goldPassages: [] })], { mode });
    expect(trajectories[0]?.segments.map(({ source }) => source)).toEqual(["prompt", "policy"]);
    expect(trajectories[0]?.segments[1]?.text).toBe("<answer> Frankfurt</answer>");
  }
  expect(await reasonOf(question(), { mode: "direct", maxTurnTokens: 5 })).toBe("tooLong");
});

test("of equal candidates the first is taken, of unequal ones the one that finds most", async () => {
  const both = scriptedRetriever((query) => (query === "Kafka" ? corpus.slice(0, 2) : corpus.slice(0, 1)));
  const asked = question({ text: "Did Kafka read Faust?" });
  const setting = { k: 2, maxSearches: 3, titles, show: () => "" };
  const plan = await findGoldPlan(asked, { ...setting, retriever: both });
  expect(Array.isArray(plan) && plan.map(({ query }) => query)).toEqual(["Kafka"]);
});

test("a retriever that fails is an error, not a dropped question", async () => {
  const failing = scriptedRetriever(() => new RetrieverError("down"));
  const requests = [{ question: question(), group: "1", sample: 0, seed: 3 }];
  const environment = environmentOptionsSchema.parse({ prompt: "bare" });
  const teacher = teacherOptionsSchema.parse({ type: "goldPassages" });
  await expect(
    demonstrate(requests, { retriever: failing, environment, tokenizer }, teacher),
  ).rejects.toThrow(RetrieverError);
});
