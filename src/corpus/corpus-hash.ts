/**
 * The identity of a corpus: SHA-256 over its passages in order, in a canonical form that does not depend on the
 * file they were read from (key order, dialect, line ends).
 */
import { createHash } from "node:crypto";
import { canonicalJson } from "../shared/hash.ts";
import type { Passage } from "./passage.ts";
import { type PassageFields, passageFields } from "./passage-record.ts";

const PENDING_CHARACTERS = 1 << 16;

export interface CorpusHasher {
  /** `fields` are those of the passage, where they are at hand. */
  add(passage: Passage, fields?: PassageFields): void;
  /** The hash in hexadecimal; nothing may be added afterwards. */
  digest(): string;
}

/** Hashes passages one by one. */
export function corpusHasher(): CorpusHasher {
  const hash = createHash("sha256");
  // A call for each passage would take as long as the hashing.
  let pending: string[] = [];
  let length = 0;
  const flush = (): void => {
    hash.update(pending.join(""));
    pending = [];
    length = 0;
  };
  return {
    add: (passage, fields = passageFields(passage)) => {
      const { source, extra } = passage;
      let line = `[${fields.id},${fields.title},${fields.text}]`;
      if (extra !== undefined) line += ` ${canonicalJson(extra)}`;
      if (source !== undefined) line += ` @${canonicalJson(source)}`;
      pending.push(line, "\n");
      length += line.length;
      if (length > PENDING_CHARACTERS) flush();
    },
    digest: () => {
      flush();
      return hash.digest("hex");
    },
  };
}

/** The hash of a whole corpus in memory. */
export function corpusHash(passages: Iterable<Passage>): string {
  const hasher = corpusHasher();
  for (const passage of passages) hasher.add(passage);
  return hasher.digest();
}
