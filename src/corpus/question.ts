/** What is asked: a question with its gold answers and, where known, the passages that hold the evidence. */
export interface Question {
  /** Unique within its data set. */
  readonly id: string;
  /** The data set it came from, such as `nq` or `atlas`; with `id` it identifies the question everywhere. */
  readonly dataset: string;
  readonly text: string;
  /** Accepted answers; at least one. */
  readonly goldAnswers: readonly string[];
  /** Ids of passages that hold the evidence; empty where the benchmark marks none. */
  readonly goldPassages: readonly string[];
  /** How many facts must be joined, where known. */
  readonly hops?: number;
  /** The queries of a perfect searcher in order, known for built-in worlds only. */
  readonly plan?: readonly string[];
  /** Which question pattern made it (built-in worlds) or what the source says; for breakdowns. */
  readonly kind?: string;
  readonly extra?: Readonly<Record<string, unknown>>;
}

/** The `kind` of questions that are asked again and again, so that a policy can know their answers without a search. */
export const FAMILIAR = "familiar";

/** The key that identifies a question across data sets: two sets may use equal ids. */
export function questionKey(question: Question): string {
  return `${question.dataset}/${question.id}`;
}
