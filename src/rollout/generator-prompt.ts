/**
 * What the frozen generator reads: the question alone (`direct`), with the passages that the question itself finds
 * (`rag`), or with the record of a planner's search. `record` asks in words and shows everything that was thought, asked
 * and found; `bare` is the format in which this library's small models learn to read: each query with its passages,
 * and the beginning of an answer. Text from outside can neither open nor close a tag.
 */
import type { Question } from "../corpus/question.ts";
import type { EnvironmentOptions } from "../environment/environment-options.ts";
import { neutralizer } from "../environment/neutralize.ts";
import { type ObservationFormat, observationFormat, renderObservation } from "../environment/observation.ts";
import { plannerTags } from "../environment/planner-codec.ts";
import { prepareQuestion } from "../environment/prompt.ts";
import { compactCodec, searchR1Tags } from "../environment/search-r1-codec.ts";
import type { ScoredPassage } from "../retrieval/retriever.ts";
import { sha256 } from "../shared/hash.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import type { Segment, Turn } from "./trajectory.ts";

export const generatorPromptNames = ["record", "bare"] as const;
export type GeneratorPromptName = (typeof generatorPromptNames)[number];

/** What a planner has done so far. */
export interface SearchRecord {
  readonly question: Question;
  readonly segments: readonly Segment[];
  readonly turns: readonly Turn[];
}

export interface GeneratorPromptSetting {
  readonly prompt: GeneratorPromptName;
  /** How passages are shown, and how long they may be. */
  readonly environment: EnvironmentOptions;
  /** Of the generator. */
  readonly tokenizer: Tokenizer | undefined;
}

const ending =
  "Write the answer between <answer> and </answer>, short and without explanation. For example, <answer> Beijing </answer>.";
const texts = {
  direct: `Answer a question from what you know. ${ending}\nQuestion: {question}\n`,
  rag: `Answer a question. Passages that may help come first; some may not. ${ending}\nPassages:\n{record}\nQuestion: {question}\n`,
  record: `Another model has searched for what is needed to answer a question. Its notes, its queries and the passages found come first; some may not help. Answer from them, and from what you know where they are silent. ${ending}\nRecord of the search:\n{record}\nQuestion: {question}\n`,
} as const;

/** The prompt of a generator that answers from what a planner has found. */
export function textFromRecord(record: SearchRecord, setting: GeneratorPromptSetting): string {
  const format = formatOf(setting);
  if (setting.prompt === "bare") {
    const blocks = record.turns.flatMap((turn) => blocksOf(turn, format));
    return bare(record.question, blocks.join(""), format);
  }
  return fill("record", record.question, { shown: shownRecord(record, format), format });
}

/** Everything that was thought, asked and found, for whoever judges it. */
export function searchText(record: SearchRecord, setting: Omit<GeneratorPromptSetting, "prompt">): string {
  return shownRecord(record, formatOf(setting));
}

function shownRecord({ segments }: SearchRecord, { neutralize }: ObservationFormat): string {
  const text = segments.filter(({ source }) => source !== "prompt").map((segment) => segment.text);
  return neutralize(text.join("")).trim();
}

/** The prompt of a generator that answers from what it knows. */
export function textAlone(question: Question, setting: GeneratorPromptSetting): string {
  const format = formatOf(setting);
  return setting.prompt === "bare"
    ? bare(question, "", format)
    : fill("direct", question, { shown: "", format });
}

/** The prompt of a generator that answers from the passages which the question itself found. */
export function textWithPassages(
  question: Question,
  passages: readonly ScoredPassage[],
  setting: GeneratorPromptSetting,
): string {
  const format = formatOf(setting);
  if (setting.prompt === "bare") return bare(question, block(question.text, passages, format), format);
  const rendered = passages.map(({ passage }, index) => format.template.render(passage, index + 1));
  return fill("rag", question, { shown: format.neutralize(rendered.join("")).trim(), format });
}

/** SHA-256 of all texts of a prompt, for contracts. */
export function generatorPromptHash(prompt: GeneratorPromptName): string {
  return sha256(
    JSON.stringify(prompt === "bare" ? ["bare", compactCodec.renderObservation("{passages}")] : texts),
  );
}

function formatOf({ environment, tokenizer }: Omit<GeneratorPromptSetting, "prompt">): ObservationFormat {
  const format = observationFormat(environment, tokenizer, compactCodec);
  const reserved = [...plannerTags, ...searchR1Tags, ...(tokenizer?.specialTokens ?? [])];
  return { ...format, neutralize: neutralizer(reserved) };
}

/** Each query of a turn with the passages that it found first. */
function blocksOf({ action, passages = [], foundBy = [] }: Turn, format: ObservationFormat): string[] {
  if (action.type !== "searches") return [];
  return action.queries.map((query, index) =>
    block(
      query,
      passages.filter((_, position) => foundBy[position] === index),
      format,
    ),
  );
}

function block(query: string, passages: readonly ScoredPassage[], format: ObservationFormat): string {
  const safe = format.neutralize(query);
  return compactCodec.render({ type: "search", query: safe }) + renderObservation(passages, "", format).text;
}

function bare(question: Question, blocks: string, { neutralize }: ObservationFormat): string {
  return `Question: ${neutralize(prepareQuestion(question.text))}\n${blocks}<answer>`;
}

function fill(
  name: keyof typeof texts,
  question: Question,
  { shown, format }: { readonly shown: string; readonly format: ObservationFormat },
): string {
  const values: Readonly<Record<string, string>> = {
    question: format.neutralize(prepareQuestion(question.text)),
    record: shown,
  };
  return texts[name].replace(/\{(\w+)\}/g, (_, key: string) => values[key] as string);
}
