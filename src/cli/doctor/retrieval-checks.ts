/**
 * Examinations of what a retriever gives back: does it find known gold as well as plain word overlap would, does it
 * tell queries apart, and are the answers in the corpus? A retriever with the wrong index, encoder or language answers
 * every query without an error; numbers are all that shows it.
 */
import type { Passage } from "../../corpus/passage.ts";
import { type Question, questionKey } from "../../corpus/question.ts";
import { pairedTest } from "../../evaluation/paired-test.ts";
import { containsAnswer, isVerdictQuestion, searchableText } from "../../evaluation/ranking/answer-recall.ts";
import type { PassageStore } from "../../retrieval/passage-store.ts";
import type { Retriever } from "../../retrieval/retriever.ts";
import { type Check, percent, remoteSampleSize, spread } from "./check.ts";
import { overlapRanker } from "./word-overlap.ts";

/** A retriever with the corpus it searches and questions for it. */
export interface RetrievalPatient {
  readonly retriever: Retriever;
  /** Absent where the retriever does not show them; then overlap is not measured, and answers only in what was found. */
  readonly passages?: PassageStore | undefined;
  readonly questions: readonly Question[];
  /** Passages of one search in use. */
  readonly k: number;
}

/** The best passages for the text of a question. */
interface Asked {
  readonly question: Question;
  readonly found: readonly Passage[];
  /** Its gold passages that the corpus has. */
  readonly gold: readonly Passage[];
}

/** How deep an answer is looked for. */
const depth = 100;

/** Asks a sample of the questions once and examines what comes back. Throws what the retriever throws. */
export async function checkRetrieval(patient: RetrievalPatient): Promise<Check[]> {
  const { retriever, passages, k } = patient;
  const questions = spread(patient.questions, passages === undefined ? remoteSampleSize : undefined);
  const texts = questions.map(({ text }) => text);
  const wanted = passages === undefined ? k : Math.max(depth, k);
  const results = texts.length === 0 ? [] : await retriever.retrieve(texts, wanted);
  const goldIds = new Set(questions.flatMap(({ goldPassages }) => goldPassages));
  const gold = passages === undefined ? new Map<string, Passage>() : passagesWithIds(passages, goldIds);
  const asked = questions.map((question, i) => ({
    question,
    found: (results[i] ?? []).map(({ passage }) => passage),
    gold: question.goldPassages.flatMap((id) => gold.get(id) ?? []),
  }));
  const variety = checkVariety(asked, patient);
  if (passages === undefined) return [notShown(overlapName), variety, checkFoundAnswers(asked, k)];
  return [checkAgainstOverlap(asked, { passages, k }), variety, await checkAnswers(asked, retriever)];
}

const overlapName = "recall against plain overlap";
const answersName = "answers in the corpus";

function notShown(name: string): Check {
  return { name, ok: true, detail: "not measured: the retriever does not show its passages" };
}

function passagesWithIds(passages: PassageStore, ids: ReadonlySet<string>): ReadonlyMap<string, Passage> {
  const found = new Map<string, Passage>();
  for (let position = 0; position < passages.count && found.size < ids.size; position++) {
    const passage = passages.get(position);
    if (ids.has(passage.id)) found.set(passage.id, passage);
  }
  return found;
}

/** Passages of the corpus that gold passages compete with, besides what the retriever found. */
const rivals = 1000;
const fewestMarked = 10;
const hardlyAny = 0.02;
const leastOfOverlap = 2 / 3;

/**
 * Recall of gold passages beside that of counting common words, both for the text of the question. Overlap chooses
 * among the gold passages, what the retriever found, and passages spread over the corpus, so it has an easier task than
 * the retriever: BM25 measured 5 to 40 % above it. Less than two thirds, and that not by chance, is suspicious; so is a
 * recall next to nothing.
 */
function checkAgainstOverlap(
  asked: readonly Asked[],
  { passages, k }: { readonly passages: PassageStore; readonly k: number },
): Check {
  const name = overlapName;
  const marked = asked.filter(({ gold }) => gold.length > 0);
  if (marked.length < fewestMarked)
    return {
      name,
      ok: true,
      detail: `not measured: ${marked.length} questions with gold passages in the corpus`,
    };
  const positions = spread([...Array(passages.count).keys()], rivals);
  const rank = overlapRanker(positions.map((position) => passages.get(position)));
  const retrieved = marked.map(({ found, gold }) => recallOf(gold, found.slice(0, k)));
  const overlapping = marked.map(({ question, found, gold }) =>
    recallOf(gold, rank(question.text, { k, gold, others: found })),
  );
  const difference = pairedTest(overlapping, retrieved, { seed: 1 });
  const [recall, overlap] = [mean(retrieved), mean(overlapping)];
  const detail = `${share(recall)} of the gold passages at k ${k} by the text of the question; counting common words would find ${share(overlap)} (${marked.length} questions)`;
  const isFar = recall < leastOfOverlap * overlap && difference?.verdict === "worse";
  if (recall > hardlyAny && !isFar) return { name, ok: true, detail };
  const fix =
    overlap > hardlyAny
      ? "the retriever misses what words alone would find; check that the index is of this corpus, that encoder, pooling and query prefix belong to the index, and that the language analysis fits"
      : "the questions share hardly a word with their gold passages; check that they are of this corpus and of its language, or use a dense retriever of several languages";
  return { name, ok: false, detail, fix };
}

function recallOf(gold: readonly Passage[], found: readonly Passage[]): number {
  const ids = new Set(found.map(({ id }) => id));
  return gold.filter(({ id }) => ids.has(id)).length / gold.length;
}

