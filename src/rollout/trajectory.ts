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
  /** Policy segments sampled ahead of training: steps of the stage behind the weights that sampled, at least. */
  readonly weightsStep?: number;
}

export type { Turn };

/** What another model, which is not trained, answered when a planner had handed over. */
export interface GeneratedAnswer {
  /** Absent where its reply held none, or everything did not fit into its context. */
  readonly answer?: string;
  /** True when the planner did not ask for it and its rounds were used up. */
  readonly isForced: boolean;
  readonly usage: PolicyUsage;
  readonly ms: number;
}

/** What judges found out about an episode; scores are 1 for right and 0 for wrong. */
export interface Assessment {
  /** Of the answer, by the judge. */
  readonly score: 0 | 1;
  /** Of the answer, by the rule, whoever the judge is. */
  readonly ruleScore: 0 | 1;
  /**
   * Of what the generator answers without any passage, and with those that the question itself finds; absent where the
   * reward does not need them.
   */
  readonly directScore?: 0 | 1;
  readonly ragScore?: 0 | 1;
  /** Judgements of answers that were no yes and no no, of how many were asked of a model. */
  readonly unreadable: number;
  readonly judged: number;
  /** How sensible the searching was, 1 to 5; absent where nobody graded it or the grade could not be read. */
  readonly grade?: number;
  readonly isGradeUnreadable?: boolean;
  /** What judging cost, and what the generator's answers without a planner did; 0 where they were known already. */
  readonly usage: PolicyUsage;
  /** Time waited for both; absent in older records. */
  readonly ms?: number;
}

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
  /** Mode planner: the generator's answer; absent where it was never called. */
  readonly generated?: GeneratedAnswer;
  /** What judges say of the episode, once it was judged. */
  readonly assessment?: Assessment;
  /** What the policy's calls came to; absent in older records. */
  readonly usage?: PolicyUsage;
  /** Of an agent with a generative ranker: the ranker's calls in order, each a trajectory of its own. */
  readonly rankings?: readonly Trajectory[];
  /** Of a call of a ranker: which one. `group` and `sample` are those of the agent's trajectory. */
  readonly ranking?: RankingLink;
  readonly time: { readonly policyMs: number; readonly retrievalMs: number; readonly totalMs: number };
}

/** Where in an agent's episode a ranker was called. */
export interface RankingLink {
  /** Index of the agent's turn, from 0. */
  readonly turn: number;
  /** Index among the ranker's calls of the episode. */
  readonly place: number;
  /** What the agent searched for. */
  readonly query: string;
  /** Passages that were asked for. */
  readonly count: number;
  /** What a judge gave a valid ranking, 0 to 1; absent where none was asked. */
  readonly grade?: number;
}
