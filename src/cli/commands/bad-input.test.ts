/** Bad input to a training over files: one clear line, a non-zero exit, and what was there is left as it was. */
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { runForTest } from "../../../test/run-cli.ts";

let folder: string;
const at = (name: string): string => join(folder, name);
const lines = (...records: readonly object[]): string =>
  records.map((record) => `${JSON.stringify(record)}\n`).join("");

const corpus = lines(
  { id: "fr", title: "France", text: "The capital of France is Paris." },
  { id: "it", title: "Italy", text: "The capital of Italy is Rome." },
  { id: "es", title: "Spain", text: "The capital of Spain is Madrid." },
);
const train = lines(
  { id: "1", question: "What is the capital of France?", golden_answers: ["Paris"], supporting: ["fr"] },
  { id: "2", question: "What is the capital of Italy?", golden_answers: ["Rome"] },
);
const heldOut = lines({
  id: "3",
  question: "What is the capital of Spain?",
  golden_answers: ["Madrid"],
  supporting: ["es"],
});
const recipe = `name: mine
data:
  type: files
  corpus: corpus.jsonl
  questions: { train: train.jsonl, evaluation: held-out.jsonl }
environment: { codec: compact, prompt: bare, passageTemplate: text, maxSearches: 1, maxTurnTokens: 12, maxObservationTokens: 60 }
model:
  { type: fresh, layers: 1, width: 16, heads: 2, keyValueHeads: 2, feedForward: 32, contextLength: 128, vocabularySize: 290 }
engine: { type: embedded, threads: 1 }
stages:
  - type: reinforcement
    name: grpo
    steps: 1
    questionsPerStep: 2
    schedule: { learningRate: 0.001 }
    algorithm: { groupSize: 2 }
`;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "forager-bad-"));
  await writeFile(at("corpus.jsonl"), corpus);
  await writeFile(at("other.jsonl"), corpus.replace("Rome", "Roma"));
  await writeFile(at("train.jsonl"), train);
  await writeFile(at("held-out.jsonl"), heldOut);
  await writeFile(at("mine.yaml"), recipe);
  await runForTest("index", at("other.jsonl"), "--out", at("other-index"));
  await mkdir(at("empty"));
  await runForTest("index", at("corpus.jsonl"), "--out", at("index"));
});
afterAll(() => rm(folder, { recursive: true }));

/** A file beside the recipe, and the override that makes the recipe use it. */
interface Case {
  readonly file?: readonly [name: string, text: string];
  readonly set: string;
  readonly message: RegExp;
  readonly code?: number;
}

const cases: Readonly<Record<string, Case>> = {
  "a corpus that is missing": { set: "data.corpus=no.jsonl", message: /no\.jsonl: no such file/ },
  "a corpus that is a folder without passages": {
    set: "data.corpus=empty",
    message: /empty: expected a folder with corpus\.jsonl/,
  },
  "a malformed corpus": {
    file: ["bad-corpus.jsonl", `${corpus}{"id": 4\n`],
    set: "data.corpus=bad-corpus.jsonl",
    message: /bad-corpus\.jsonl:4: expected one JSON object/,
  },
  "questions that are missing": { set: "data.questions.train=no.jsonl", message: /no\.jsonl: no such file/ },
  "malformed questions": {
    file: ["bad-questions.jsonl", `${train}{"id":"9","golden_answers":["x"]}\n`],
    set: "data.questions.train=bad-questions.jsonl",
    message: /bad-questions\.jsonl:3: expected "question"/,
  },
  "gold answers that are empty": {
    file: ["no-gold.jsonl", lines({ id: "1", question: "Why?", golden_answers: [] })],
    set: "data.questions.train=no-gold.jsonl",
    message: /no-gold\.jsonl:1: expected "golden_answers"/,
  },
  "a held-out question that is trained on": {
    set: "data.questions.evaluation=train.jsonl",
    message: /is also asked in training/,
    code: 2,
  },
  "a question longer than the context": {
    file: ["long.jsonl", lines({ id: "1", question: "why ".repeat(200), golden_answers: ["x"] })],
    set: "data.questions.train=long.jsonl",
    message: /question long\/1 is too long: its prompt has \d+ tokens/,
    code: 2,
  },
  "an index of another corpus": {
    set: "retriever={type: index, path: other-index}",
    message: /other-index is the index of another corpus/,
  },
  "a path that is no index": {
    set: "retriever={type: index, path: train.jsonl}",
    message: /cannot read the index/,
  },
  "an unknown key": {
    set: "data.qestions=x",
    message: /--set data\.qestions=x: unknown key "data\.qestions"; did you mean "questions"\?/,
    code: 2,
  },
  "a model that is missing": {
    set: "model=no-model",
    message: /there is no model at .*no-model/,
  },
  "a model folder that holds none": {
    set: "model={type: pretrained, source: index}",
    message: /index.*config\.json/,
  },
};

