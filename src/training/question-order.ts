/**
 * Which questions a step asks. The kinds of questions take turns, so that a kind with few questions is asked as
 * often as one with thousands; within a kind every epoch is a new random order. A step's questions follow from its
 * number alone, so that a resumed run asks the same.
 */
import type { Question } from "../corpus/question.ts";
import { groupBy } from "../evaluation/group-by.ts";
import { random } from "../shared/random.ts";

export interface StepQuestions {
  readonly seed: number;
  readonly stage: string;
  /** From 0. */
  readonly step: number;
  readonly count: number;
}

/** The `count` questions of a step. Questions that name no kind are one kind. */
export function questionsOfStep(questions: readonly Question[], options: StepQuestions): Question[] {
  const { seed, stage, step, count } = options;
  const kinds = [...groupBy(questions, ({ kind = "" }) => kind)].sort(([a], [b]) => (a < b ? -1 : 1));
  const shuffled = new Map<string, readonly Question[]>();
  return Array.from({ length: count }, (_, index) => {
    const position = step * count + index;
    const round = Math.floor(position / kinds.length);
    const turns = random(seed, "kinds", stage, round).shuffle(kinds);
    const [kind, members] = turns[position % kinds.length] as [string, Question[]];
    const epoch = Math.floor(round / members.length);
    const key = `${kind}|${epoch}`;
    const order = shuffled.get(key) ?? random(seed, "questions", stage, key).shuffle(members);
    shuffled.set(key, order);
    return order[round % members.length] as Question;
  });
}
