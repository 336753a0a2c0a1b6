/**
 * Relevance judgements on disk, in the three forms in use: TREC qrels (query, iteration, passage, grade; white space
 * between them), BEIR (tabs, under the header `query-id corpus-id score`), and JSON
 * `{"query id": {"passage id": grade}}`. Grades are whole numbers; negative ones are kept and count as not relevant.
 */
import { DataFormatError, FileError } from "../../errors.ts";
import { writeFileAtomic } from "../../shared/files.ts";
import type { Qrels } from "./ranking.ts";
import { columnsOf, type ParseLine, readTable, requireColumn, type TableFormat } from "./tables.ts";

const BEIR_HEADER = ["query-id", "corpus-id", "score"] as const;

const format: TableFormat = {
  lineParser: (path, first) => (isBeirHeader(first) ? beirParser(path) : trecParser(path)),
  number: "a grade, a whole number",
  isNumber: Number.isSafeInteger,
  expected: 'judgements, one a line such as "q1 0 passage7 1"',
};

/** The judgements of a file; rows that come twice must agree. Throws `DataFormatError` (file, line) or `FileError`. */
export async function readQrels(path: string): Promise<Qrels> {
  return await readTable(path, format);
}

function isBeirHeader(line: string): boolean {
  const columns = line.split("\t").map((column) => column.trim().toLowerCase());
  return columns.length === 3 && columns.every((column, i) => column === BEIR_HEADER[i]);
}

function trecParser(path: string): ParseLine {
  return ({ number, text }) => {
    const [query, , passage, grade, ...more] = columnsOf(text);
    if (query === undefined || passage === undefined || grade === undefined || more.length > 0)
      throw new DataFormatError(
        path,
        number,
        `expected 4 columns (query, iteration, passage, grade), or ${BEIR_HEADER.join("<tab>")} as the first line and 3 columns, got ${JSON.stringify(text.slice(0, 80))}`,
      );
    return { query, passage, value: gradeOf(grade, path, number) };
  };
}

function beirParser(path: string): ParseLine {
  let isHeader = true;
  return ({ number, text }) => {
    if (isHeader) {
      isHeader = false;
      return undefined;
    }
    const [query = "", passage = "", grade, ...more] = text.split("\t").map((column) => column.trim());
    if (query === "" || passage === "" || grade === undefined || more.length > 0)
      throw new DataFormatError(
        path,
        number,
        `expected 3 columns between tabs (${BEIR_HEADER.join(", ")}), got ${JSON.stringify(text.slice(0, 80))}`,
      );
    return { query, passage, value: gradeOf(grade, path, number) };
  };
}

function gradeOf(text: string, path: string, line: number): number {
  const value = Number(text);
  if (!/^[+-]?\d+(\.0+)?$/.test(text) || !Number.isSafeInteger(value))
    throw new DataFormatError(
      path,
      line,
      `expected a grade, a whole number such as 1, got ${JSON.stringify(text)}`,
    );
  return value === 0 ? 0 : value;
}

export type QrelsFormat = "trec" | "beir" | "json";

/** Judgements as text, so that `readQrels` gives back equal ones. Throws `FileError` for an id that the format cannot hold. */
export function qrelsText(qrels: Qrels, as: QrelsFormat): string {
  if (as === "json") return `${JSON.stringify(nested(qrels), null, 1)}\n`;
  const lines = as === "beir" ? [BEIR_HEADER.join("\t")] : [];
  for (const [query, grades] of qrels)
    for (const [passage, grade] of grades) {
      requireId("query id", query, as);
      requireId("passage id", passage, as);
      lines.push(as === "beir" ? `${query}\t${passage}\t${grade}` : `${query} 0 ${passage} ${grade}`);
    }
  return `${lines.join("\n")}\n`;
}

function requireId(kind: string, id: string, as: "trec" | "beir"): void {
  if (as === "trec") requireColumn(kind, id, (message) => new FileError(message));
  else if (id.trim() !== id || id === "" || /^# |[\t\r\n]/.test(id))
    throw new FileError(
      `a BEIR file cannot hold the ${kind} ${JSON.stringify(id)}; write JSON or change the id`,
    );
}

function nested(qrels: Qrels): Record<string, Record<string, number>> {
  return Object.fromEntries([...qrels].map(([query, grades]) => [query, Object.fromEntries(grades)]));
}

/** Writes judgements in the form that the name says: `.json`, `.tsv` (BEIR), anything else TREC. Throws `FileError`. */
export async function writeQrels(path: string, qrels: Qrels): Promise<void> {
  const as = path.endsWith(".json") ? "json" : path.endsWith(".tsv") ? "beir" : "trec";
  await writeFileAtomic(path, qrelsText(qrels, as));
}
