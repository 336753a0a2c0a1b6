/**
 * The record of one episode. A trajectory is a list of segments, each with its source; the loss mask, token
 * counts, searches and everything else are computed from it by pure functions. The mask is carried by the
 * source of a segment, never inferred from text.
 */

import type { Question } from "../corpus/question.ts";
import type { StopReason } from "../environment/stop-reason.ts";
import type { Turn } from "../environment/turn.ts";
import type { PolicyUsage } from "./usage.ts";

export interface Segment {
  readonly source: "prompt" | "policy" | "environment";
  readonly text: string;
  /** The ids that were fed or sampled; text is never tokenised again. Empty when the policy has no tokenizer. */
  readonly tokens: readonly number[];
  /** Policy segments only: log-probability of each token when it was sampled. */
  readonly logprobs?: readonly number[];
}

export type { Turn };

export interface Trajectory {
  readonly question: Question;
  /** Trajectories of one question in one step share a group; unique across data sets. */
  readonly group: string;
  /** Index within the group, from 0. */
  readonly sample: number;
  readonly segments: readonly Segment[];
  readonly turns: readonly Turn[];
  readonly answer: string | undefined;
  readonly stopReason: StopReason;
  /** For infrastructure failures: what failed. */
  readonly failure?: string;
  /** What the policy's calls came to; absent in older records. */
  readonly usage?: PolicyUsage;
  readonly time: { readonly policyMs: number; readonly retrievalMs: number; readonly totalMs: number };
}
