/**
 * A trajectory on disk: one JSON object that holds the trajectory, when it was sampled, and what it was worth.
 * A passage that several searches found is stored once. Log-probabilities are rounded to 1e-6, the only thing
 * that a round trip changes.
 *
 * `pieces` is the text of each token of a policy segment, so that a reader without the tokenizer can show what
 * each log-probability belongs to; joined they give the text of the segment (the end-of-text token is empty).
 */
import { z } from "zod";
import type { Passage } from "../corpus/passage.ts";
import { type StopReason, stopReasons } from "../environment/stop-reason.ts";
import type { Trajectory } from "../rollout/trajectory.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";

/** A trajectory with its place in the run and its worth. */
export interface TrajectoryRecord {
  readonly stage: string;
  /** The step it was sampled in, from 1; for an evaluation the steps that were done. */
  readonly step: number;
  readonly trajectory: Trajectory;
  readonly reward?: number;
  /** The advantage of its policy tokens, where it was trained on. */
  readonly advantage?: number;
  /** Scores by name, such as `em`, `f1`, `retrievalRecall`; shares from 0 to 1. */
  readonly scores?: Readonly<Record<string, number>>;
  /** For each segment the text of each of its tokens; empty where unknown. */
  readonly pieces?: readonly (readonly string[])[];
}

const passageSchema = z.object({
  title: z.string(),
  text: z.string(),
  extra: z.exactOptional(z.record(z.string(), z.unknown())),
});
const actionSchema = z.discriminatedUnion("type", [
  z.object({ type: z.literal("search"), query: z.string() }),
  z.object({ type: z.literal("searches"), queries: z.array(z.string()) }),
  z.object({ type: z.literal("callGenerator") }),
  z.object({
    type: z.literal("answer"),
    answer: z.string(),
    cited: z.exactOptional(z.array(z.int())),
    abstains: z.exactOptional(z.boolean()),
  }),
  z.object({
    type: z.literal("invalid"),
    reason: z.enum(["noAction", "emptyQuery", "emptyAnswer", "searchNotAllowed", "malformed"]),
  }),
]);
const questionSchema = z.object({
  id: z.string(),
  dataset: z.string(),
  text: z.string(),
  goldAnswers: z.array(z.string()),
  goldPassages: z.array(z.string()),
  hops: z.exactOptional(z.number()),
  plan: z.exactOptional(z.array(z.string())),
  kind: z.exactOptional(z.string()),
  extra: z.exactOptional(z.record(z.string(), z.unknown())),
});
const segmentSchema = z.object({
  source: z.enum(["prompt", "policy", "environment"]),
  text: z.string(),
  tokens: z.array(z.int()),
  logprobs: z.exactOptional(z.array(z.number())),
  weightsStep: z.exactOptional(z.int()),
  pieces: z.exactOptional(z.array(z.string())),
});
const turnSchema = z.object({
  action: actionSchema,
  passages: z.exactOptional(z.array(z.object({ id: z.string(), score: z.number() }))),
  given: z.exactOptional(z.array(z.object({ id: z.string(), score: z.number() }))),
  foundBy: z.exactOptional(z.array(z.int())),
  truncated: z.exactOptional(z.boolean()),
});

const usageSchema = z.object({
  calls: z.int(),
  promptTokens: z.int(),
  cachedTokens: z.int(),
  completionTokens: z.int(),
  contextTokens: z.int(),
  dollars: z.exactOptional(z.number()),
});
const verdict = z.union([z.literal(0), z.literal(1)]);
const generatedSchema = z.object({
  answer: z.exactOptional(z.string()),
  isForced: z.boolean(),
  usage: usageSchema,
  ms: z.number(),
});
const assessmentSchema = z.object({
  score: verdict,
  ruleScore: verdict,
  directScore: z.exactOptional(verdict),
  ragScore: z.exactOptional(verdict),
  unreadable: z.int(),
  judged: z.int(),
  grade: z.exactOptional(z.number()),
  isGradeUnreadable: z.exactOptional(z.boolean()),
  usage: usageSchema,
  ms: z.exactOptional(z.number()),
});

