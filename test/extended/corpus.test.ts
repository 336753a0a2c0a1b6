/**
 * Real data: 33,879 passages and seven question files beside the repository (`../shared/data`; the variable
 * FORAGER_SHARED names another folder than `../shared`). They are not part of the project; without them these
 * tests are skipped.
 */
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Passage } from "../../src/corpus/passage.ts";
import type { Question } from "../../src/corpus/question.ts";
import { readCorpus } from "../../src/corpus/read-corpus.ts";
import { readQuestions } from "../../src/corpus/read-questions.ts";
import { DataFormatError } from "../../src/errors.ts";
import { type Bm25Index, buildBm25Index, openIndex, saveIndex } from "../../src/retrieval/lexical/bm25.ts";

const shared = process.env.FORAGER_SHARED ?? join(import.meta.dirname, "../../../shared");
const data = join(shared, "data");
const isThere = existsSync(join(data, "corpus.jsonl"));
const files = ["nq", "triviaqa", "popqa", "hotpotqa", "2wikimultihopqa", "musique", "bamboogle"];

describe.skipIf(!isThere)(isThere ? "real data" : `real data (skipped: ${data} is not there)`, async () => {
  const passages: Passage[] = [];
  const questions: Question[] = [];
  let index: Bm25Index;
  if (isThere) {
    for await (const passage of readCorpus(join(data, "corpus.jsonl"))) passages.push(passage);
    for (const file of files) questions.push(...(await readQuestions(join(data, `${file}.jsonl`))));
    index = await buildBm25Index(passages);
  }

  test("reads every passage, with quotes in titles kept", () => {
    expect(passages).toHaveLength(33_879);
    expect(passages.map(({ id }) => Number(id))).toEqual(passages.map((_, line) => line));
    for (const { title, text } of passages) expect(title.length > 0 && text.length > 0).toBe(true);
    expect(passages.some(({ title }) => title.startsWith('"Uncle Tom'))).toBe(true);
  });

  test("reads seven question files with gold answers, supporting passages and metadata", () => {
    expect(new Set(questions.map(({ dataset }) => dataset))).toEqual(new Set(files));
    expect(questions.length).toBeGreaterThan(700);
    const ids = new Set(passages.map(({ id }) => id));
    for (const { goldPassages, extra } of questions) {
      for (const id of goldPassages) expect(ids.has(id)).toBe(true);
      expect(extra).toHaveProperty("metadata");
    }
  });

  test("finds the evidence as well as the prototype that was measured (59.9 % of 773 questions)", async () => {
    const withGold = questions.filter(({ goldPassages }) => goldPassages.length > 0);
    const answers = await index.retrieve(
      withGold.map(({ text }) => text),
      5,
    );
    const recalls = withGold.map(({ goldPassages }, i) => {
      const found = new Set(answers[i]?.map(({ passage }) => passage.id));
      return goldPassages.filter((id) => found.has(id)).length / goldPassages.length;
    });
    expect(recalls.reduce((sum, recall) => sum + recall, 0) / recalls.length).toBeGreaterThanOrEqual(0.57);
  });

  test("the index in a folder answers alike", async () => {
    const folder = await mkdtemp(join(tmpdir(), "forager-real-"));
    try {
      await saveIndex(index, join(folder, "index"));
      const opened = await openIndex(join(folder, "index"), { corpusHash: index.identity.corpusHash });
      const texts = questions.map(({ text }) => text);
      expect(await opened.retrieve(texts, 10)).toEqual(await index.retrieve(texts, 10));
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });

  test("reads the example corpus of Search-R1, and says what is wrong with broken files", async () => {
    const titles: string[] = [];
    for await (const { title } of readCorpus(join(data, "wild/search_r1_example/corpus.jsonl")))
      titles.push(title);
    expect(titles[0]).toBe("Evan Morris");
    const broken = readCorpus(join(data, "wild/broken_json/contents_missing.json"));
    await expect(broken.next()).rejects.toThrow(DataFormatError);
  });
});
