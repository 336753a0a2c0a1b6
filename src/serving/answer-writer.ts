/**
 * Writes answers with found passages as UTF-8 bytes: cached documents are copied, the few characters between them are
 * written. It grows by doubling and refuses to grow beyond the limit of an answer, since only now is it known how
 * long the passages are.
 */
import type { Passage } from "../corpus/passage.ts";
import type { ScoredPassage } from "../retrieval/retriever.ts";
import type { DocumentCache } from "./document-cache.ts";
import { scoreJson } from "./document-json.ts";
import { invalid } from "./fields.ts";

/** Code units up to which a text is written letter by letter. */
const SHORT = 32;

export class AnswerWriter {
  readonly #documents: DocumentCache;
  readonly #most: number;
  #bytes: Buffer;
  #length = 0;

  /** For an answer of at most `most` bytes with about `passages` documents. */
  constructor(documents: DocumentCache, most: number, passages = 1) {
    this.#documents = documents;
    this.#most = most;
    this.#bytes = Buffer.allocUnsafe(Math.min(most, 1024 + Math.min(passages, 1024) * 1280));
  }

  /** JSON as it is. */
  raw(json: string): this {
    this.#reserve(json.length * 3); // a UTF-16 code unit is at most 3 bytes
    if (json.length > SHORT || !this.#writeAscii(json)) this.#length += this.#bytes.write(json, this.#length);
    return this;
  }

  /** Writes a short text letter by letter, which costs less than a call into the buffer; false unless it is ASCII. */
  #writeAscii(text: string): boolean {
    const bytes = this.#bytes;
    const start = this.#length;
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i);
      if (code > 127) return false;
      bytes[start + i] = code;
    }
    this.#length += text.length;
    return true;
  }

  document(passage: Passage): this {
    const json = this.#documents.get(passage);
    this.#reserve(json.length);
    this.#bytes.set(json, this.#length);
    this.#length += json.length;
    return this;
  }

  /** A list with what `write` writes for each entry. */
  list<T>(entries: readonly T[], write: (out: AnswerWriter, entry: T) => void): this {
    this.raw("[");
    for (let i = 0; i < entries.length; i++) {
      if (i > 0) this.raw(",");
      write(this, entries[i] as T);
    }
    return this.raw("]");
  }

  /** What was written; the writer must not be used again. */
  finish(): Uint8Array<ArrayBuffer> {
    const { buffer, byteOffset } = this.#bytes;
    return new Uint8Array(buffer as ArrayBuffer, byteOffset, this.#length);
  }

  #reserve(more: number): void {
    const needed = this.#length + more;
    if (needed <= this.#bytes.length && needed <= this.#most) return;
    if (needed > this.#most)
      throw invalid(
        `an answer of at most ${this.#most} bytes`,
        "a longer one",
        "ask for fewer passages or send several calls",
      );
    const grown = Buffer.allocUnsafe(Math.max(needed, Math.min(this.#most, 2 * this.#bytes.length)));
    this.#bytes.copy(grown, 0, 0, this.#length);
    this.#bytes = grown;
  }
}

/** How one found passage is written. */
export type WriteFound = (out: AnswerWriter, found: ScoredPassage) => void;

/** `{"document": {...}, "score": …}`. */
export const scoredDocument: WriteFound = (out, { passage, score }) => {
  out
    .raw('{"document":')
    .document(passage)
    .raw(`,"score":${scoreJson(score)}}`);
};

export const plainDocument: WriteFound = (out, { passage }) => {
  out.document(passage);
};

/** A list for each query. */
export function lists(
  out: AnswerWriter,
  results: readonly (readonly ScoredPassage[])[],
  write: WriteFound,
): AnswerWriter {
  return out.list(results, (inner, found) => {
    inner.list(found, write);
  });
}
