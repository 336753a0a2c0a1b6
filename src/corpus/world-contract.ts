/** What every built-in world offers: facts as passages, and questions about them split by the entity they name. */
import type { Passage } from "./passage.ts";
import type { Question } from "./question.ts";

/** Where the facts come from. */
export interface WorldSource {
  readonly name: string;
  /** SPDX identifier of the licence. */
  readonly licence: string;
  readonly url?: string;
}

export type QuestionSplits = Readonly<Record<"train" | "validation" | "test", readonly Question[]>>;

export interface World {
  readonly name: string;
  readonly sources: readonly WorldSource[];
  readonly passages: readonly Passage[];
  /** The entity that a question names is named in one split only, but for familiar questions (`lab`). */
  readonly questions: QuestionSplits;
}
