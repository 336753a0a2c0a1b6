/** Which questions a step asks: every epoch is a new random order, and a step's place in it follows from its number alone. */
import type { Question } from "../corpus/question.ts";
import { random } from "../shared/random.ts";

export interface StepQuestions {
  readonly seed: number;
  readonly stage: string;
  /** From 0. */
  readonly step: number;
  readonly count: number;
}

/** The `count` questions of a step; without repetition while the epoch lasts. */
export function questionsOfStep(
  questions: readonly Question[],
  { seed, stage, step, count }: StepQuestions,
): Question[] {
  const chosen: Question[] = [];
  let order: Question[] = [];
  let orderEpoch = -1;
  for (let position = step * count; position < (step + 1) * count; position++) {
    const epoch = Math.floor(position / questions.length);
    if (epoch !== orderEpoch) order = random(seed, "questions", stage, epoch).shuffle(questions);
    orderEpoch = epoch;
    chosen.push(order[position % questions.length] as Question);
  }
  return chosen;
}
