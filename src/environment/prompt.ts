/**
 * Named prompts: the text that opens an episode, by mode. In mode `search`, `search-r1` says what the published Search-R1
 * prompt says, in its order and with its tags and example, in our words; `bare` is the question alone, for small models
 * that learn the format from demonstrations; `planner` explains the two tools of a search planner. In `direct` and `rag` there is no search and no reasoning: the prompts ask
 * for the answer alone, between tags (`search-r1`) or as plain text (`answer`). Chat templates: see `opening.ts`.
 */
import { assert } from "../errors.ts";
import { type CodecName, findCodec } from "./codecs.ts";

export const promptNames = [
  "search-r1",
  "bare",
  "answer",
  "planner",
  "reason",
  "ircot",
  "search-o1",
  "evidence",
  "cosearch",
] as const;
export type PromptName = (typeof promptNames)[number];

/** `direct`: answer at once; `rag`: the same after the passages found by the question itself. */
export const episodeModes = ["search", "direct", "rag", "planner"] as const;
export type EpisodeMode = (typeof episodeModes)[number];

export interface PromptOptions {
  readonly prompt: PromptName;
  readonly mode: EpisodeMode;
  readonly codec: CodecName;
  /** Answered questions that are shown before the one that is asked. */
  readonly examples: readonly { readonly question: string; readonly answer: string }[];
}

export interface PromptContent {
  /** Safe and prepared. */
  readonly question: string;
  /** Mode `rag`: the passages as the codec wraps them; else empty. */
  readonly information: string;
}

const tagged = [
  "Write the answer between <answer> and </answer>, short and without explanation.",
  "For example, <answer> Beijing </answer>.",
];

