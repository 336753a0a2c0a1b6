import { describe, expect, test } from "vitest";
import type { Passage } from "../../corpus/passage.ts";
import type { Question } from "../../corpus/question.ts";
import { buildBm25Index } from "../../retrieval/lexical/bm25.ts";
import type { Retriever } from "../../retrieval/retriever.ts";
import { scriptedRetriever } from "../../retrieval/scripted-retriever.ts";
import type { DataPatient } from "./check.ts";
import { checkRecall } from "./data-checks.ts";
import { checkRetrieval } from "./retrieval-checks.ts";
import { overlapRanker } from "./word-overlap.ts";

const count = 40;
const passages: readonly Passage[] = Array.from({ length: count }, (_, i) => ({
  id: `p${i}`,
  title: `Town${i}`,
  text: `The mayor of this place is Person${i}, elected by the people.`,
}));
const store = { count, get: (position: number) => passages[position] as Passage };

function ask(i: number, change: Partial<Question> = {}): Question {
  return {
    id: `q${i}`,
    dataset: "towns",
    text: `Who is the mayor of Town${i}?`,
    goldAnswers: [`Person${i}`],
    goldPassages: [`p${i}`],
    ...change,
  };
}
const questions = Array.from({ length: 30 }, (_, i) => ask(i));
/** The number at the end of the town that a query names. */
const townOf = (query: string): number => Number(/\d+/.exec(query)?.[0] ?? 0);

async function examine(retriever: Retriever, asked: readonly Question[] = questions) {
  const [overlap, variety, answers] = await checkRetrieval({
    retriever,
    passages: store,
    questions: asked,
    k: 3,
  });
  return { overlap, variety, answers };
}

describe("a retriever that works", () => {
  test("passes, with numbers", async () => {
    const { overlap, variety, answers } = await examine(await buildBm25Index(passages));
    expect(overlap).toEqual({
      name: "recall against plain overlap",
      ok: true,
      detail:
        "100.0 % of the gold passages at k 3 by the text of the question; counting common words would find 100.0 % (30 questions)",
    });
    expect(variety).toMatchObject({ ok: true });
    expect(variety?.detail).toMatch(/comes for 3\.3 % of the queries, 0\.0 % find nothing/);
    expect(answers).toMatchObject({ ok: true });
    expect(answers?.detail).toMatch(/^100\.0 % of 30 questions/);
  });

  test("may return one passage for all when that is the right one", async () => {
    const same = Array.from({ length: 30 }, (_, i) =>
      ask(0, { id: `q${i}`, text: `Who is the mayor of Town0, question ${"i".repeat(i + 1)}?` }),
    );
    const { overlap, variety } = await examine(await buildBm25Index(passages), same);
    expect([overlap?.ok, variety?.ok]).toEqual([true, true]);
  });

  test("is not blamed for bad luck on few questions", async () => {
    // 7 of 12 is less than two thirds of what overlap finds, but five misses may be chance.
    const lucky = scriptedRetriever((query) => {
      const town = townOf(query);
      return [passages[town < 7 ? town : 39] as Passage];
    });
    const { overlap } = await examine(lucky, questions.slice(0, 12));
    expect(overlap).toMatchObject({ ok: true });
    expect(overlap?.detail).toContain("58.3 % of the gold passages");
  });
});

