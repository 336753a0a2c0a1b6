/** What one turn of the policy did and what the world answered. */
import type { ScoredPassage } from "../retrieval/retriever.ts";
import type { Action } from "./action.ts";

export interface Turn {
  readonly action: Action;
  /** What was found, best first: by the turn's search, if it was carried out, or for the prompt in mode `rag`. */
  readonly passages?: readonly ScoredPassage[];
  /** For several queries in one turn: the index of the query that found each of `passages` first. */
  readonly foundBy?: readonly number[];
  /** Of the first turn: what the prompt shows of a search with the question, in mode `search` with `retrieveFirst`. */
  readonly given?: readonly ScoredPassage[];
  /** True when passages were shortened to fit the observation limit. */
  readonly truncated?: boolean;
}
