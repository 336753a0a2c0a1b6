/**
 * Where a completion ended. Servers take the stop string off the text, and many do not say which one was met or whether
 * the model itself ended its text. Of stop strings that close a tag, the one whose tag stands open was met.
 */
import type { FinishReason } from "../policy.ts";

export interface ServedEnd {
  readonly text: string;
  /** `stop` or `length`, as the server says. */
  readonly finish: "stop" | "length";
  /** The stop string or token that was met; null: none was; absent: the server does not say. */
  readonly met?: string | number | null;
}

export interface CompletedText {
  /** With the stop string that was met. */
  readonly text: string;
  readonly finishReason: FinishReason;
  /** Whether `text` is the server's own: nothing was put back or cut off. */
  readonly isAsServed: boolean;
}

/**
 * The stop strings to send to a server that takes the one it met off the text. Where it does not say which one that was
 * (`tells` false), strings that leave no trace in the text are kept from it, such as a planner's `<call_answer_llm>` beside
 * `</search>`: a text that ended there would look like one that the model ended. The text is cut at them afterwards.
 */
export function stopsToSend(stop: readonly string[], tells: boolean): readonly string[] {
  return tells || stop.length === 1 ? stop : stop.filter(isClosingTag);
}

/** The text as the policy contract wants it: up to the first stop string, which is part of it. */
export function completeText({ text, finish, met }: ServedEnd, stop: readonly string[]): CompletedText {
  const end = firstEnd(text, stop);
  if (end !== undefined)
    return { text: text.slice(0, end), finishReason: "stop", isAsServed: end === text.length };
  if (finish === "length") return { text, finishReason: "length", isAsServed: true };
  const found = met === undefined ? openedStop(text, stop) : stop.find((candidate) => candidate === met);
  if (found === undefined) return { text, finishReason: "endOfText", isAsServed: true };
  return { text: text + found, finishReason: "stop", isAsServed: false };
}

/** Where the stop string ends that is completed first. */
function firstEnd(text: string, stop: readonly string[]): number | undefined {
  const ends = stop.flatMap((candidate) => {
    const start = text.indexOf(candidate);
    return start < 0 ? [] : [start + candidate.length];
  });
  return ends.length === 0 ? undefined : Math.min(...ends);
}

/** The stop string that the server must have taken off `text`, as far as the text shows it. */
function openedStop(text: string, stop: readonly string[]): string | undefined {
  const closing = stop.filter(isClosingTag);
  const opened = closing
    .map((candidate) => ({ candidate, at: text.lastIndexOf(candidate.replace("</", "<")) }))
    .filter(({ at }) => at >= 0)
    .sort((a, b) => b.at - a.at);
  if (opened[0] !== undefined) return opened[0].candidate;
  // A text without open tags, all of whose stop strings are closing tags, was ended by the model.
  return stop.length === 1 && closing.length === 0 ? stop[0] : undefined;
}

function isClosingTag(text: string): boolean {
  return /^<\/[^<>]+>$/.test(text);
}
