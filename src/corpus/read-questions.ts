/**
 * Questions on disk: records as FlashRAG and Search-R1 have them, `{"id","question","golden_answers"}`; also `answers`
 * or `answer` in place of `golden_answers`, `supporting` (ids of the passages with the evidence), `hops`, `kind`,
 * `plan` and `data_source`. Files are JSON Lines, JSON, Parquet (Search-R1: answers in `reward_model`, question in
 * `prompt` where it has no key of its own), CSV and TSV (with or without a header). Other keys are kept.
 */
import { DataFormatError } from "../errors.ts";
import { writeFileAtomic } from "../shared/files.ts";
import { describeValue, type JsonRecord, nestedTooDeep } from "./formats/json-record.ts";
import { dataSetName, questionRecords } from "./formats/question-records.ts";
import { questionLayout } from "./formats/table-layouts.ts";
import { describeWrongId, idOf } from "./passage-record.ts";
import type { Question } from "./question.ts";

export interface ReadQuestionsOptions {
  /** The data set of all questions; without it each record's `data_source`, else the name of the file without ending. */
  readonly dataset?: string;
  /** Encoding of texts that are not UTF-8. */
  readonly encoding?: string;
}

/**
 * The questions of a file in order; a record without `id` gets the number of its line or row. Throws
 * `DataFormatError` (file, line) for a record that is no question, has no gold answer or repeats an id, and for a
 * file without questions; `FileError` when it cannot be read.
 */
export async function readQuestions(path: string, options: ReadQuestionsOptions = {}): Promise<Question[]> {
  const questions: Question[] = [];
  const lineOf = new Map<string, number | undefined>();
  const { dataset, encoding } = options;
  for await (const entry of questionRecords({ path, encoding, layoutOf: questionLayout })) {
    if ("error" in entry) throw entry.error;
    const question = questionOf(unfoldSearchR1(entry.record), { path, line: entry.line, dataset });
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
  readonly line: number | undefined;
  readonly dataset: string | undefined;
}

const KNOWN_KEYS = ["id", "question", "supporting", "hops", "kind", "plan", "data_source"];
/** Where gold answers are looked for, in this order. */
const GOLD_KEYS = ["golden_answers", "answers", "answer"];

function questionOf(record: JsonRecord, { path, line, dataset }: Place): Question {
  const { id, question, supporting, hops, kind, plan, data_source: source } = record;
  const goldKey =
    GOLD_KEYS.find((key) => record[key] !== undefined && record[key] !== null) ?? "golden_answers";
  const known = [...KNOWN_KEYS, goldKey];
  const extra = Object.fromEntries(Object.entries(record).filter(([key]) => !known.includes(key)));
  const wrong = (key: string, how: string): never => {
    throw new DataFormatError(path, line, `expected ${JSON.stringify(key)}, ${how}`);
  };
  const fail = (key: string, expected: string): never =>
    wrong(key, `${expected}, got ${describeValue(record[key])}`);
  const deep = nestedTooDeep(extra);
  if (deep !== undefined) throw new DataFormatError(path, line, deep);
  return {
    id: id === undefined || id === null ? String(line) : (idOf(id) ?? wrong("id", describeWrongId(id))),
    dataset: dataset ?? (isText(source) ? source : dataSetName(path)),
    text: isText(question) ? question : fail("question", "a text that is not empty"),
    goldAnswers: goldAnswersOf(record[goldKey]) ?? fail(goldKey, "at least one text that is not empty"),
    goldPassages: idsOf(supporting) ?? fail("supporting", "a list of passage ids"),
    ...(hops !== undefined && { hops: isCount(hops) ? hops : fail("hops", "an integer of at least 1") }),
    ...(plan !== undefined && { plan: isTexts(plan) ? plan : fail("plan", "a list of queries") }),
    ...(kind !== undefined && { kind: typeof kind === "string" ? kind : fail("kind", "a text") }),
    ...(Object.keys(extra).length > 0 && { extra }),
  };
}

/** Puts the question and the answers of a training row of Search-R1 where FlashRAG has them; its keys stay. */
function unfoldSearchR1(record: JsonRecord): JsonRecord {
  const { prompt, reward_model: reward } = record;
  const question = record.question ?? questionOfPrompt(prompt);
  const truth = (reward as { ground_truth?: { target?: unknown } } | null | undefined)?.ground_truth;
  const hasAnswers = GOLD_KEYS.some((key) => record[key] !== undefined && record[key] !== null);
  return {
    ...record,
    ...(question !== undefined && { question }),
    ...(!hasAnswers && truth?.target !== undefined && { golden_answers: truth.target }),
  };
}

/** What stands after the last `Question:` of the last message. */
function questionOfPrompt(prompt: unknown): string | undefined {
  const last: unknown = Array.isArray(prompt)
    ? (prompt.at(-1) as { content?: unknown } | null)?.content
    : undefined;
  if (typeof last !== "string") return undefined;
  const at = last.lastIndexOf("Question:");
  return at < 0 ? undefined : last.slice(at + "Question:".length).trim();
}

/** A list of texts, or one text, which may be a list written as JSON in a cell; undefined when one is empty or missing. */
function goldAnswersOf(value: unknown): readonly string[] | undefined {
  const answers = typeof value === "string" ? (listInText(value) ?? [value]) : value;
  return isTexts(answers) && answers.length > 0 && answers.every(isText) ? answers : undefined;
}

/** The list that a cell such as `["a","b"]` holds. */
function listInText(text: string): unknown[] | undefined {
  if (!/^\s*\[.*\]\s*$/s.test(text)) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return isTexts(value) && value.length > 0 ? [...value] : undefined;
  } catch {
    // Square brackets may as well be part of an answer.
    return undefined;
  }
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

function isText(value: unknown): value is string {
  return typeof value === "string" && value.trim() !== "";
}

function isCount(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 1;
}
