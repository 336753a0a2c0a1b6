/** Does the prompt of every question leave room for at least one turn? Asked before a training, an evaluation or an answer. */
import { type Question, questionKey } from "../corpus/question.ts";
import type { EnvironmentOptions } from "../environment/environment-options.ts";
import { findPrompt, prepareQuestion } from "../environment/prompt.ts";
import { ConfigError } from "../errors.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";

export interface PromptSize {
  readonly question: Question;
  /** Tokens of the prompt. */
  readonly tokens: number;
}

/** The question with the longest prompt, the first of equals; undefined without questions. */
export function longestPrompt(
  questions: Iterable<Question>,
  { environment, tokenizer }: { readonly environment: EnvironmentOptions; readonly tokenizer: Tokenizer },
): PromptSize | undefined {
  const template = findPrompt(environment.prompt);
  let longest: PromptSize | undefined;
  for (const question of questions) {
    const tokens = tokenizer.encode(template.render(prepareQuestion(question.text))).length;
    if (longest === undefined || tokens > longest.tokens) longest = { question, tokens };
  }
  return longest;
}

/** Throws `ConfigError` that names the longest question when its prompt and one turn are more than the context. */
export function requirePromptsFit(
  questions: Iterable<Question>,
  environment: EnvironmentOptions,
  { tokenizer, contextLength }: { readonly tokenizer: Tokenizer; readonly contextLength: number },
): void {
  const longest = longestPrompt(questions, { environment, tokenizer });
  if (longest === undefined || longest.tokens + environment.maxTurnTokens <= contextLength) return;
  throw new ConfigError(
    `question ${questionKey(longest.question)} is too long: its prompt has ${longest.tokens} tokens and a turn up to ${environment.maxTurnTokens}, the context holds ${contextLength}; leave the question out, lower environment.maxTurnTokens, or use a model with a longer context`,
    { path: "model.contextLength" },
  );
}
