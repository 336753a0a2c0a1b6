/**
 * Bad habits of searching for a teacher to show, those of DeSA's Figure 1 (arXiv 2510.04695) and its released detector: no
 * search, a turn that is no action, a query asked twice, the question itself as a query. Models that were never taught by
 * a script bring them along; a model from nothing that was warmed up without them has none that reinforcement could remove.
 */
import { z } from "zod";
import { FAMILIAR, type Question } from "../corpus/question.ts";
import type { Action, Codec } from "../environment/action.ts";
import type { Random } from "../shared/random.ts";

const share = z.number().min(0).max(1).default(0);

export const habitsSchema = z.strictObject({
  noSearch: share.describe("Probability that a demonstration answers at once, which it cannot know."),
  memory: share.describe(
    "Probability that a demonstration of a familiar question (data.world.familiar) answers at once, which it can know.",
  ),
  invalid: share.describe(
    "Probability of a search without a query, a turn that is no action, before a search.",
  ),
  duplicate: share.describe("Probability that a search is made once more with the same query."),
  noRewriting: share.describe("Probability that the first query is the question itself."),
});

export type Habits = z.output<typeof habitsSchema>;

type TeacherAction = Exclude<Action, { type: "invalid" }>;

/** The turns of `actions`, searches and then an answer, with habits where they leave room for all searches. */
export function turnsWithHabits(
  actions: readonly TeacherAction[],
  habits: Habits,
  {
    codec,
    question,
    maxSearches,
    chance,
  }: {
    readonly codec: Codec;
    readonly question: Question;
    readonly maxSearches: number;
    readonly chance: Random;
  },
): readonly string[] {
  // All are drawn, so that changing one share leaves the others' demonstrations alone.
  const has = {
    noSearch: chance.next() < habits.noSearch,
    invalid: chance.next() < habits.invalid,
    duplicate: chance.next() < habits.duplicate,
    noRewriting: chance.next() < habits.noRewriting,
  };
  const [invalidAt, duplicateAt] = [chance.next(), chance.next()];
  const searches = actions.filter((action) => action.type === "search");
  const ending = actions.slice(searches.length).map(codec.render);
  const knows = chance.next() < habits.memory && question.kind === FAMILIAR;
  if (has.noSearch || knows) return ending;
  const turns = searches.map(({ query }, i) =>
    codec.render({ type: "search", query: i === 0 && has.noRewriting ? question.text : query }),
  );
  const place = (draw: number): number => Math.floor(draw * searches.length);
  if (has.duplicate && turns.length < maxSearches)
    turns.splice(place(duplicateAt), 0, turns[place(duplicateAt)] as string);
  if (has.invalid && turns.length < maxSearches)
    turns.splice(place(invalidAt), 0, codec.render({ type: "search", query: "" }));
  return [...turns, ...ending];
}