/** Paths of overrides are relative to the current folder, which a test must not change; they are made absolute. */
function absolute(set: string): string {
  return set.replace(
    /(=|path: |source: )([\w.-]+)(\}?)$/,
    (_, before: string, path: string, after: string) => `${before}${path === "x" ? path : at(path)}${after}`,
  );
}

describe("train", () => {
  test.each(Object.entries(cases))("%s", async (_name, { file, set, message, code = 1 }) => {
    if (file !== undefined) await writeFile(at(file[0]), file[1]);
    const before = await readdir(folder);
    const result = await runForTest(
      "train",
      at("mine.yaml"),
      "--out",
      at("run"),
      "--set",
      absolute(set),
      "--json",
    );
    const [errorLine, ...more] = result.stderr
      .trim()
      .split("\n")
      .filter((line) => !line.startsWith("reading the data"));
    expect(errorLine).toMatch(/^forager: /);
    expect(errorLine).toMatch(message);
    expect(more).toEqual([]);
    expect(result.code).toBe(code);
    expect(result.json).toMatchObject({ error: { message: expect.stringMatching(message) } });
    expect(await readdir(folder)).toEqual(before);
  });

  test("a folder that cannot be written is refused before the data are read", async () => {
    const { code, stderr } = await runForTest("train", at("mine.yaml"), "--out", at("mine.yaml/run"));
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /^forager: cannot write .*mine\.yaml\/run: .*mine\.yaml is a file, not a folder; choose another place\n$/,
    );
  });

  test("the same recipe without a mistake trains, with and without an index", async () => {
    expect(await runForTest("train", at("mine.yaml"), "--out", at("good"), "--json")).toMatchObject({
      code: 0,
      json: { after: { n: 1 } },
    });
    const index = `retriever={type: index, path: ${at("index")}}`;
    const line = ["train", at("mine.yaml"), "--out", at("indexed"), "--set", index];
    expect(await runForTest(...line)).toMatchObject({ code: 0 });
  });
});