/** The form on disk; unknown keys of later versions are left out when read. */
export const storedTrajectorySchema = z
  .object({
    stage: z.string(),
    step: z.int(),
    question: questionSchema,
    group: z.string(),
    sample: z.int(),
    segments: z.array(segmentSchema),
    turns: z.array(turnSchema),
    passages: z.record(z.string(), passageSchema),
    answer: z.exactOptional(z.string()),
    stopReason: z.enum(stopReasons as readonly [StopReason, ...StopReason[]]),
    failure: z.exactOptional(z.string()),
    usage: z.exactOptional(usageSchema),
    generated: z.exactOptional(generatedSchema),
    assessment: z.exactOptional(assessmentSchema),
    ranking: z.exactOptional(
      z.object({
        turn: z.int(),
        place: z.int(),
        query: z.string(),
        count: z.int(),
        grade: z.exactOptional(z.number()),
      }),
    ),
    time: z.object({ policyMs: z.number(), retrievalMs: z.number(), totalMs: z.number() }),
    reward: z.exactOptional(z.number()),
    advantage: z.exactOptional(z.number()),
    scores: z.exactOptional(z.record(z.string(), z.number())),
  })
  .refine(
    (stored) =>
      stored.turns.every(({ given = [], passages = [] }) =>
        [...given, ...passages].every(({ id }) => id in stored.passages),
      ),
    {
      message: "a turn names a passage that the record does not hold",
      path: ["turns"],
    },
  );
type StoredTrajectory = z.infer<typeof storedTrajectorySchema>;

/** The JSON form of a record. */
export function toStored(record: TrajectoryRecord): StoredTrajectory {
  const { trajectory: whole, pieces, stage, step, ...worth } = record;
  // A ranker's calls are records of their own.
  const { rankings: _, ...trajectory } = whole;
  const passages: StoredTrajectory["passages"] = {};
  const turns = trajectory.turns.map(({ passages: found, given, ...turn }) => {
    for (const { passage } of [...(given ?? []), ...(found ?? [])]) {
      const { id, ...content } = passage;
      passages[id] = content as StoredTrajectory["passages"][string];
    }
    return {
      ...turn,
      ...(given && { given: given.map(({ passage, score }) => ({ id: passage.id, score })) }),
      ...(found && { passages: found.map(({ passage, score }) => ({ id: passage.id, score })) }),
    };
  });
  const segments = trajectory.segments.map((segment, index) => ({
    ...segment,
    ...(segment.logprobs && { logprobs: segment.logprobs.map(roundLogprob) }),
    ...((pieces?.[index]?.length ?? 0) > 0 && { pieces: pieces?.[index] }),
  }));
  const stored = { stage, step, ...worth, ...trajectory, segments, turns, passages };
  return stored as unknown as StoredTrajectory;
}

/** The record of a JSON form that the schema has checked. */
export function fromStored(stored: StoredTrajectory): TrajectoryRecord {
  const { stage, step, reward, advantage, scores, passages, turns, segments, answer, ...rest } = stored;
  const passageOf = (id: string): Passage => ({ id, ...(passages[id] as Omit<Passage, "id">) });
  const trajectory: Trajectory = {
    ...rest,
    answer,
    segments: segments.map(({ pieces: _, ...segment }) => segment),
    turns: turns.map(({ passages: found, given, ...turn }) => ({
      ...turn,
      ...(given && { given: given.map(({ id, score }) => ({ passage: passageOf(id), score })) }),
      ...(found && { passages: found.map(({ id, score }) => ({ passage: passageOf(id), score })) }),
    })),
  };
  return {
    stage,
    step,
    trajectory,
    ...(reward !== undefined && { reward }),
    ...(advantage !== undefined && { advantage }),
    ...(scores && { scores }),
    ...(segments.some(({ pieces }) => pieces) && { pieces: segments.map(({ pieces }) => pieces ?? []) }),
  };
}

/**
 * The text of each token of the policy's segments, for `TrajectoryRecord.pieces`. A token that ends within a
 * character gives an empty piece, and the token that completes the character gives it whole.
 */
export function piecesOf(trajectory: Trajectory, tokenizer: Pick<Tokenizer, "decode">): string[][] {
  return trajectory.segments.map(({ source, tokens, text }) =>
    source === "policy" ? tokenPieces(tokens, text, tokenizer) : [],
  );
}

function tokenPieces(
  tokens: readonly number[],
  text: string,
  tokenizer: Pick<Tokenizer, "decode">,
): string[] {
  const pieces: string[] = [];
  let shown = 0;
  for (let count = 1; count <= tokens.length; count++) {
    const prefix = tokenizer.decode(tokens.slice(0, count));
    const isWhole = text.startsWith(prefix) && prefix.length > shown;
    pieces.push(isWhole ? text.slice(shown, prefix.length) : "");
    if (isWhole) shown = prefix.length;
  }
  return pieces;
}

function roundLogprob(logprob: number): number {
  return Math.round(logprob * 1e6) / 1e6;
}
