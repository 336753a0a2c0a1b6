/**
 * Which column of a table is what. With a header the names say it. Without one, a TSV of two or three columns is
 * `id, text[, title]` (KILT, MS MARCO, DPR) when its first cell looks like an id. Anything else is refused, since a
 * wrong guess would give wrong passages without an error.
 */
import { DataFormatError } from "../../errors.ts";
import type { PassageKeys } from "../passage-record.ts";
import type { LayoutOf } from "./delimited.ts";

/** The layout of a table of passages. */
export function passageLayout(keys: PassageKeys): LayoutOf {
  const known = [...keys.id, ...keys.title, ...keys.text];
  return (first, { path, line, delimiter }) => {
    const columns = headerNames(first, known);
    if (columns.some((column) => keys.text.includes(column)))
      return { columns, used: known, hasHeader: true };
    const width = lastFilled(first) + 1;
    const isPlain = delimiter === "\t" && (width === 2 || width === 3) && looksLikeId(first[0]);
    if (isPlain) return { columns: ["id", "text", "title"].slice(0, width), used: known, hasHeader: false };
    throw new DataFormatError(
      path,
      line,
      `expected a header with a column ${keys.text.map((key) => JSON.stringify(key)).join(" or ")}, or a TSV of id, text and title, ` +
        `got ${first.length} columns (${first.map(short).join(", ")}); name the columns in a first line, or say which they are (columns.text=NAME)`,
    );
  };
}

const questionNames = ["question", "query", "text"];
const answerNames = ["golden_answers", "answers", "answer"];
/** What `readQuestions` reads in texts; it takes the other columns over as they are. */
const questionColumns = ["id", "question", ...answerNames, "kind", "data_source"];
const queryIdNames = ["id", "_id", "qid", "query_id", "query-id"];

/** The layout of a table of questions; without a header the first cell is the question and the next that is filled the answer. */
export const questionLayout: LayoutOf = (first, { path, line }) => {
  const columns = headerNames(first, [...questionNames, ...answerNames, "id", "_id"]);
  const asked = questionNames.find((name) => columns.includes(name));
  if (asked !== undefined && columns.some((name) => answerNames.includes(name)))
    return {
      columns: columns.map((name) => (name === asked ? "question" : name)),
      used: questionColumns,
      hasHeader: true,
    };
  const answer = first.findIndex((cell, i) => i > 0 && cell.trim() !== "");
  if (answer < 0 || first[0]?.trim() === "" || lastFilled(first) !== answer)
    throw new DataFormatError(
      path,
      line,
      `expected a header with columns "question" and "answer", or rows of a question and its answer, got ${first.map(short).join(", ")}`,
    );
  const roles = first.map((_, i) => (i === 0 ? "question" : i === answer ? "answer" : ""));
  return { columns: roles, used: questionColumns, hasHeader: false };
};

/** The layout of a table of queries: a header, or rows of id and text. */
export const queryLayout: LayoutOf = (first, { path, line }) => {
  const used = [...queryIdNames, ...questionNames];
  const columns = headerNames(first, used);
  if (columns.some((name) => questionNames.includes(name))) return { columns, used, hasHeader: true };
  if (first.length === 2 && looksLikeId(first[0])) return { columns: ["id", "text"], used, hasHeader: false };
  throw new DataFormatError(
    path,
    line,
    `expected a header with columns "id" and "text", or rows of an id and a query, got ${first.map(short).join(", ")}`,
  );
};

/** The cells as names; known ones are found whatever their case and blanks. */
function headerNames(first: readonly string[], known: readonly string[]): string[] {
  return first.map((cell) => {
    const name = cell.trim();
    return known.find((key) => key === name) ?? known.find((key) => key === name.toLowerCase()) ?? name;
  });
}

function looksLikeId(cell = ""): boolean {
  return /^\S*\d\S*$/.test(cell) && cell.length <= 200;
}

function lastFilled(cells: readonly string[]): number {
  return cells.findLastIndex((cell) => cell.trim() !== "");
}

function short(cell: string): string {
  return cell.length <= 20 ? cell : `${cell.slice(0, 20)}…`;
}
