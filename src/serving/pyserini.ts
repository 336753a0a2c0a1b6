/**
 * The REST interface of Pyserini and Anserini, version 1: one index, named by the server. `k1` and `b` are parameters of
 * an index here, fixed when it is built, so that other values are refused rather than ignored.
 */
import type { Passage } from "../corpus/passage.ts";
import type { RetrieverIdentity, ScoredPassage } from "../retrieval/retriever.ts";
import type { AnswerWriter } from "./answer-writer.ts";
import { documentJson, scoreJson } from "./document-json.ts";
import { type Body, checkQueries, flag, invalid, text, wholeNumber } from "./fields.ts";
import { HttpError } from "./http-error.ts";
import type { ServerLimits } from "./limits.ts";

export interface PyseriniSearch {
  readonly query: string;
  readonly k: number;
  /** Whether a document is an object; otherwise it is its JSON as a text. */
  readonly parse: boolean;
}

export interface PyseriniAnswer {
  readonly index: string;
  readonly search: PyseriniSearch;
  readonly found: readonly ScoredPassage[];
}

/** The parameters of a search. Throws `HttpError` (422). */
export function readPyseriniSearch(
  parameters: Body,
  identity: RetrieverIdentity,
  limits: ServerLimits,
): PyseriniSearch {
  for (const name of ["k1", "b"]) checkFixed(name, parameters[name], identity);
  const query = text(parameters, "query");
  const k = wholeNumber(parameters, { keys: ["hits"], default: Math.min(10, limits.k), most: limits.k });
  checkQueries([query], k, limits);
  return { query, k, parse: flag(parameters, "parse", true) };
}

function checkFixed(name: string, asked: unknown, { method, parameters }: RetrieverIdentity): void {
  if (asked === undefined || Number(asked) === parameters[name]) return;
  const own = parameters[name] === undefined ? `no ${name} (${method})` : `${name} = ${parameters[name]}`;
  throw invalid(
    `the ${name} of this index: ${own}`,
    `${String(asked).slice(0, 40)}`,
    `leave ${name} out, or build an index with it`,
  );
}

/** Throws `HttpError` (404) for any index but the served one. */
export function checkIndex(asked: string, served: string): void {
  if (asked !== served)
    throw new HttpError(404, {
      expected: `the index ${JSON.stringify(served)}`,
      got: JSON.stringify(asked.slice(0, 100)),
      advice: `use /v1/${encodeURIComponent(served)}/…`,
    });
}

export function writeSearch(out: AnswerWriter, { index, search, found }: PyseriniAnswer): void {
  const query = JSON.stringify({ text: search.query });
  out.raw(`{"api":"v1","index":${JSON.stringify(index)},"query":${query},"candidates":`);
  out.list([...found.entries()], (inner, [place, { passage, score }]) => {
    inner.raw(
      `{"docid":${JSON.stringify(passage.id)},"score":${scoreJson(score)},"rank":${place + 1},"doc":`,
    );
    writeShown(inner, passage, search.parse).raw("}");
  });
  out.raw("}");
}

export function writeDocument(
  out: AnswerWriter,
  { index, passage, parse }: { readonly index: string; readonly passage: Passage; readonly parse: boolean },
): void {
  out.raw(`{"api":"v1","index":${JSON.stringify(index)},"docid":${JSON.stringify(passage.id)},"doc":`);
  writeShown(out, passage, parse).raw("}");
}

function writeShown(out: AnswerWriter, passage: Passage, parse: boolean): AnswerWriter {
  return parse ? out.document(passage) : out.raw(JSON.stringify(documentJson(passage)));
}
