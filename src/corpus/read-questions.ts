/**
 * Questions on disk: JSON Lines as FlashRAG and Search-R1 have them, `{"id","question","golden_answers"}`; also
 * `answers` or `answer` in place of `golden_answers`, `supporting` (ids of the passages with the evidence),
 * `hops`, `kind`, `plan` and `data_source`. Other keys are kept. Parquet is not read.
 */
import { basename } from "node:path";
import { DataFormatError } from "../errors.ts";
import { writeFileAtomic } from "../shared/files.ts";
import { describeValue, type JsonRecord, readJsonLines } from "./json-lines.ts";
import type { Question } from "./question.ts";
import { idOf } from "./read-corpus.ts";

export interface ReadQuestionsOptions {
  /** The data set of all questions; without it each record's `data_source`, else the name of the file without ending. */
  readonly dataset?: string;
}

/**
 * The questions of a JSONL file in order; a record without `id` gets the number of its line. Throws
 * `DataFormatError` (file, line) for a record that is no question, has no gold answer or repeats an id, and for a
 * file without questions; `FileError` when it cannot be read.
 */
export async function readQuestions(path: string, options: ReadQuestionsOptions = {}): Promise<Question[]> {
  const questions: Question[] = [];
  const lineOf = new Map<string, number>();
  for await (const entry of readJsonLines(path)) {
    if ("error" in entry) throw entry.error;
    const question = questionOf(entry.record, { path, line: entry.line, dataset: options.dataset });
    const key = JSON.stringify([question.dataset, question.id]);
    const first = lineOf.get(key);
    if (first !== undefined)
      throw new DataFormatError(
        path,
        entry.line,
        `expected ids without repeats, got ${JSON.stringify(question.id)} of line ${first} again`,
      );
    lineOf.set(key, entry.line);
    questions.push(question);
  }
  if (questions.length === 0)
    throw new DataFormatError(
      path,
      undefined,
      'expected questions, one JSON object a line such as {"id":"1","question":"…","golden_answers":["…"]}, got none',
    );
  return questions;
}

/** Writes questions so that `readQuestions` gives back equal ones. Throws `FileError`. */
export async function writeQuestions(path: string, questions: Iterable<Question>): Promise<void> {
  const lines = Array.from(questions, (question) => `${JSON.stringify(recordOf(question))}\n`);
  await writeFileAtomic(path, lines.join(""));
}

function recordOf({
  id,
  dataset,
  text,
  goldAnswers,
  goldPassages,
  hops,
  plan,
  kind,
  extra,
}: Question): JsonRecord {
  const known = {
    id,
    data_source: dataset,
    question: text,
    golden_answers: goldAnswers,
    supporting: goldPassages,
  };
  return { ...known, hops, kind, plan, ...extra };
}

interface Place {
  readonly path: string;
  readonly line: number;
  readonly dataset: string | undefined;
}

function questionOf(record: JsonRecord, { path, line, dataset }: Place): Question {
  const { id, question, golden_answers, supporting, hops, kind, plan, data_source, ...other } = record;
  const fail = (key: string, expected: string, value: unknown): never => {
    throw new DataFormatError(
      path,
      line,
      `expected ${JSON.stringify(key)}, ${expected}, got ${describeValue(value)}`,
    );
  };
  const { answers, answer, ...rest } = other;
  const extra =
    golden_answers === undefined ? (answers === undefined ? rest : withoutKey(other, "answers")) : other;
  const gold = golden_answers ?? answers ?? answer;
  return {
    id: id === undefined ? String(line) : (idOf(id) ?? fail("id", "a text or a number", id)),
    dataset:
      dataset ??
      (typeof data_source === "string" && data_source !== ""
        ? data_source
        : basename(path).replace(/\.jsonl?$/, "")),
    text:
      typeof question === "string" && question.trim() !== ""
        ? question
        : fail("question", "a text that is not empty", question),
    goldAnswers: goldAnswersOf(gold) ?? fail("golden_answers", "at least one text that is not empty", gold),
    goldPassages: idsOf(supporting) ?? fail("supporting", "a list of passage ids", supporting),
    ...(hops !== undefined && {
      hops: isPositiveInteger(hops) ? hops : fail("hops", "an integer of at least 1", hops),
    }),
    ...(plan !== undefined && { plan: isTexts(plan) ? plan : fail("plan", "a list of queries", plan) }),
    ...(kind !== undefined && { kind: typeof kind === "string" ? kind : fail("kind", "a text", kind) }),
    ...(Object.keys(extra).length > 0 && { extra }),
  };
}

function withoutKey(record: JsonRecord, key: string): JsonRecord {
  return Object.fromEntries(Object.entries(record).filter(([name]) => name !== key));
}

/** A list of texts, or one text; undefined when there is none that is not empty. */
function goldAnswersOf(value: unknown): readonly string[] | undefined {
  const answers = typeof value === "string" ? [value] : value;
  return isTexts(answers) && answers.length > 0 && answers.every((answer) => answer.trim() !== "")
    ? answers
    : undefined;
}

function idsOf(value: unknown): readonly string[] | undefined {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) return undefined;
  const ids = value.map(idOf);
  return ids.includes(undefined) ? undefined : (ids as string[]);
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

function isPositiveInteger(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 1;
}