const templates: Readonly<Record<PromptName, Readonly<Partial<Record<EpisodeMode, string>>>>> = {
  "search-r1": {
    search: `${[
      "Give the answer to a question.",
      "Whenever something new is known, think about it between <think> and </think> before anything else.",
      "When a fact is missing, ask a search engine with <search> query </search>; what it finds comes back between <information> and </information>.",
      "There is no limit to the number of searches.",
      "As soon as nothing more is needed, write the answer between <answer> and </answer>, short and without explanation.",
      "For example, <answer> Beijing </answer>.",
      "Question: {question}",
    ].join(" ")}\n`,
    direct: `${["Give the answer to a question.", ...tagged].join(" ")}\n{examples}Question: {question}\n`,
    rag: `${[
      "Give the answer to a question. Passages that may help stand between <information> and </information>.",
      ...tagged,
    ].join(" ")}\n{information}\n{examples}Question: {question}\n`,
  },
  planner: {
    planner: `${[
      "Find what is needed to answer a question. You do not answer it: another model will, from everything you have written and found.",
      "Whenever something new is known, think about it between <think> and </think> before anything else.",
      "You have two tools.",
      "The first searches: write one query or several, each on a line of its own, between <search> and </search>; what they find comes back between <information> and </information>. Ask for independent facts at once.",
      "The second hands over: write <call_answer_llm> as soon as what was found is enough to answer. This ends your work.",
      "Search at least once, and no more than is needed.",
      "Question: {question}",
    ].join(" ")}\n`,
  },
  bare: {
    planner: "Question: {question}\n",
    search: "Question: {question}\n",
    direct: "{examples}Question: {question}\n",
    rag: "{information}\n{examples}Question: {question}\n",
  },
  reason: {
    direct: `${["Give the answer to a question. First think step by step between <think> and </think>.", ...tagged].join(" ")}\n{examples}Question: {question}\n`,
    rag: `${[
      "Give the answer to a question. Passages that may help stand between <information> and </information>.",
      "First think step by step between <think> and </think>.",
      ...tagged,
    ].join(" ")}\n{information}\n{examples}Question: {question}\n`,
  },
  evidence: {
    search: `${[
      "Give the answer to a question, with the passages that show it.",
      "Whenever something new is known, think about it between <think> and </think> before anything else.",
      "When a fact is missing, ask a search engine with <search> query </search>; numbered passages come back between <information> and </information>.",
      "As soon as nothing more is needed, write the numbers of the passages that show the answer between <evidence> and </evidence>, then the answer between <answer> and </answer>, short and without explanation.",
      "For example, <evidence> 2, 5 </evidence><answer> Beijing </answer>.",
      "If nothing that was found answers the question, write <unknown></unknown>.",
      "Question: {question}",
    ].join(" ")}\n`,
    rag: `${[
      "Give the answer to a question, with the passages that show it. Numbered passages that may help stand between <information> and </information>.",
      "Write the numbers of those that show the answer between <evidence> and </evidence>, then the answer between <answer> and </answer>, short and without explanation.",
      "For example, <evidence> 2, 5 </evidence><answer> Beijing </answer>.",
      "If none answers the question, write <unknown></unknown>.",
    ].join(" ")}\n{information}\n{examples}Question: {question}\n`,
  },
  cosearch: {
    search: `${[
      "You answer factual questions with the help of a search engine over an encyclopedia. Answers are compared word by word, so give a short span and nothing more.",
      'The one tool is search, with one argument: {"query": string}.',
      "Each time it is your turn write exactly two blocks and nothing around them: first <reason> what is known and what is missing </reason>,",
      'then either <tool_call>{"name":"search","arguments":{"query":"..."}}</tool_call>, in valid JSON, or <answer> the answer </answer>.',
      "What is found comes back between <tool_response> and </tool_response>; never write these yourself.",
      "Search for one thing at a time, put a query that found nothing otherwise, and answer as soon as nothing is missing.",
      "Question: {question}",
    ].join("\n")}\n`,
  },
  ircot: {
    search: `${[
      "Reason about a question one sentence at a time, each sentence on a line of its own.",
      "After each sentence, passages that it brings up come between <information> and </information>.",
      "As soon as the answer is known, end with the sentence: So the answer is: and then the answer in a few words.",
    ].join(" ")}\n{information}\nQuestion: {question}\n`,
  },
  "search-o1": {
    search: `${[
      "Reason step by step about a question.",
      "Whenever a fact is missing, write a query between <|begin_search_query|> and <|end_search_query|>; what was found comes back between <|begin_search_result|> and <|end_search_result|>.",
      "For example, to learn who wrote a book, write <|begin_search_query|>author of The Trial<|end_search_query|> and go on with what comes back.",
      "Searches may be repeated with other queries, and their number is limited.",
      "At the end write the answer in a few words in \\boxed{}.",
    ].join(" ")}\nQuestion: {question}\n`,
  },
  answer: {
    direct: "Answer the question with a few words and nothing else.\n{examples}Question: {question}\nAnswer:",
    rag: "Answer the question from the passages, with a few words and nothing else.\n{information}\n{examples}Question: {question}\nAnswer:",
  },
};

/** The prompt as plain text, without a chat template; undefined where the prompt has no text for the mode. */
export function findTemplate({ prompt, mode }: Pick<PromptOptions, "prompt" | "mode">): string | undefined {
  return templates[prompt][mode];
}

/** The prompt of a question as plain text, without a chat template. */
export function renderPrompt(options: PromptOptions, { question, information }: PromptContent): string {
  const { examples, prompt } = options;
  const label = prompt === "answer" ? "Answer: " : "";
  const shown = examples.map(({ question: asked, answer }) => {
    const line = `${label}${renderExampleAnswer(options, answer)}`;
    return `Question: ${prepareQuestion(asked)}\n${line}\n\n`;
  });
  const values: Record<string, string> = {
    question,
    information: information.trim(),
    examples: shown.join(""),
  };
  const template = findTemplate(options);
  assert(template !== undefined, `prompt ${prompt} has a text for mode ${options.mode}`);
  return template.replace(/\{(\w+)\}/g, (_, key: string) => values[key] as string);
}

/** An answer of an example as the policy should write it. */
export function renderExampleAnswer({ codec }: Pick<PromptOptions, "codec">, answer: string): string {
  return findCodec(codec).render({ type: "answer", answer }).trim();
}

/** A question as the prompt shows it: without white space around it, with a question mark at the end. */
export function prepareQuestion(text: string): string {
  const question = text.trim();
  return question.endsWith("?") ? question : `${question}?`;
}