const fewestQueries = 10;
const fewestPassages = 10;
const largestShare = 0.5;
const leastVariety = 0.05;

/**
 * Do different queries get different passages? Not where the questions themselves are all about one passage. How many
 * passages there are is only known where they are shown; else those that were found or are marked are counted.
 */
function checkVariety(asked: readonly Asked[], { passages, k }: RetrievalPatient): Check {
  const name = "different passages for different queries";
  const different = [...new Map(asked.map((each) => [each.question.text, each])).values()];
  const isSmall = passages !== undefined && passages.count < fewestPassages;
  if (different.length < fewestQueries || isSmall)
    return {
      name,
      ok: true,
      detail: `not measured: ${different.length} different queries, ${passages?.count ?? "unknown"} passages`,
    };
  const empty = different.filter(({ found }) => found.length === 0).length;
  const first = mostCommon(different.flatMap(({ found }) => found.slice(0, 1).map(({ id }) => id)));
  const gold = mostCommon(different.flatMap(({ question }) => question.goldPassages.slice(0, 1)));
  const shown = different.flatMap(({ found }) => found.slice(0, k));
  const ids = new Set(shown.map(({ id }) => id));
  const distinct = ids.size;
  const marked = different.flatMap(({ question }) => question.goldPassages);
  const possible = Math.min(passages?.count ?? new Set([...ids, ...marked]).size, shown.length);
  const detail = `${distinct} different passages in ${shown.length} places (${different.length} queries at k ${k}); the most common first passage${first === undefined ? "" : ` (${first.id})`} comes for ${percent(first?.count ?? 0, different.length)} of the queries, ${percent(empty, different.length)} find nothing`;
  if (empty > largestShare * different.length)
    return { name, ok: false, detail, fix: "index and queries share no words; check language and analysis" };
  const isOneForAll = (first?.count ?? 0) > Math.max(largestShare * different.length, 2 * (gold?.count ?? 0));
  if (!isOneForAll && distinct >= leastVariety * possible) return { name, ok: true, detail };
  const fix =
    "the retriever hardly tells queries apart; check that it is given the query and not a constant, that encoder and index belong together, and that the vectors are not all alike";
  return { name, ok: false, detail, fix };
}

function mostCommon(ids: readonly string[]): { readonly id: string; readonly count: number } | undefined {
  const counts = new Map<string, number>();
  for (const id of ids) counts.set(id, (counts.get(id) ?? 0) + 1);
  const [best] = [...counts].sort(([, a], [, b]) => b - a);
  return best === undefined ? undefined : { id: best[0], count: best[1] };
}

const leastAnswers = 0.5;
/**
 * Share of questions with an answer in the passages found for them, where only those are seen. BM25 over the right corpus at k 3: 18.9 %
 * (Bamboogle) to 72.5 % (PopQA) for seven question files; over a tenth of it that lacks their gold passages 1.4 to 7.5 % for six.
 */
const leastFound = 0.05;
/** With fewer questions or passages a working retriever could be below it by chance. */
const fewestSeen = { questions: 30, k: 3 } as const;

/** Does a gold answer stand in the passages that were found? More queries could cost money. */
function checkFoundAnswers(asked: readonly Asked[], k: number): Check {
  const name = answersName;
  const open = asked.filter(({ question }) => !isVerdictQuestion(question));
  if (open.length < fewestSeen.questions || k < fewestSeen.k) {
    const detail = `not measured: ${open.length} questions with more to say than yes or no, at k ${k}`;
    return { name, ok: true, detail };
  }
  const answered = open.filter(({ question, found }) => found.slice(0, k).some(holds(question))).length;
  const detail = `${percent(answered, open.length)} of ${open.length} questions have a gold answer in the ${k} best passages; what else the retriever holds it does not show`;
  const fix =
    "hardly a passage holds an answer; check that the retriever searches the corpus the questions were made for";
  return { name, ok: answered >= leastFound * open.length, detail, fix };
}

/** Whether a gold answer of `question` stands in a passage. */
function holds({ goldAnswers }: Question): (passage: Passage) => boolean {
  return ({ title, text }) => containsAnswer(searchableText({ title, text }), goldAnswers);
}

/** Does a gold answer stand in a gold passage, or in one of the best for the question or for the answer itself? */
async function checkAnswers(asked: readonly Asked[], retriever: Retriever): Promise<Check> {
  const name = answersName;
  const open = asked.filter(({ question }) => !isVerdictQuestion(question));
  if (open.length === 0) return { name, ok: true, detail: "not measured: no question but with yes or no" };
  const missing: Question[] = [];
  for (const { question, gold, found } of open) {
    const { goldAnswers } = question;
    const stands = holds(question);
    if (gold.some(stands) || found.some(stands)) continue;
    const byAnswer = await retriever.retrieve(goldAnswers, depth);
    if (!byAnswer.flat().some(({ passage }) => stands(passage))) missing.push(question);
  }
  const written = open.length - missing.length;
  const detail = `${percent(written, open.length)} of ${open.length} questions have a gold answer in a gold passage or in the ${depth} best for the question or the answer`;
  const [first] = missing;
  if (first === undefined) return { name, ok: true, detail };
  const example = `, not ${questionKey(first)} "${first.goldAnswers[0]}"`;
  const fix =
    "a corpus without the answers caps what can be learned; use the corpus the questions were made for";
  return { name, ok: written >= leastAnswers * open.length, detail: detail + example, fix };
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function share(value: number): string {
  return `${(100 * value).toFixed(1)} %`;
}
