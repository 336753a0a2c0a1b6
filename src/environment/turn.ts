/** What one turn of the policy did and what the world answered. */
import type { ScoredPassage } from "../retrieval/retriever.ts";
import type { Action } from "./action.ts";

export interface Turn {
  readonly action: Action;
  /** What the search found, best first; only for a search that was carried out. */
  readonly passages?: readonly ScoredPassage[];
  /** True when passages were shortened to fit the observation limit. */
  readonly truncated?: boolean;
}
