import { describe, expect, test } from "vitest";
import type { Question } from "../../corpus/question.ts";
import { UsageError } from "../../errors.ts";
import {
  answerCutoff,
  answerRecall,
  containsAnswer,
  qrelsOfQuestions,
  searchableText,
} from "./answer-recall.ts";
import type { Run } from "./ranking.ts";

const question = (
  id: string,
  goldAnswers: readonly string[],
  goldPassages: readonly string[] = [],
): Question => ({
  id,
  dataset: "test",
  text: `question ${id}`,
  goldAnswers,
  goldPassages,
});
const passages = new Map(
  Object.entries({
    p1: { title: "Paris", text: "The capital of France." },
    p2: { title: "Party", text: "It began in 1,984 B.C. and, no doubt, went on." },
    p3: { title: "北京", text: "北京是中华人民共和国的首都。" },
  }),
);
const runOf = (table: Readonly<Record<string, readonly string[]>>): Run =>
  new Map(Object.entries(table).map(([query, ids]) => [query, ids.map((id, i) => ({ id, score: -i }))]));
const options = { metrics: ["answer@1", "answer@2"], passageOf: (id: string) => passages.get(id), seed: 1 };

describe("an answer stands in a text", () => {
  test.each<[string, string, boolean]>([
    ["whole words, in another case and with other punctuation", "capital of France", true],
    ["the title counts", "paris", true],
    ["over the end of the title", "Paris the capital", true],
    ["articles do not count", "an capital", true],
    ["a part of a word does not", "cap", false],
    ["the end of a word does not", "rance", false],
    ["an answer without letters stands nowhere", "the !", false],
  ])("%s", (_name, answer, isThere) => {
    expect(
      containsAnswer(searchableText(passages.get("p1") as { title: string; text: string }), [answer]),
    ).toBe(isThere);
  });

  test("after a first place that is only a part of a word", () => {
    expect(containsAnswer("partying at party", ["party"])).toBe(true);
  });

  test("without spaces where the script has none", () => {
    expect(containsAnswer("北京是中华人民共和国的首都。", ["中华人民共和国"])).toBe(true);
    expect(containsAnswer("กรุงเทพเป็นเมืองหลวง", ["เมืองหลวง"])).toBe(true);
  });
});

describe("answer recall", () => {
  test("counts questions, leaves yes and no out, and counts missing results 0", () => {
    const questions = [
      question("q1", ["France"]),
      question("q2", ["no"]),
      question("q3", ["1984 bc", "x"]),
      question("q4", ["y"]),
    ];
    const score = answerRecall(
      runOf({ q1: ["p2", "p1"], q2: ["p2"], q3: ["p2"], gone: ["p1"] }),
      questions,
      options,
    );
    expect(score.queries).toEqual([
      { id: "q1", values: { "answer@1": 0, "answer@2": 1 } },
      { id: "q3", values: { "answer@1": 1, "answer@2": 1 } },
      { id: "q4", values: { "answer@1": 0, "answer@2": 0 } },
    ]);
    expect(score.means["answer@2"]).toMatchObject({ n: 3, mean: 2 / 3 });
    expect(score).toMatchObject({ withoutResults: 1, withoutJudgement: 1 });
    const retrieved = answerRecall(runOf({ q1: ["p1"] }), questions, { ...options, averaging: "retrieved" });
    expect(retrieved.means["answer@1"]).toMatchObject({ n: 1, mean: 1 });
  });

  test("refuses a passage that is not there, ids of other questions, and an id twice", () => {
    expect(() => answerRecall(runOf({ q1: ["p9"] }), [question("q1", ["x"])], options)).toThrow(
      /passage "p9" of the run is not in the index/,
    );
    expect(() => answerRecall(runOf({ z: ["p1"] }), [question("q1", ["x"])], options)).toThrow(
      /no query in common/,
    );
    expect(() => answerRecall(new Map(), [question("q1", ["x"]), question("q1", ["y"])], options)).toThrow(
      UsageError,
    );
  });
});

test("gold passages of questions are judgements; questions that mark none are left out", () => {
  const questions = [question("q1", ["x"], ["a", "b"]), question("q2", ["y"])];
  expect([...qrelsOfQuestions(questions)]).toEqual([
    [
      "q1",
      new Map([
        ["a", 1],
        ["b", 1],
      ]),
    ],
  ]);
});

test("answer@k is a metric of answers, other names are not", () => {
  expect(["answer@5", "Answer@20", "answer", "answer@0", "recall@5"].map(answerCutoff)).toEqual([
    5,
    20,
    undefined,
    undefined,
    undefined,
  ]);
});
