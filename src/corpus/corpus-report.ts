/** What reading a corpus found besides passages: counts, and the first problems with their places. */
import type { DataFormatError } from "../errors.ts";
import { escaped } from "./formats/json-record.ts";

export type CorpusProblemKind =
  | "badLine"
  | "duplicateId"
  | "emptyPassage"
  | "duplicatePassage"
  | "skippedFile"
  | "emptyFile";

/** One thing that was found; the message of `error` starts with the file and, where known, the line. */
export interface CorpusProblem {
  readonly kind: CorpusProblemKind;
  readonly error: DataFormatError;
}

/** Counts that grow while a corpus is read. */
export interface CorpusReport {
  /** Passages that were given out. */
  passages: number;
  /** Left out: another passage has the id. */
  duplicateIds: number;
  /** Title and text came before; left out only when asked. */
  duplicatePassages: number;
  /** Left out: neither title nor text. */
  emptyPassages: number;
  /** Left out: lines, rows or pages that could not be read. */
  badLines: number;
  /** Files of a folder that were not read: an unknown ending, damaged, or a link that leaves the folder. */
  skippedFiles: number;
  /** Files without any passage. */
  emptyFiles: number;
  /** The first problems in order, at most `shownProblems`. */
  readonly problems: CorpusProblem[];
}

/** How many problems a report keeps. */
export const shownProblems = 20;

export function newCorpusReport(): CorpusReport {
  return {
    passages: 0,
    duplicateIds: 0,
    duplicatePassages: 0,
    emptyPassages: 0,
    badLines: 0,
    skippedFiles: 0,
    emptyFiles: 0,
    problems: [],
  };
}

const counters = {
  badLine: "badLines",
  duplicateId: "duplicateIds",
  emptyPassage: "emptyPassages",
  duplicatePassage: "duplicatePassages",
  skippedFile: "skippedFiles",
  emptyFile: "emptyFiles",
} as const satisfies Record<CorpusProblemKind, keyof CorpusReport>;

/** Counts a problem, and keeps it when it is among the first. */
export function noteProblem(report: CorpusReport, problem: CorpusProblem): void {
  report[counters[problem.kind]]++;
  if (report.problems.length < shownProblems) report.problems.push(problem);
}

/** Records and files that were left out; repeated passages are not, unless they were dropped. */
export function skippedCount(report: CorpusReport): number {
  return report.duplicateIds + report.emptyPassages + report.badLines;
}

const nouns: readonly (readonly [keyof CorpusReport, string, string])[] = [
  ["badLines", "bad line", "bad lines"],
  ["duplicateIds", "repeated id", "repeated ids"],
  ["emptyPassages", "empty passage", "empty passages"],
  ["duplicatePassages", "repeated passage", "repeated passages"],
  ["skippedFiles", "file not read", "files not read"],
  ["emptyFiles", "file without passages", "files without passages"],
];

/**
 * The report for a reader: one line of counts, then a line for each problem kept; empty when there is none. Controls that
 * names of files may hold are escaped.
 */
export function describeReport(report: CorpusReport): string[] {
  const counts = nouns.flatMap(([key, one, many]) => {
    const count = report[key] as number;
    return count === 0 ? [] : [`${count} ${count === 1 ? one : many}`];
  });
  if (counts.length === 0) return [];
  const total = nouns.reduce((sum, [key]) => sum + (report[key] as number), 0);
  const more = total - report.problems.length;
  return [
    counts.join(", "),
    ...report.problems.map(({ error }) => `  ${escaped(error.message)}`),
    ...(more > 0 ? [`  and ${more} more`] : []),
  ];
}
