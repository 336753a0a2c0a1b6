/**
 * One trajectory as text for a terminal, coloured by the source of each segment: what was given is dim, what the
 * policy wrote is bright, what the environment answered is blue. Text from models and documents cannot drive the
 * terminal: control characters are shown, not sent.
 */
import { citedPassages, hasAbstained } from "../reward/citations.ts";
import type { Trajectory } from "../rollout/trajectory.ts";

export interface TranscriptOptions {
  readonly color: boolean;
  readonly reward?: number;
  /** Leaves the prompt out, which is the same for every question. Default false. */
  readonly hidePrompt?: boolean;
}

const styles = { prompt: "2", policy: "1", environment: "34", label: "36", good: "32", bad: "31" } as const;
type Style = keyof typeof styles;

/** True when a stream may be coloured: a terminal, and the user did not set `NO_COLOR` (no-color.org). */
export function allowsColor(isTerminal: boolean, noColor: string | undefined): boolean {
  return isTerminal && !noColor;
}

/** The whole episode with question, gold answers where there are some, answer and reward; ends with a line end. */
export function renderTranscript(trajectory: Trajectory, options: TranscriptOptions): string {
  const paint = (style: Style, text: string): string =>
    paintLines(options.color ? styles[style] : undefined, text);
  const { question, answer } = trajectory;
  const lines = [
    `${paint("label", "question")} ${visibleText(question.text)}`,
    ...(question.goldAnswers.length === 0
      ? []
      : [`${paint("label", "gold    ")} ${question.goldAnswers.map(visibleText).join(" | ")}`]),
    ...trajectory.segments
      .filter(({ source }) => !(options.hidePrompt && source === "prompt"))
      .map(({ source, text }) => paint(source, visibleText(text).trim()))
      .filter((text) => text !== ""),
  ];
  const outcome = answer === undefined ? unanswered(trajectory) : visibleText(answer);
  const { reward } = options;
  const worth =
    reward === undefined ? "" : paint(reward > 0 ? "good" : "bad", `  reward ${Number(reward.toFixed(3))}`);
  lines.push(`${paint("label", "answer  ")} ${outcome}${worth}`);
  for (const { number, passage } of citedPassages(trajectory) ?? [])
    lines.push(
      `${paint("label", "cites   ")} [${number}] ${passage ? visibleText(passage.title || passage.id) : "no such passage"}`,
    );
  return `${lines.join("\n")}\n`;
}

function unanswered(trajectory: Trajectory): string {
  return hasAbstained(trajectory)
    ? "none: the agent says that it does not know"
    : `no answer (${trajectory.stopReason})`;
}

/**
 * Text with every character that could drive a terminal or turn the reading direction replaced by its code, such
 * as `\x1b`; line ends and tabs stay.
 */
export function visibleText(text: string): string {
  return text
    .replace(/\r\n/g, "\n")
    .replace(/[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, (character) => {
      if (character === "\n" || character === "\t") return character;
      const code = character.charCodeAt(0);
      return code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16)}`;
    });
}

/** Each line has its own codes, so that a pager or a cut line never leaks a colour. */
function paintLines(code: string | undefined, text: string): string {
  if (code === undefined) return text;
  return text
    .split("\n")
    .map((line) => (line === "" ? "" : `\u001b[${code}m${line}\u001b[0m`))
    .join("\n");
}
