/**
 * The identity of a corpus: SHA-256 over its passages in order, in a canonical form that does not depend on the
 * file they were read from (key order, dialect, line ends).
 */
import { createHash } from "node:crypto";
import { canonicalJson } from "../shared/hash.ts";
import type { Passage } from "./passage.ts";
import { type PassageFields, passageFields } from "./passage-record.ts";

const PENDING_BYTES = 1 << 18;

export interface CorpusHasher {
  /** `fields` are those of the passage, where they are at hand. */
  add(passage: Passage, fields?: PassageFields): void;
  /** The hash in hexadecimal; nothing may be added afterwards. */
  digest(): string;
}

/** Hashes passages one by one. */
export function corpusHasher(): CorpusHasher {
  const hash = createHash("sha256");
  // A call for each passage would take as long as the hashing, and joined texts would be made only to be thrown away.
  const pending = Buffer.allocUnsafe(PENDING_BYTES);
  let used = 0;
  const flush = (): void => {
    hash.update(pending.subarray(0, used));
    used = 0;
  };
  const write = (text: string): void => {
    const most = text.length * 3; // a UTF-16 code unit is at most 3 bytes
    if (used + most > PENDING_BYTES) flush();
    if (most > PENDING_BYTES) hash.update(text);
    else used += pending.write(text, used);
  };
  return {
    add: (passage, fields = passageFields(passage)) => {
      const { source, extra } = passage;
      write(`[${fields.id},${fields.title},`);
      write(fields.text);
      write("]");
      if (extra !== undefined) write(` ${canonicalJson(extra)}`);
      if (source !== undefined) write(` @${canonicalJson(source)}`);
      write("\n");
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
