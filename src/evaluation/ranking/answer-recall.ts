/**
 * Answer-string recall: for how many questions does one of the first k passages (title or text) hold a gold answer?
 * Both are brought into the normal form of SQuAD, and an answer must be whole words: "art" does not stand in "party".
 * Letters of scripts without spaces between words need no boundary. Short answers match by chance, so it is an upper
 * bound of what can be answered; questions whose answer is yes or no are left out, since such a word proves nothing.
 */
import type { Passage } from "../../corpus/passage.ts";
import type { Question } from "../../corpus/question.ts";
import { assert, UsageError } from "../../errors.ts";
import { normalizeAnswer } from "../../reward/normalize-answer.ts";
import { type Run, rankedIds } from "./ranking.ts";
import {
  type Averaging,
  averagedQueries,
  hasResults,
  meansOf,
  type RunScore,
  requireCommon,
} from "./score-run.ts";

/** Whether the answer is concluded (yes or no) and not found. */
export function isVerdictQuestion({ goldAnswers }: Pick<Question, "goldAnswers">): boolean {
  return goldAnswers.some((answer) => ["yes", "no"].includes(normalizeAnswer(answer)));
}

/** Text in which answers are looked for: the normal form of title and text. */
export function searchableText({ title, text }: Pick<Passage, "title" | "text">): string {
  return normalizeAnswer(`${title}\n${text}`);
}

/** Whether one of `goldAnswers` stands in a `searchableText` as whole words. */
export function containsAnswer(searchable: string, goldAnswers: readonly string[]): boolean {
  return goldAnswers.some((answer) => {
    const wanted = normalizeAnswer(answer);
    return wanted !== "" && holdsWords(searchable, wanted);
  });
}

const unspaced =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;

function holdsWords(text: string, wanted: string): boolean {
  const characters = [...wanted];
  const isFreeBefore = unspaced.test(characters[0] as string);
  const isFreeAfter = unspaced.test(characters.at(-1) as string);
  for (let start = text.indexOf(wanted); start >= 0; start = text.indexOf(wanted, start + 1)) {
    const end = start + wanted.length;
    const isBefore = isFreeBefore || start === 0 || text[start - 1] === " ";
    const isAfter = isFreeAfter || end === text.length || text[end] === " ";
    if (isBefore && isAfter) return true;
  }
  return false;
}

/** The K of a metric name `answer@K`; undefined for other names. */
export function answerCutoff(name: string): number | undefined {
  const digits = /^answer@([1-9]\d{0,8})$/.exec(name.toLowerCase())?.[1];
  return digits === undefined ? undefined : Number(digits);
}

export interface AnswerRecallOptions {
  /** Such as `answer@5`. */
  readonly metrics: readonly string[];
  /** The passage with an id of the run; undefined where there is none. */
  readonly passageOf: (id: string) => Pick<Passage, "title" | "text"> | undefined;
  readonly seed: number;
  /** Default `judged`: a question without results counts 0. */
  readonly averaging?: Averaging;
}

/**
 * Answer recall of a run whose query ids are the ids of `questions`. Throws `UsageError` when they have none in
 * common, when an id is there twice, and when a passage of the run is not known.
 */
export function answerRecall(
  run: Run,
  questions: readonly Question[],
  options: AnswerRecallOptions,
): RunScore {
  const byId = questionsById(questions);
  const asked = [...byId.keys()].filter((id) => !isVerdictQuestion(byId.get(id) as Question));
  requireCommon(run, [...byId.keys()], "the questions");
  const textOf = textCache(options.passageOf);
  const cutoffs = options.metrics.map((name) => {
    const k = answerCutoff(name);
    assert(k !== undefined, `${name} is a metric of answers`);
    return { name, k };
  });
  const deepest = Math.max(...cutoffs.map(({ k }) => k));
  const queries = averagedQueries(run, asked, options.averaging).map((id) => {
    const { goldAnswers } = byId.get(id) as Question;
    const ids = rankedIds(run.get(id) ?? []).slice(0, deepest);
    const rank = ids.findIndex((passage) => containsAnswer(textOf(passage), goldAnswers)) + 1;
    const values = cutoffs.map(({ name, k }) => [name, rank > 0 && rank <= k ? 1 : 0] as const);
    return { id, values: Object.fromEntries(values) };
  });
  return {
    queries,
    means: meansOf(queries, options.metrics, options.seed),
    withoutResults: asked.filter((id) => !hasResults(run.get(id))).length,
    withoutJudgement: [...run.keys()].filter((id) => !byId.has(id)).length,
    withoutRelevant: 0,
  };
}

function questionsById(questions: readonly Question[]): ReadonlyMap<string, Question> {
  const byId = new Map<string, Question>();
  for (const question of questions) {
    const other = byId.get(question.id);
    if (other !== undefined)
      throw new UsageError(
        `the question id ${JSON.stringify(question.id)} is in ${other.dataset} and in ${question.dataset}; score one data set at a time`,
      );
    byId.set(question.id, question);
  }
  return byId;
}

function textCache(passageOf: AnswerRecallOptions["passageOf"]): (id: string) => string {
  const texts = new Map<string, string>();
  return (id) => {
    const known = texts.get(id);
    if (known !== undefined) return known;
    const passage = passageOf(id);
    if (passage === undefined)
      throw new UsageError(
        `passage ${JSON.stringify(id)} of the run is not in the index; name the index that the run was made with`,
      );
    const text = searchableText(passage);
    texts.set(id, text);
    return text;
  };
}

/** The judgements that questions carry: each gold passage with grade 1; questions that mark none are left out. */
export function qrelsOfQuestions(questions: readonly Question[]): Map<string, Map<string, number>> {
  const byId = questionsById(questions.filter(({ goldPassages }) => goldPassages.length > 0));
  return new Map(
    [...byId].map(([id, { goldPassages }]) => [id, new Map(goldPassages.map((passage) => [passage, 1]))]),
  );
}
