/** The passages of an index by position in the corpus, wherever they are kept (memory or disk). */
import type { Passage } from "../corpus/passage.ts";

export interface PassageStore {
  readonly count: number;
  /** The passage at a position from 0 to `count` - 1. */
  get(position: number): Passage;
}
