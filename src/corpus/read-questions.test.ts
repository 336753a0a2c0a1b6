import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { DataFormatError, FileError } from "../errors.ts";
import type { Question } from "./question.ts";
import { readQuestions, writeQuestions } from "./read-questions.ts";
import { makeWorld } from "./world.ts";

let folder: string;
let path: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "forager-questions-"));
  path = join(folder, "nq.jsonl");
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function read(content: string, dataset?: string): Promise<Question[]> {
  await writeFile(path, content);
  return readQuestions(path, dataset === undefined ? {} : { dataset });
}

describe("readQuestions", () => {
  test("reads the FlashRAG form and keeps what it does not know", async () => {
    const record = {
      id: "q1",
      question: "who ?",
      golden_answers: ["a", "b"],
      supporting: ["7", 8],
      metadata: { type: "bridge" },
    };
    expect(await read(JSON.stringify(record))).toEqual([
      {
        id: "q1",
        dataset: "nq",
        text: "who ?",
        goldAnswers: ["a", "b"],
        goldPassages: ["7", "8"],
        extra: { metadata: { type: "bridge" } },
      },
    ]);
  });

  test.each(['"answer":"a"', '"answer":["a"]', '"answers":["a"]', '"golden_answers":"a"'])(
    "takes gold answers from %s",
    async (answers) => {
      expect(await read(`{"id":1,"question":"q",${answers}}`)).toEqual([
        { id: "1", dataset: "nq", text: "q", goldAnswers: ["a"], goldPassages: [] },
      ]);
    },
  );

  test("keeps an answer beside golden_answers as an unknown key", async () => {
    const [question] = await read('{"id":1,"question":"q","golden_answers":["a"],"answer":"b"}');
    expect(question).toMatchObject({ goldAnswers: ["a"], extra: { answer: "b" } });
  });

  test("numbers records without an id by their line", async () => {
    const questions = await read('{"question":"q","answer":"a"}\n\n{"question":"r","answer":"b"}');
    expect(questions.map(({ id }) => id)).toEqual(["1", "3"]);
  });

  test("takes the data set from the caller, else the record, else the file", async () => {
    const lines =
      '{"id":1,"question":"q","answer":"a","data_source":"popqa"}\n{"id":2,"question":"q","answer":"a"}';
    expect((await read(lines)).map(({ dataset }) => dataset)).toEqual(["popqa", "nq"]);
    expect((await read(lines, "mine")).map(({ dataset }) => dataset)).toEqual(["mine", "mine"]);
  });

  test.each([
    ["no question", '{"id":2,"answer":"a"}', /expected "question", a text that is not empty, got nothing/],
    ["an empty question", '{"id":2,"question":" ","answer":"a"}', /expected "question".*got an empty text/],
    [
      "no gold answer",
      '{"id":2,"question":"q"}',
      /expected "golden_answers", at least one text.*got nothing/,
    ],
    [
      "an empty list of gold answers",
      '{"id":2,"question":"q","golden_answers":[]}',
      /expected "golden_answers".*got an empty list/,
    ],
    [
      "an empty gold answer",
      '{"id":2,"question":"q","golden_answers":["a",""]}',
      /expected "golden_answers"/,
    ],
    [
      "gold answers that are numbers",
      '{"id":2,"question":"q","golden_answers":[7]}',
      /expected "golden_answers"/,
    ],
    [
      "supporting that is no list",
      '{"id":2,"question":"q","answer":"a","supporting":"7"}',
      /expected "supporting", a list of passage ids/,
    ],
    [
      "hops that are no count",
      '{"id":2,"question":"q","answer":"a","hops":0}',
      /expected "hops", an integer of at least 1, got the number 0/,
    ],
    [
      "a plan that is no list",
      '{"id":2,"question":"q","answer":"a","plan":"x"}',
      /expected "plan", a list of queries/,
    ],
    [
      "an id seen before",
      '{"id":"1","question":"q","answer":"a"}',
      /expected ids without repeats, got "1" of line 1 again/,
    ],
    ["what is no JSON", "question,answer", /expected one JSON object on the line/],
  ])("names file and line of %s", async (_, line, message) => {
    const reading = read(`{"id":1,"question":"q","answer":"a"}\n${line}`);
    await expect(reading).rejects.toThrow(DataFormatError);
    await expect(reading).rejects.toThrow(message);
    await expect(reading).rejects.toMatchObject({ file: path, line: 2 });
  });

  test("equal ids of two data sets are two questions", async () => {
    const of = (source: string) => `{"id":1,"question":"q","answer":"a","data_source":"${source}"}`;
    expect(await read(`${of("nq")}\n${of("popqa")}`)).toHaveLength(2);
  });

  test("refuses an empty file and a missing one", async () => {
    await expect(read("")).rejects.toThrow(/expected questions, .*got none/);
    await expect(readQuestions(join(folder, "absent.jsonl"))).rejects.toThrow(FileError);
  });
});