describe("a broken retriever", () => {
  test("whose passages have the ids of another edition is found out, with the ids in the advice", async () => {
    const next = passages.map((each, i) => ({ ...each, id: `p${(i + 1) % count}` }));
    const retriever = await buildBm25Index(next);
    const shifted = { count, get: (position: number) => next[position] as Passage };
    const data = { retriever, passages: shifted, evaluation: questions };
    const patient = { recipe: { environment: { k: 1 } }, data } as unknown as DataPatient;
    expect(await checkRecall(patient)).toMatchObject({
      ok: false,
      detail: "0.0 % at k 1 by the text of the question (30 questions)",
      fix: expect.stringContaining("by the ids of this corpus"),
    });
  });

  test("that returns other passages than the words point to is found out", async () => {
    const shifted = scriptedRetriever((query) => [passages[(townOf(query) + 7) % count] as Passage]);
    const { overlap, variety } = await examine(shifted);
    expect(overlap).toMatchObject({ ok: false });
    expect(overlap?.detail).toMatch(
      /^0\.0 % of the gold .* common words would find 100\.0 % \(30 questions\)$/,
    );
    expect(overlap?.fix).toContain("the index is of this corpus");
    expect(variety?.ok).toBe(true);
  });

  test("that returns the same passage for every query is found out", async () => {
    const constant = scriptedRetriever(() => passages.slice(20, 23));
    const { overlap, variety } = await examine(constant);
    expect(overlap?.ok).toBe(false);
    expect(variety).toMatchObject({ ok: false });
    expect(variety?.detail).toMatch(
      /^3 different passages in 90 places .*\(p20\) comes for 100\.0 % of the queries/,
    );
    expect(variety?.fix).toContain("hardly tells queries apart");
  });

  test("that shuffles few passages about is found out, though none is always the first", async () => {
    const big = Array.from({ length: 400 }, (_, i) => ({ ...(passages[0] as Passage), id: `p${i}` }));
    const few = scriptedRetriever((query) => {
      const start = townOf(query) % 4;
      return [...big.slice(start, 4), ...big.slice(0, start)] as Passage[];
    });
    const many = Array.from({ length: 100 }, (_, i) => ask(i));
    const [, variety] = await checkRetrieval({
      retriever: few,
      passages: { count: 400, get: (position) => big[position] as Passage },
      questions: many,
      k: 3,
    });
    expect(variety).toMatchObject({ ok: false });
    expect(variety?.detail).toMatch(/^4 different passages in 300 places .* comes for 25\.0 %/);
  });

  test("that finds nothing for most queries is found out", async () => {
    const silent = scriptedRetriever((query) =>
      townOf(query) < 10 ? [passages[townOf(query)] as Passage] : [],
    );
    const { overlap, variety } = await examine(silent);
    expect(overlap?.ok).toBe(false);
    expect(variety).toMatchObject({ ok: false, fix: expect.stringContaining("check language and analysis") });
    expect(variety?.detail).toContain("66.7 % find nothing");
  });

  test("for questions of another language is found out, with other advice", async () => {
    const foreign = questions.map((question, i) => ({ ...question, text: `ماذا يعمل ${"ب".repeat(i + 1)}` }));
    const { overlap } = await examine(
      scriptedRetriever(() => [passages[39] as Passage]),
      foreign,
    );
    expect(overlap).toMatchObject({ ok: false, fix: expect.stringContaining("of its language") });
    expect(overlap?.detail).toContain("common words would find 0.0 %");
  });
});

describe("answers in the corpus", () => {
  test("that are missing for most questions are reported with their share, an example and what to do", async () => {
    const unanswered = questions.map((each, i) => (i < 10 ? each : { ...each, goldAnswers: ["Nobody"] }));
    const { answers } = await examine(await buildBm25Index(passages), unanswered);
    expect(answers).toMatchObject({
      ok: false,
      fix: expect.stringContaining("the corpus the questions were made for"),
    });
    expect(answers?.detail).toMatch(/^33\.3 % of 30 questions .*, not towns\/q10 "Nobody"$/);
  });

  test("must be whole words, and yes and no are left out", async () => {
    const asked = [
      ...Array.from({ length: 9 }, (_, i) => ask(i)),
      ask(9, { goldAnswers: ["ers"] }),
      ask(10, { goldAnswers: ["Yes"] }),
    ];
    const { answers } = await examine(await buildBm25Index(passages), asked);
    expect(answers?.detail).toMatch(/^90\.0 % of 10 questions/);
  });

  test("may be found by the answer where the question does not lead to it", async () => {
    const byAnswer = scriptedRetriever((query) =>
      /^Person/.test(query) ? [passages[townOf(query)] as Passage] : [],
    );
    const { answers } = await examine(
      byAnswer,
      questions.map((each) => ({ ...each, goldPassages: [] })),
    );
    expect(answers).toMatchObject({ ok: true, detail: expect.stringMatching(/^100\.0 % of 30/) });
  });
});

