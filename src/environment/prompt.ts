/**
 * Named prompts: the text that opens an episode. `search-r1` says what the published Search-R1 prompt says, in its
 * order and with its tags and example, in our words; `bare` is the question alone, for small models that learn
 * the format from demonstrations. No chat template is applied here.
 */
import { sha256 } from "../shared/hash.ts";

export const promptNames = ["search-r1", "bare"] as const;
export type PromptName = (typeof promptNames)[number];

export interface PromptTemplate {
  readonly name: PromptName;
  /** SHA-256 of the template; results of unequal prompts are not compared. */
  readonly hash: string;
  /** The prompt for a question that is already safe and prepared. */
  render(question: string): string;
}

const placeholder = "{question}";

const templates: Readonly<Record<PromptName, string>> = {
  "search-r1": `${[
    "Give the answer to a question.",
    "Whenever something new is known, think about it between <think> and </think> before anything else.",
    "When a fact is missing, ask a search engine with <search> query </search>; what it finds comes back between <information> and </information>.",
    "There is no limit to the number of searches.",
    "As soon as nothing more is needed, write the answer between <answer> and </answer>, short and without explanation.",
    "For example, <answer> Beijing </answer>.",
    `Question: ${placeholder}`,
  ].join(" ")}\n`,
  bare: `Question: ${placeholder}\n`,
};

function createPrompt(name: PromptName): PromptTemplate {
  const template = templates[name];
  const [before, after] = template.split(placeholder) as [string, string];
  return { name, hash: sha256(template), render: (question) => before + question + after };
}

const prompts = new Map(promptNames.map((name) => [name, createPrompt(name)]));

/** The template called `name`. */
export function findPrompt(name: PromptName): PromptTemplate {
  return prompts.get(name) as PromptTemplate;
}

/** A question as the prompt shows it: without white space around it, with a question mark at the end. */
export function prepareQuestion(text: string): string {
  const question = text.trim();
  return question.endsWith("?") ? question : `${question}?`;
}
