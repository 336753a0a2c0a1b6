/** Examinations of corpus, index and questions: can the right answers be found at all? */

import type { Passage } from "../../corpus/passage.ts";
import { type Question, questionKey } from "../../corpus/question.ts";
import type { Retriever } from "../../retrieval/retriever.ts";
import { coverExactMatch } from "../../reward/cover-exact-match.ts";
import { normalizeAnswer } from "../../reward/normalize-answer.ts";
import { type Check, type DataPatient, passagesById, percent, spread } from "./check.ts";

const fewQuestions = 100;

/** How many questions there are; few of them make wide intervals. */
export function checkQuestions({ data: { train, evaluation, split } }: DataPatient): Check {
  const detail = `${train.length} to train on, ${evaluation.length} held out (${split})`;
  if (evaluation.length >= fewQuestions) return { name: "questions", ok: true, detail };
  const width = (0.98 / Math.sqrt(evaluation.length)).toFixed(2);
  const fix = `with ${evaluation.length} held-out questions a score is known to about +-${width}; add some or raise evaluation.n`;
  return { name: "questions", ok: true, detail, fix };
}

const leastRecall = { plan: 0.9, question: 0.2 } as const;

/** Recall of gold passages at the environment's k, by the queries of a perfect searcher where they are known. */
export async function checkRecall({ recipe, data }: DataPatient): Promise<Check> {
  const name = "recall of gold passages";
  const { retriever } = data;
  const marked = spread(data.evaluation.filter(({ goldPassages }) => goldPassages.length > 0));
  if (marked.length === 0)
    return { name, ok: true, detail: "not measured: no question marks its gold passages" };
  const gold = passagesById(
    data,
    marked.flatMap(({ goldPassages }) => goldPassages),
  );
  const stranger = marked.find(({ goldPassages }) => !goldPassages.every((id) => gold.has(id)));
  if (stranger !== undefined)
    return {
      name,
      ok: false,
      detail: `question ${questionKey(stranger)} marks a gold passage that is not in the corpus`,
      fix: "use the corpus that the questions were made for",
    };
  const { k } = recipe.environment;
  let found = 0;
  for (const question of marked) found += await recallOf(question, { retriever, k });
  const recall = found / marked.length;
  const by = marked.every(hasPlan) ? "plan" : "question";
  const detail = `${(100 * recall).toFixed(1)} % at k ${k} by the ${by === "plan" ? "queries of a perfect searcher" : "text of the question"} (${marked.length} questions)`;
  if (recall >= leastRecall[by]) return { name, ok: true, detail };
  return { name, ok: false, detail, fix: "raise environment.k, or tune the retriever (titleWeight, fuzzy)" };
}

function hasPlan({ plan }: Question): boolean {
  return plan !== undefined && plan.length > 0;
}

async function recallOf(
  question: Question,
  { retriever, k }: { readonly retriever: Retriever; readonly k: number },
): Promise<number> {
  const queries = hasPlan(question) ? (question.plan as readonly string[]) : [question.text];
  const results = await retriever.retrieve(queries, k);
  const ids = new Set(results.flat().map(({ passage }) => passage.id));
  return question.goldPassages.filter((id) => ids.has(id)).length / question.goldPassages.length;
}

const answerDepth = 50;
const leastAnswers = 0.5;

/** Is a gold answer written in the corpus? Looked for in the gold passages, then among the best for the answer itself. */
export async function checkAnswers({ data }: DataPatient): Promise<Check> {
  const name = "answers in the corpus";
  const questions = spread(data.evaluation);
  const byId = passagesById(
    data,
    questions.flatMap(({ goldPassages }) => goldPassages),
  );
  const missing: Question[] = [];
  for (const question of questions)
    if (!isVerdict(question) && !(await isAnswerWritten(question, byId, data.retriever)))
      missing.push(question);
  const written = questions.length - missing.length;
  const detail = `${percent(written, questions.length)} of ${questions.length} questions have a gold answer that stands in the corpus`;
  const [first] = missing;
  if (first === undefined) return { name, ok: true, detail };
  const example = `, not ${questionKey(first)} "${first.goldAnswers[0]}"`;
  const fix =
    "a corpus without the answers caps what can be learned; use the corpus the questions were made for";
  return { name, ok: written >= leastAnswers * questions.length, detail: detail + example, fix };
}

/** Yes and no are concluded, not found. */
function isVerdict({ goldAnswers }: Question): boolean {
  return goldAnswers.some((answer) => ["yes", "no"].includes(normalizeAnswer(answer)));
}

async function isAnswerWritten(
  { goldAnswers, goldPassages }: Question,
  byId: ReadonlyMap<string, Passage>,
  retriever: Retriever,
): Promise<boolean> {
  const holds = ({ title, text }: Passage): boolean =>
    coverExactMatch(`${title}\n${text}`, goldAnswers) === 1;
  const gold = goldPassages.flatMap((id) => byId.get(id) ?? []);
  if (gold.some(holds)) return true;
  const found = await retriever.retrieve(goldAnswers, answerDepth);
  return found.flat().some(({ passage }) => holds(passage));
}
