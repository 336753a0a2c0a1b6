/**
 * A trajectory as the report shows it: text cut into spans that carry what is known about them. Everything that
 * needs thought happens here, so that the script in the page only draws. Control characters and those that turn
 * the reading direction are shown as codes.
 */
import { questionKey } from "../../corpus/question.ts";
import type { Turn } from "../../rollout/trajectory.ts";
import type { TrajectoryRecord } from "../trajectory-record.ts";
import { visibleText } from "../transcript.ts";
import { findMarks, goldAnswer, goldPassage, type Mark } from "./gold-marks.ts";

export interface SpanView {
  readonly text: string;
  /** Sum of `goldAnswer` (1) and `goldPassage` (2); absent = 0. */
  readonly gold?: number;
  /** Of a sampled token. */
  readonly logprob?: number;
}

export interface SegmentView {
  readonly source: "prompt" | "policy" | "environment";
  readonly spans: readonly SpanView[];
  readonly tokenCount: number;
  /** What the search before this observation found. */
  readonly passages?: readonly { readonly title: string; readonly score: number; readonly isGold: boolean }[];
}

export interface TrajectoryView {
  /** Name of the file it came from, such as `before`, `after`, `grpo`. */
  readonly set: string;
  readonly stage: string;
  readonly step: number;
  /** Identifies the question in all sets. */
  readonly key: string;
  readonly question: string;
  readonly dataset: string;
  readonly hops?: number;
  readonly goldAnswers: readonly string[];
  readonly answer?: string;
  readonly stopReason: string;
  readonly failure?: string;
  readonly reward?: number;
  readonly advantage?: number;
  readonly scores?: Readonly<Record<string, number>>;
  readonly searches: number;
  readonly segments: readonly SegmentView[];
}

export function viewTrajectory(set: string, record: TrajectoryRecord): TrajectoryView {
  const { trajectory, stage, step, reward, advantage, scores } = record;
  const { question, answer, stopReason, failure } = trajectory;
  return {
    set,
    stage,
    step,
    key: questionKey(question),
    question: visibleText(question.text),
    dataset: question.dataset,
    goldAnswers: question.goldAnswers.map(visibleText),
    stopReason,
    searches: trajectory.turns.filter(({ passages }) => passages !== undefined).length,
    segments: viewSegments(record),
    ...(question.hops !== undefined && { hops: question.hops }),
    ...(answer !== undefined && { answer: visibleText(answer) }),
    ...(failure !== undefined && { failure: visibleText(failure) }),
    ...(reward !== undefined && { reward }),
    ...(advantage !== undefined && { advantage }),
    ...(scores && { scores }),
  };
}

function viewSegments({ trajectory, pieces }: TrajectoryRecord): SegmentView[] {
  const { question, segments, turns } = trajectory;
  const isGold = (id: string): boolean => question.goldPassages.includes(id);
  let turn: Turn | undefined;
  let turnCount = 0;
  return segments.map((segment, index): SegmentView => {
    if (segment.source === "policy") turn = turns[turnCount++];
    const found = segment.source === "environment" ? turn?.passages : undefined;
    const goldTexts =
      found?.filter(({ passage }) => isGold(passage.id)).map(({ passage }) => passage.text) ?? [];
    const marks = segment.source === "prompt" ? [] : findMarks(segment.text, question.goldAnswers, goldTexts);
    return {
      source: segment.source,
      tokenCount: segment.tokens.length,
      spans: hasPieces(segment.tokens, pieces?.[index])
        ? tokenSpans(pieces?.[index] ?? [], segment.logprobs ?? [], marks)
        : trimEnds(textSpans(segment.text, marks)),
      ...(found && {
        passages: found.map(({ passage, score }) => ({
          title: visibleText(passage.title),
          score,
          isGold: isGold(passage.id),
        })),
      }),
    };
  });
}

function hasPieces(tokens: readonly number[], pieces: readonly string[] | undefined): boolean {
  return pieces !== undefined && pieces.length > 0 && pieces.length === tokens.length;
}

/** One span for each token; a token that touches a mark has it. */
export function tokenSpans(
  pieces: readonly string[],
  logprobs: readonly number[],
  marks: readonly Mark[],
): SpanView[] {
  let start = 0;
  return pieces.map((text, index): SpanView => {
    const end = start + text.length;
    const span = makeSpan(text, goldWithin(marks, start, end));
    start = end;
    const logprob = logprobs[index];
    return logprob === undefined ? span : { ...span, logprob };
  });
}

/** The text cut where a mark begins or ends. */
export function textSpans(text: string, marks: readonly Mark[]): SpanView[] {
  const edges = [0, text.length, ...marks.flatMap(({ start, end }) => [start, end])];
  const cuts = [...new Set(edges)].sort((a, b) => a - b);
  return cuts
    .slice(1)
    .map((end, index) => [cuts[index] as number, end] as const)
    .map(([start, end]) => makeSpan(text.slice(start, end), goldWithin(marks, start, end)));
}

/** Line ends around a text say nothing; tokens keep theirs. */
function trimEnds(spans: readonly SpanView[]): SpanView[] {
  return spans.map((span, index) => {
    const start = index === 0 ? span.text.replace(/^\n+/, "") : span.text;
    return { ...span, text: index === spans.length - 1 ? start.replace(/\n+$/, "") : start };
  });
}

function makeSpan(text: string, gold: number): SpanView {
  const visible = visibleText(text);
  return gold === 0 ? { text: visible } : { text: visible, gold };
}

function goldWithin(marks: readonly Mark[], start: number, end: number): number {
  const touching = marks.filter((mark) => mark.start < end && start < mark.end);
  const has = (kind: Mark["kind"]): boolean => touching.some((mark) => mark.kind === kind);
  return (has("answer") ? goldAnswer : 0) + (has("passage") ? goldPassage : 0);
}
