/**
 * Chooses questions for a split so that the numbers of hops weigh equally, and within one number of hops the
 * kinds too, as far as there are different questions of each. Used by both built-in worlds.
 */
import type { Random } from "../shared/random.ts";
import type { Question } from "./question.ts";

/** A question before it is placed in a split. */
export type QuestionDraft = Omit<Question, "id" | "dataset"> & { readonly hops: number };

/** Candidates of one kind, in the order in which they are to be used, without repeats. */
export interface QuestionKind {
  readonly hops: number;
  readonly candidates: Iterable<QuestionDraft>;
}

/**
 * At most `count` questions with ids `split-0`, `split-1`, ... in random order: an equal quota for each number
 * of hops, filled by taking one question of each kind in turn. A quota that runs out of candidates stays short,
 * so that the balance over hops is never bought with more easy questions.
 */
export function selectQuestions(
  kinds: readonly QuestionKind[],
  target: { readonly dataset: string; readonly split: string; readonly count: number },
  random: Random,
): Question[] {
  const hops = [...new Set(kinds.map((kind) => kind.hops))].sort((a, b) => a - b);
  const drafts = hops.flatMap((hop, index) => {
    const quota =
      Math.floor((target.count * (index + 1)) / hops.length) -
      Math.floor((target.count * index) / hops.length);
    return takeInTurn(
      kinds.filter((kind) => kind.hops === hop).map((kind) => kind.candidates),
      quota,
    );
  });
  return random
    .shuffle(drafts)
    .map((draft, index) => ({ id: `${target.split}-${index}`, dataset: target.dataset, ...draft }));
}

function takeInTurn<T>(sources: readonly Iterable<T>[], count: number): T[] {
  const taken: T[] = [];
  let iterators = sources.map((source) => source[Symbol.iterator]());
  while (iterators.length > 0 && taken.length < count) {
    const open: Iterator<T>[] = [];
    for (const iterator of iterators) {
      if (taken.length === count) break;
      const { done, value } = iterator.next();
      if (done) continue;
      taken.push(value);
      open.push(iterator);
    }
    iterators = open;
  }
  return taken;
}
