/**
 * The identity of a corpus: SHA-256 over its passages in order, in a canonical form that does not depend on the
 * file they were read from (key order, dialect, line ends).
 */
import { createHash } from "node:crypto";
import { canonicalJson } from "../shared/hash.ts";
import type { Passage } from "./passage.ts";

export interface CorpusHasher {
  add(passage: Passage): void;
  /** The hash in hexadecimal; nothing may be added afterwards. */
  digest(): string;
}

/** Hashes passages one by one. */
export function corpusHasher(): CorpusHasher {
  const hash = createHash("sha256");
  return {
    add: ({ id, title, text, source, extra }) => {
      let line = JSON.stringify([id, title, text]);
      if (extra !== undefined) line += ` ${canonicalJson(extra)}`;
      if (source !== undefined) line += ` @${canonicalJson(source)}`;
      hash.update(`${line}\n`);
    },
    digest: () => hash.digest("hex"),
  };
}

/** The hash of a whole corpus in memory. */
export function corpusHash(passages: Iterable<Passage>): string {
  const hasher = corpusHasher();
  for (const passage of passages) hasher.add(passage);
  return hasher.digest();
}