describe("doctor", () => {
  test("finds nothing wrong with a good recipe and says what it measured", async () => {
    const { code, json, stdout } = await runForTest("doctor", at("mine.yaml"), "--out", at("run"), "--json");
    expect(code).toBe(0);
    expect(stdout.trim().split("\n")).toHaveLength(1);
    const { ok, checks } = json as { ok: boolean; checks: { name: string; ok: boolean; detail: string }[] };
    expect(ok).toBe(true);
    expect(checks.map(({ name }) => name)).toEqual([
      "recipe",
      "data",
      "questions",
      "recall of gold passages",
      "recall against plain overlap",
      "different passages for different queries",
      "answers in the corpus",
      "model",
      "tags and stop strings",
      "context",
      "reward",
      "memory",
      "time",
      "folder",
    ]);
    for (const check of checks)
      expect(check).toMatchObject({ ok: true, detail: expect.stringMatching(/\w/) });
  });

  test.each(Object.entries(cases))(
    "%s is a failed check, not a failure of the doctor",
    async (_name, { file, set, message }) => {
      if (file !== undefined) await writeFile(at(file[0]), file[1]);
      const { code, json, stderr } = await runForTest(
        "doctor",
        at("mine.yaml"),
        "--set",
        absolute(set),
        "--json",
      );
      expect([code, stderr]).toEqual([1, ""]);
      const { ok, checks } = json as { ok: boolean; checks: { ok: boolean; detail: string }[] };
      expect(ok).toBe(false);
      const failed = checks.filter((check) => !check.ok);
      expect(failed).toHaveLength(1);
      expect(failed[0]?.detail).toMatch(
        message.source.includes("too long") ? /the longest prompt has \d+ tokens/ : message,
      );
    },
  );

  test("sees gold passages that are not in the corpus, and answers that are nowhere", async () => {
    await writeFile(
      at("lost.jsonl"),
      lines(
        { id: "1", question: "Who?", golden_answers: ["Zorro"], supporting: ["zz"] },
        { id: "2", question: "And who?", golden_answers: ["Batman"] },
      ),
    );
    const set = `data.questions.evaluation=${at("lost.jsonl")}`;
    const { json, stdout } = await runForTest("doctor", at("mine.yaml"), "--set", set, "--json");
    const { checks } = json as { checks: { name: string; ok: boolean; detail: string; fix?: string }[] };
    expect(checks.filter(({ ok }) => !ok).map(({ name }) => name)).toEqual([
      "recall of gold passages",
      "answers in the corpus",
    ]);
    expect(stdout).toContain("marks a gold passage that is not in the corpus");
  });

  test("sees a teacher whose turns do not fit, before a training stops in its first step", async () => {
    const stage =
      "  - { type: supervised, name: warm-up, steps: 1, batchSize: 2, teacher: { type: goldPassages }, schedule: { learningRate: 0.01 } }\n";
    await writeFile(at("taught.yaml"), recipe.replace("stages:\n", `stages:\n${stage}`));
    const examine = async (...set: string[]) => {
      const { json } = await runForTest("doctor", at("taught.yaml"), ...set, "--json");
      const { checks } = json as { checks: { name: string; ok: boolean; detail: string; fix?: string }[] };
      return checks.find(({ name }) => name === "demonstrations");
    };
    expect(await examine()).toEqual({
      name: "demonstrations",
      ok: false,
      detail: "the teacher of warm-up shows 0 of 2 questions (left out: noGoldPassages 1, tooLong 1)",
      fix: expect.stringContaining("raise environment.maxTurnTokens"),
    });
    expect(
      await examine("--set", "environment.maxTurnTokens=60", "--set", "model.contextLength=256"),
    ).toEqual({
      name: "demonstrations",
      ok: true,
      detail: "the teacher of warm-up shows 1 of 2 questions (left out: noGoldPassages 1)",
    });
  });

  test("measures a retriever that does not show its passages, and shows its failure", async () => {
    const examine = async (name: string, query: string) => {
      const search = ["search", at("index"), query, "-k", "10", "--record", at(name)];
      expect(await runForTest(...search)).toMatchObject({ code: 0 });
      const set = `retriever={type: replay, file: ${at(name)}}`;
      const { json } = await runForTest("doctor", at("mine.yaml"), "--set", set, "--json");
      return (json as { checks: { name: string; ok: boolean; detail: string }[] }).checks;
    };
    const known = await examine("known.jsonl", "What is the capital of Spain?");
    expect(known.filter(({ ok }) => !ok)).toEqual([]);
    expect(known).toContainEqual(
      expect.objectContaining({
        name: "recall of gold passages",
        detail: expect.stringMatching(/^100\.0 %/),
      }),
    );
    expect(known.find(({ name }) => name === "answers in the corpus")?.detail).toContain("not measured");
    const unknown = await examine("unknown.jsonl", "another question");
    expect(unknown.filter(({ ok }) => !ok)).toMatchObject([
      { name: "retrieval", detail: expect.stringContaining("What is the capital of Spain?") },
    ]);
  });

  test("shows people what fails and how to fix it", async () => {
    const { code, stdout } = await runForTest("doctor", at("mine.yaml"), "--out", at("mine.yaml/run"));
    expect(code).toBe(1);
    expect(stdout).toContain("FAIL folder:");
    expect(stdout).toContain("fix: choose another folder for runs");
    expect(stdout).toContain("something needs fixing");
  });
});
