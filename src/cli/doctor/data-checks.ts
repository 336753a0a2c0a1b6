/** Examinations of corpus, index and questions: are there enough questions, and can their evidence be found? */

import { type Question, questionKey } from "../../corpus/question.ts";
import type { Retriever } from "../../retrieval/retriever.ts";
import { type Check, type DataPatient, passagesById, remoteSampleSize, spread } from "./check.ts";

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
  const { retriever, passages } = data;
  const withGold = data.evaluation.filter(({ goldPassages }) => goldPassages.length > 0);
  const marked = spread(withGold, passages === undefined ? remoteSampleSize : undefined);
  if (marked.length === 0)
    return { name, ok: true, detail: "not measured: no question marks its gold passages" };
  const stranger = passages === undefined ? undefined : questionWithStranger(marked, data);
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
  const fix =
    passages === undefined
      ? "check that the questions mark passages by the ids of this retriever, or raise environment.k"
      : "check that the questions mark passages by the ids of this corpus, raise environment.k, or tune the retriever (titleWeight, fuzzy)";
  return { name, ok: false, detail, fix };
}

/** A question that marks a passage which the corpus lacks. */
function questionWithStranger(marked: readonly Question[], data: DataPatient["data"]): Question | undefined {
  const gold = passagesById(
    data,
    marked.flatMap(({ goldPassages }) => goldPassages),
  );
  return marked.find(({ goldPassages }) => !goldPassages.every((id) => gold.has(id)));
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