describe("a retriever that does not show its passages", () => {
  const examineRemote = async (retriever: Retriever, asked: readonly Question[] = questions) =>
    await checkRetrieval({ retriever, questions: asked, k: 3 });
  const reason = "not measured: the retriever does not show its passages";

  test("is examined by what it returns; overlap is not measured", async () => {
    const [overlap, variety, answers] = await examineRemote(await buildBm25Index(passages));
    expect([overlap, answers]).toMatchObject([
      { name: "recall against plain overlap", ok: true, detail: reason },
      {
        name: "answers in the corpus",
        ok: true,
        detail: expect.stringMatching(/^100\.0 % of 30 questions have a gold answer in the 3 best passages/),
      },
    ]);
    expect(variety).toMatchObject({ ok: true, detail: expect.stringMatching(/\(30 queries at k 3\)/) });
  });

  test("and gives all queries the same, or few passages in turn, is found out", async () => {
    const [, constant] = await examineRemote(scriptedRetriever(() => passages.slice(20, 23)));
    expect(constant).toMatchObject({ ok: false, fix: expect.stringContaining("hardly tells queries apart") });
    const many = Array.from({ length: 100 }, (_, i) => ask(i));
    const few = scriptedRetriever((query) => [passages[townOf(query) % 2] as Passage]);
    const [, alternating] = await examineRemote(few, many);
    expect(alternating).toMatchObject({ ok: false, detail: expect.stringContaining("(50 queries at k 3)") });
  });

  test("and searches a corpus without the answers is found out, also where no question marks its gold", async () => {
    const unmarked = questions.map((each) => ({ ...each, goldPassages: [] }));
    const elsewhere = await buildBm25Index(
      passages.map((each) => ({ ...each, text: "A place by the sea." })),
    );
    const [, variety, answers] = await examineRemote(elsewhere, unmarked);
    expect(variety?.ok).toBe(true);
    expect(answers).toMatchObject({
      ok: false,
      detail: expect.stringMatching(/^0\.0 % of 30 questions/),
      fix: expect.stringContaining("the corpus the questions were made for"),
    });
    const [, , few] = await examineRemote(elsewhere, unmarked.slice(0, 5));
    expect(few).toMatchObject({ ok: true, detail: expect.stringMatching(/^not measured: 5 questions/) });
  });

  test("is measured by gold ids, which need not be known", async () => {
    const recall = async (retriever: Retriever) =>
      await checkRecall({
        recipe: { environment: { k: 3 } },
        data: { retriever, evaluation: questions },
      } as unknown as DataPatient);
    expect(await recall(await buildBm25Index(passages))).toMatchObject({
      ok: true,
      detail: "100.0 % at k 3 by the text of the question (30 questions)",
    });
    const otherIds = scriptedRetriever(() => [{ id: "elsewhere", title: "", text: "" }]);
    expect(await recall(otherIds)).toMatchObject({
      ok: false,
      detail: "0.0 % at k 3 by the text of the question (30 questions)",
      fix: expect.stringContaining("by the ids of this retriever"),
    });
  });
});

test("what cannot be measured says so and passes", async () => {
  const nothing = scriptedRetriever(() => []);
  const { overlap, variety, answers } = await examine(nothing, [ask(0, { goldAnswers: ["no"] })]);
  expect(overlap).toMatchObject({
    ok: true,
    detail: "not measured: 1 questions with gold passages in the corpus",
  });
  expect(variety).toMatchObject({ ok: true, detail: "not measured: 1 different queries, 40 passages" });
  expect(answers).toMatchObject({ ok: true, detail: expect.stringContaining("not measured") });
  const none = await examine(nothing, []);
  expect([none.overlap?.ok, none.variety?.ok, none.answers?.ok]).toEqual([true, true, true]);
});

describe("plain overlap", () => {
  const passage = (id: string, text: string): Passage => ({ id, title: "", text });

  test("counts rare words more than common ones", () => {
    const rivals = Array.from({ length: 20 }, (_, i) => passage(`r${i}`, "the city of something"));
    const rank = overlapRanker(rivals);
    const rare = passage("rare", "Ouagadougou");
    const others = [rare, passage("plain", "the city")];
    expect(rank("the Ouagadougou city", { k: 1, gold: [], others })[0]?.id).toBe("rare");
  });

  test("puts gold behind what scores as much, and leaves out what shares no word", () => {
    const rank = overlapRanker([passage("r", "one word"), passage("s", "else")]);
    const found = rank("word", { k: 3, gold: [passage("g", "word two")], others: [] });
    expect(found.map(({ id }) => id)).toEqual(["r", "g"]);
  });

  test("cuts text without spaces into pairs", () => {
    const rank = overlapRanker([passage("r", "上海是一座城市")]);
    const found = rank("北京在哪里", { k: 2, gold: [passage("g", "中国的首都北京")], others: [] });
    expect(found.map(({ id }) => id)).toEqual(["g"]);
  });
});