test("the questions of a world come back as they were written", async () => {
  const { questions } = await makeWorld({ name: "atlas", hops: [1, 2, 3] });
  const all = [
    ...questions.test,
    { ...(questions.test[0] as Question), id: "with extra", extra: { note: [1] } },
  ];
  await writeQuestions(path, all);
  expect(await readQuestions(path)).toEqual(all);
});

describe("other files of questions", () => {
  const golden = join(import.meta.dirname, "../../test/golden/corpus");

  test.each(["search-r1", "search-r1-prompt-only"])(
    "are read from Parquet of Search-R1: %s",
    async (name) => {
      const questions = await readQuestions(join(golden, `${name}.parquet`));
      expect(questions.map(({ dataset, text, goldAnswers }) => ({ dataset, text, goldAnswers }))).toEqual([
        { dataset: "nq", text: "who wrote it?", goldAnswers: ["Ann", "Ann B."] },
        { dataset: "hotpotqa", text: "where?", goldAnswers: ["here"] },
      ]);
      expect(questions[0]?.extra).toMatchObject({
        ability: "fact-reasoning",
        extra_info: { index: 0, split: "train" },
      });
    },
  );

  test.each([
    [
      "with a header",
      "questions.csv",
      'Question,Answer,level\n"who, then?","[""a"",""b""]",easy\nwhere?,here,\n',
    ],
    [
      "compressed",
      "questions.jsonl.gz",
      gzipSync('{"question":"who, then?","answer":["a","b"]}\n{"question":"where?","answer":"here"}'),
    ],
  ])("are read from tables and archives: %s", async (_, name, content) => {
    await writeFile(join(folder, name), content);
    const questions = await readQuestions(join(folder, name));
    expect(questions.map(({ dataset, text, goldAnswers }) => [dataset, text, goldAnswers])).toEqual([
      ["questions", "who, then?", ["a", "b"]],
      ["questions", "where?", ["here"]],
    ]);
  });

  test("are read from the column question where there is a text beside it", async () => {
    const file = join(folder, "beside.csv");
    await writeFile(file, "question,text,answer\nwho?,a passage,ada\n");
    expect((await readQuestions(file)).map(({ text }) => text)).toEqual(["who?"]);
  });

  test("may have two columns of one name, but not of a name that is read", async () => {
    const file = join(folder, "twice.csv");
    await writeFile(file, "question,answer,note,note\nwho?,ada,x,y\n");
    expect((await readQuestions(file)).map(({ goldAnswers }) => goldAnswers)).toEqual([["ada"]]);
    await writeFile(file, "question,answer,answer\nwho?,ada,bob\n");
    await expect(readQuestions(file)).rejects.toThrow(/twice\.csv:1: .*got "answer" twice/);
  });

  test("are read from CSV without a header, as Bamboogle is", async () => {
    const file = join(folder, "bamboogle.csv");
    await writeFile(file, '"Who, if any?",,,,ada,,\r\n"Where, ""x""?",,,,[sic] there,,\r\n');
    expect(await readQuestions(file)).toEqual([
      { id: "1", dataset: "bamboogle", text: "Who, if any?", goldAnswers: ["ada"], goldPassages: [] },
      { id: "2", dataset: "bamboogle", text: 'Where, "x"?', goldAnswers: ["[sic] there"], goldPassages: [] },
    ]);
  });

  test("that have neither header nor answers are refused", async () => {
    const file = join(folder, "a.csv");
    await writeFile(file, "a,b,c\n");
    await expect(readQuestions(file)).rejects.toThrow(
      /a\.csv:1: expected a header with columns "question" and "answer"/,
    );
  });
});
