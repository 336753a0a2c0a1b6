/**
 * Small real files as users have them (`../shared/data/wild`; the variable FORAGER_SHARED names another folder than
 * `../shared`): each gives the right passages or one clear line. Skipped where they are absent.
 */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type CorpusReport, newCorpusReport } from "../../src/corpus/corpus-report.ts";
import type { Passage } from "../../src/corpus/passage.ts";
import { type ReadCorporaOptions, readCorpora } from "../../src/corpus/read-corpora.ts";
import { readQueries } from "../../src/corpus/read-queries.ts";
import { readQuestions } from "../../src/corpus/read-questions.ts";
import { DataFormatError } from "../../src/errors.ts";

const shared = process.env.FORAGER_SHARED ?? join(import.meta.dirname, "../../../shared");
const wild = join(shared, "data/wild");
const isThere = existsSync(wild);

async function read(
  name: string,
  options: ReadCorporaOptions = {},
): Promise<{ passages: Passage[]; report: CorpusReport }> {
  const report = newCorpusReport();
  const passages: Passage[] = [];
  for await (const passage of readCorpora([join(wild, name)], { strict: false, report, ...options }))
    passages.push(passage);
  return { passages, report };
}

describe.skipIf(!isThere)(isThere ? "wild files" : `wild files (skipped: ${wild} is not there)`, () => {
  test.each(["arcd_beir", "arcd_beir/corpus.jsonl"])(
    "%s: 255 Arabic documents, 27 with a title key that is empty",
    async (name) => {
      const { passages, report } = await read(name);
      expect(passages).toHaveLength(255);
      expect(new Set(passages.map(({ id }) => id)).size).toBe(255);
      expect(passages.filter(({ title, extra }) => title !== "" || extra !== undefined)).toEqual([]);
      expect(passages[0]?.id).toBe("arcd-doc0");
      expect(report).toMatchObject({ badLines: 0, duplicateIds: 0, emptyPassages: 0, skippedFiles: 0 });
    },
  );

  test("arcd_beir/queries.jsonl: 50 queries, escapes resolved", async () => {
    const queries = await readQueries(join(wild, "arcd_beir/queries.jsonl"));
    expect(queries).toHaveLength(50);
    expect(queries[0]).toEqual({ id: "arcd-q6", text: "من هو عبد المطلب بن هاشم؟" });
  });

  test("nfcorpus_sample: two documents", async () => {
    const { passages } = await read("nfcorpus_sample");
    expect(passages.map(({ id }) => id)).toEqual(["MED-10", "MED-14"]);
    expect(passages[0]?.title).toBe(
      "Statin Use and Breast Cancer Survival: A Nationwide Cohort Study from Finland",
    );
    for (const { text, extra } of passages) expect(text.length > 500 && extra !== undefined).toBe(true);
  });

  test("search_r1_example: ten passages with titles", async () => {
    const { passages, report } = await read("search_r1_example/corpus.jsonl");
    expect(passages.map(({ id }) => id)).toEqual(["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]);
    expect(passages[0]?.title).toBe("Evan Morris");
    expect(passages.every(({ title, text }) => title !== "" && !title.startsWith('"') && text !== "")).toBe(
      true,
    );
    expect(report.problems).toEqual([]);
  });

  test("kilt_tsv_bom_crlf: a hundred rows, title and text apart, Cyrillic kept", async () => {
    const { passages, report } = await read("kilt_tsv_bom_crlf/train_np_title_abs_sample_100.tsv");
    expect(passages.map(({ id }) => id)).toEqual(Array.from({ length: 100 }, (_, i) => String(i)));
    expect(passages[0]?.title).toBe("Professional Football League of Ukraine");
    expect(passages[0]?.text).toMatch(
      /^Professional Football League of Ukraine \(Ukrainian: "Професіональна/,
    );
    expect(passages.filter(({ title, text }) => title === "" || /\r|\ufeff/.test(text))).toEqual([]);
    expect(report).toMatchObject({ badLines: 0, duplicateIds: 0 });
  });

  test("csv_encodings: other bytes than UTF-8 are named with their line and what to do", async () => {
    for (const [name, line] of [
      ["CSV-basic-ISO-8859-1.CRLF.csv", 4],
      ["CSV-basic-ISO-8859-1.LF.csv", 4],
      ["instruction_definition.cp1252.csv", 9],
    ] as const) {
      const reading = read(`csv_encodings/${name}`);
      await expect(reading).rejects.toThrow(
        /expected UTF-8 text, got other bytes; .*--encoding windows-1252/,
      );
      await expect(reading).rejects.toMatchObject({ line });
    }
  });

  test("csv_encodings: declared, they are read, given the names of their columns", async () => {
    const { passages } = await read("csv_encodings/instruction_definition.cp1252.csv", {
      encoding: "windows-1252",
      columns: { id: "instruction_label", title: "instruction_name", text: "definition" },
    });
    expect(passages).toHaveLength(26);
    expect(passages[0]).toEqual({
      id: "stylistic:tone_formality",
      title: "Formal Tone",
      text: "The overall tone of the response must match the specified tone level.",
      extra: { instruction_type: "non-relational" },
    });
    expect(passages.some(({ text }) => /[\u2018-\u201d\u2013\u2026]/.test(text))).toBe(true);
    for (const name of ["CSV-basic-ISO-8859-1.CRLF.csv", "CSV-basic-ISO-8859-1.LF.csv"]) {
      const people = await read(`csv_encodings/${name}`, {
        encoding: "windows-1252",
        columns: { text: "first_name" },
      });
      expect(people.passages.map(({ text, extra }) => [text, extra])).toEqual([
        ["John", { last_name: "Smith", age: "37" }],
        ["Jean", { last_name: "Christophe", age: "33" }],
        ["Hélène", { last_name: "Mahé", age: "42" }],
      ]);
    }
  });

  test("bamboogle_csv: 125 questions with their answers", async () => {
    const questions = await readQuestions(join(wild, "bamboogle_csv/bamboogle.csv"));
    expect(questions).toHaveLength(125);
    expect(questions[0]).toEqual({
      id: "1",
      dataset: "bamboogle",
      text: "Who was president of the United States in the year that Citibank was founded?",
      goldAnswers: ["james madison"],
      goldPassages: [],
    });
    expect(questions.some(({ text }) => text.includes(","))).toBe(true);
  });

  test.each([
    [
      "broken_json/contents_missing.json",
      /contents_missing\.json:2: expected "contents" or "text".*\(keys: "id"\)/,
    ],
    ["broken_json/id_missing.json", /id_missing\.json:2: expected "id", a text or a number, got nothing/],
    ["bamboogle_csv/bamboogle.csv", /bamboogle\.csv:1: expected a header with a column "text"/],
    ["arcd_beir/qrels/test.tsv", /test\.tsv:1: .*got 3 columns \(query-id, corpus-id, score\)/],
    ["nfcorpus_sample/nfcorpus-qrels.tsv", /nfcorpus-qrels\.tsv:1: .*got 4 columns/],
  ])("%s is no corpus, and one line says why", async (name, message) => {
    for (const strict of [true, false]) {
      const reading = read(name, { strict });
      await expect(reading).rejects.toThrow(DataFormatError);
      await expect(reading).rejects.toThrow(message);
      await expect(reading).rejects.toThrow(/^[^\n]*$/);
    }
  });

  test("every file is covered here", () => {
    const files = readdirSync(wild, { recursive: true, withFileTypes: true }).filter((entry) =>
      entry.isFile(),
    );
    expect(files).toHaveLength(13);
  });
});
