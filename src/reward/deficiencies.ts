/**
 * What goes wrong in the searching of a trajectory, by both definitions of DeSA (arXiv 2510.04695). Figure 1 of the
 * paper: a malformed action, a query asked twice, no search at all. The released detector (`qa_searchbehavior.py`):
 * queries that say nothing, a query asked twice, and, where no gold answer was recalled, no search or a query that
 * repeats the question.
 *
 * Both are read from the actions, so they hold for any codec. The released detector reads the text, quoted tags and
 * the last turn included; a search in the last turn, which is not carried out, is no query here.
 */
import type { Trajectory } from "../rollout/trajectory.ts";
import { queries, searchCount } from "../rollout/trajectory-view.ts";
import { plainWords } from "./normalize-answer.ts";
import { releasedMatch, retrievalRecall } from "./retrieved-answer.ts";

/** In the order of tables; those of the paper first. */
export const deficiencyNames = [
  "malformedAction",
  "duplicateQuery",
  "noSearch",
  "anyDeficiency",
  "releasedInvalidQuery",
  "releasedDuplicateQuery",
  "releasedNoSearch",
  "releasedNoRewriting",
  "releasedAnyDeficiency",
] as const;
export type DeficiencyName = (typeof deficiencyNames)[number];

/** 1 where a trajectory has the deficiency. */
export type Deficiencies = Readonly<Record<DeficiencyName, 0 | 1>>;

/** What each means, in a sentence. */
export const deficiencyDocs: Readonly<Record<DeficiencyName, string>> = {
  malformedAction: "a turn that is no valid action, a search in the last turn left aside",
  duplicateQuery: "a query asked twice, letter by letter",
  noSearch: "no search that was carried out",
  anyDeficiency: "any of malformedAction, duplicateQuery and noSearch",
  releasedInvalidQuery: "a query that is empty, of one character, of punctuation alone, or the word and",
  releasedDuplicateQuery: "a query asked twice, letter by letter, the query `query` left aside",
  releasedNoSearch: "no query but `query`, and no gold answer recalled",
  releasedNoRewriting:
    "a query that is the question but for case and punctuation, and no gold answer recalled",
  releasedAnyDeficiency: "any of the four of the released detector",
};

/** The deficiencies of a trajectory by both definitions. */
export function deficiencies(trajectory: Trajectory): Deficiencies {
  return { ...paperDeficiencies(trajectory), ...releasedDeficiencies(trajectory) };
}

type PaperName = Exclude<DeficiencyName, `released${string}`>;
type ReleasedName = Extract<DeficiencyName, `released${string}`>;

function paperDeficiencies(trajectory: Trajectory): Readonly<Record<PaperName, 0 | 1>> {
  const isMalformed = trajectory.turns.some(
    ({ action }) => action.type === "invalid" && action.reason !== "searchNotAllowed",
  );
  const isDuplicate = hasDuplicate(queries(trajectory).map((query) => query.trim()));
  const isUnsearched = searchCount(trajectory) === 0;
  return {
    malformedAction: flag(isMalformed),
    duplicateQuery: flag(isDuplicate),
    noSearch: flag(isUnsearched),
    anyDeficiency: flag(isMalformed || isDuplicate || isUnsearched),
  };
}

function releasedDeficiencies(trajectory: Trajectory): Readonly<Record<ReleasedName, 0 | 1>> {
  const asked = releasedQueries(trajectory);
  const isInvalid = asked.some((query) => !isReleasedValid(query));
  const isDuplicate = hasDuplicate(asked.filter((query) => query !== ""));
  const isMissed = retrievalRecall(trajectory, releasedMatch) === 0;
  const isUnsearched = isMissed && asked.length === 0;
  const question = plainWords(trajectory.question.text).join(" ");
  const isUnchanged = isMissed && asked.some((query) => plainWords(query).join(" ") === question);
  return {
    releasedInvalidQuery: flag(isInvalid),
    releasedDuplicateQuery: flag(isDuplicate),
    releasedNoSearch: flag(isUnsearched),
    releasedNoRewriting: flag(isUnchanged),
    releasedAnyDeficiency: flag(isInvalid || isDuplicate || isUnsearched || isUnchanged),
  };
}

/** How many of the four flags of the released detector a trajectory has. */
export function releasedFlagCount(trajectory: Trajectory): number {
  const { releasedAnyDeficiency: _, ...flags } = releasedDeficiencies(trajectory);
  return Object.values(flags).filter((value) => value === 1).length;
}

/** The queries, empty ones included; `query` alone is what the prompt quotes and is never counted. */
function releasedQueries({ turns }: Trajectory): string[] {
  const asked = turns.flatMap(({ action }) => {
    if (action.type === "search") return [action.query.trim()];
    if (action.type === "searches") return action.queries.map((query) => query.trim());
    return action.type === "invalid" && action.reason === "emptyQuery" ? [""] : [];
  });
  return asked.filter((query) => query.toLowerCase() !== "query");
}

function isReleasedValid(query: string): boolean {
  return query.toLowerCase() !== "and" && [...query].length >= 2 && /[\p{L}\p{N}_\s]/u.test(query);
}

function hasDuplicate(values: readonly string[]): boolean {
  return new Set(values).size < values.length;
}

function flag(value: boolean): 0 | 1 {
  return value ? 1 : 0;
}
