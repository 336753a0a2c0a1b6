/** From a document to its passages: pieces of the text with the title carried and the place of origin kept. */
import { type ChunkOptions, type CountTokens, chunkSpans } from "./chunk.ts";
import type { DocumentText } from "./formats/document.ts";
import type { Passage, PassageSource } from "./passage.ts";

export interface CutOptions {
  readonly chunk: ChunkOptions;
  readonly countTokens?: CountTokens | undefined;
}

/**
 * The passages of a document in order. A document that stays whole keeps its id; the pieces of one that is cut are
 * `id#0`, `id#1` and so on. `text` is the document's text from `source.start` to `source.end`, without blanks at
 * either end. Throws `ConfigError` as `chunkSpans` does.
 */
export function cutDocument(id: string, document: DocumentText, options: CutOptions): Passage[] {
  const { title, text, pageStarts, extra } = document;
  const spans = chunkSpans(text, options.chunk, options.countTokens)
    .map(({ start, end }) => trimSpan(text, start, end))
    .filter(({ start, end }) => start < end);
  return spans.map(({ start, end }, i) => {
    const page = pageStarts && { page: pageOf(pageStarts, start) };
    const source: PassageSource = { document: id, start, end, ...page };
    const own = spans.length === 1 ? id : `${id}#${i}`;
    return { id: own, title, text: text.slice(start, end), source, ...(extra && { extra }) };
  });
}

function trimSpan(text: string, start: number, end: number): { start: number; end: number } {
  const piece = text.slice(start, end);
  return { start: start + piece.length - piece.trimStart().length, end: start + piece.trimEnd().length };
}

/** The page, from 1, on which a position lies. */
function pageOf(pageStarts: readonly number[], position: number): number {
  return pageStarts.findLastIndex((start) => start <= position) + 1;
}
