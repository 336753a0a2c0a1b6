import { describe, expect, test } from "vitest";
import { type Question, questionKey } from "../corpus/question.ts";
import { environmentOptionsSchema } from "../environment/environment-options.ts";
import { searchR1Tags } from "../environment/search-r1-codec.ts";
import { ConfigError } from "../errors.ts";
import { scriptedRetriever } from "../retrieval/scripted-retriever.ts";
import { trainBytePair } from "../tokenizer/byte-pair-training.ts";
import { demonstrate, teacherActions, teacherOptionsSchema } from "./teacher.ts";
import { policyTokenCount, queries, trajectoryTokens } from "./trajectory-view.ts";

const tokenizer = trainBytePair([], { vocabularySize: 266, specialTokens: searchR1Tags });
const question = (id: number, plan: readonly string[]): Question => ({
  id: `${id}`,
  dataset: "test",
  text: "Which currency is used where Nice Airport lies?",
  goldAnswers: ["Euro", "EUR"],
  goldPassages: [],
  plan,
});
const twoHops = question(1, ["Nice Airport", "France"]);
const oneHop = question(2, ["France"]);

async function run(questions: readonly Question[], patience: number, maxSearches = 4) {
  const requests = questions.map((each) => ({
    question: each,
    group: questionKey(each),
    sample: 0,
    seed: 5,
  }));
  const retriever = scriptedRetriever((query) => [{ id: query, title: query, text: `About ${query}.` }]);
  const environment = environmentOptionsSchema.parse({ prompt: "bare", maxSearches });
  const teacher = { type: "plan", patience, redundancy: 0 } as const;
  return (await demonstrate(requests, { retriever, environment, tokenizer }, teacher)).trajectories;
}

const shown = async (each: Question, patience: number) => {
  const [trajectory] = await run([each], patience);
  return [...queries(trajectory as NonNullable<typeof trajectory>), `= ${trajectory?.answer}`];
};

describe("the teacher", () => {
  test("when patient makes every search and gives the gold answer", async () => {
    expect(await shown(twoHops, 1)).toEqual(["Nice Airport", "France", "= Euro"]);
    expect(await shown(oneHop, 1)).toEqual(["France", "= Euro"]);
  });

  test("when impatient makes one search and answers with what it has just read; one hop it does right", async () => {
    expect(await shown(twoHops, 0)).toEqual(["Nice Airport", "= France"]);
    expect(await shown(oneHop, 0)).toEqual(["France", "= Euro"]);
  });

  test("is patient as often as asked, the same way in every run", async () => {
    const questions = Array.from({ length: 300 }, (_, i) => question(i, ["a", "b"]));
    const patient = async () =>
      (await run(questions, 0.3)).map((trajectory) => trajectory.turns.length === 3);
    const first = await patient();
    expect(first.filter(Boolean).length / 300).toBeCloseTo(0.3, 1);
    expect(await patient()).toEqual(first);
  });
});

test("a demonstration is a trajectory of the real environment with the teacher's tokens as the policy's", async () => {
  const [trajectory] = await run([twoHops], 1);
  const text = trajectory?.segments.map((segment) => segment.text).join("") as string;
  expect(trajectory?.segments.map((segment) => segment.source)).toEqual([
    "prompt",
    "policy",
    "environment",
    "policy",
    "environment",
    "policy",
  ]);
  expect(trajectory?.stopReason).toBe("answer");
  expect(tokenizer.decode([...trajectoryTokens(trajectory as NonNullable<typeof trajectory>)])).toBe(text);
  const turns = ["<search> Nice Airport</search>", "<search> France</search>", "<answer> Euro</answer>"];
  expect(
    trajectory?.segments.filter((segment) => segment.source === "policy").map((segment) => segment.text),
  ).toEqual(turns);
  expect(policyTokenCount(trajectory as NonNullable<typeof trajectory>)).toBe(
    tokenizer.encode(turns.join("")).length,
  );
});

test("a question without a plan, or with more searches than allowed, is an error that names it", async () => {
  const { plan: _, ...planless } = twoHops;
  expect(() => teacherActions(planless, true)).toThrow(/test\/1 has no plan/);
  await expect(run([twoHops], 1, 1)).rejects.toThrow(ConfigError);
  await expect(run([twoHops], 1, 1)).rejects.toThrow(
    /test\/1 needs 2 searches, environment.maxSearches is 1/,
  );
  expect(await run([twoHops], 0, 1)).toHaveLength(1);
});

test("patience is a probability, small by default", () => {
  expect(teacherOptionsSchema.parse({})).toEqual({ type: "plan", redundancy: 0, patience: 0.15 });
  expect(() => teacherOptionsSchema.parse({ patience: 1.1 })).toThrow();
});
