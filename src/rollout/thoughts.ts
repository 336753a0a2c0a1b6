/**
 * What a teacher thinks before each turn: short sentences from a few templates, so that a small model learns the form and
 * no single wording. They name only what has been seen by then: the query, and titles of passages that were found.
 */
import type { Question } from "../corpus/question.ts";
import type { Random } from "../shared/random.ts";
import type { PlannedSearch } from "./gold-plan.ts";
import { mentions } from "./mentions.ts";

const whole = [
  "I will search for the question.",
  "Let me search for what is asked.",
  "I need to look this up.",
];
const named = ["I need to know about {query}.", "Let me look up {query}.", "I will search for {query}."];
const next = [
  "{title} helps. Next I need {query}.",
  "I have read {title}. Now I look up {query}.",
  "After {title} I need to know about {query}.",
];
const told = ["The answer is in {title}.", "{title} gives the answer.", "{title} tells it."];
const concluded = ["Now I know enough to answer.", "That is enough to answer.", "I can answer now."];

/** One thought for each search and one for the answer. */
export function thoughtsFor(question: Question, plan: readonly PlannedSearch[], random: Random): string[] {
  const gold = new Set(question.goldPassages);
  const pick = (templates: readonly string[], values: Readonly<Record<string, string>>): string =>
    (templates[random.below(templates.length)] as string).replace(
      /\{(\w+)\}/g,
      (_, key: string) => values[key] as string,
    );
  const searching = plan.map(({ query }, turn) => {
    const title = titleOfGold(plan[turn - 1], gold);
    if (title !== undefined) return pick(next, { title, query });
    return query === question.text.trim() ? pick(whole, {}) : pick(named, { query });
  });
  const title = titleOfAnswer(question, plan);
  return [...searching, title === undefined ? pick(concluded, {}) : pick(told, { title })];
}

function titleOfGold(search: PlannedSearch | undefined, gold: ReadonlySet<string>): string | undefined {
  return search?.passages.find(({ id }) => gold.has(id))?.title;
}

/** The first gold passage that was shown with an answer, the last search first. */
function titleOfAnswer(question: Question, plan: readonly PlannedSearch[]): string | undefined {
  const gold = new Set(question.goldPassages);
  return plan
    .toReversed()
    .filter(({ shown }) => question.goldAnswers.some((answer) => mentions(shown, answer)))
    .flatMap(({ passages }) => passages)
    .find(
      ({ id, title, text }) =>
        gold.has(id) && question.goldAnswers.some((answer) => mentions(`${title}\n${text}`, answer)),
    )?.title;
}
