/** Does the prompt of every question leave room for at least one turn? Asked before a training, an evaluation or an answer. */
import { type Question, questionKey } from "../corpus/question.ts";
import type { EnvironmentOptions } from "../environment/environment-options.ts";
import { openingText, openingTokens } from "../environment/opening.ts";
import { prepareQuestion } from "../environment/prompt.ts";
import { ConfigError } from "../errors.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import { episodeSum, episodeTokens } from "./episode-tokens.ts";

export interface PromptSize {
  readonly question: Question;
  /** Tokens of the prompt; in mode rag with as many tokens of passages as are allowed. */
  readonly tokens: number;
}

/** The question with the longest prompt, the first of equals; undefined without questions. Throws `ConfigError`. */
export async function longestPrompt(
  questions: Iterable<Question>,
  { environment, tokenizer }: { readonly environment: EnvironmentOptions; readonly tokenizer: Tokenizer },
): Promise<PromptSize | undefined> {
  const passages = environment.mode === "rag" ? environment.maxObservationTokens : 0;
  let longest: PromptSize | undefined;
  for (const question of questions) {
    const content = { question: prepareQuestion(question.text), information: "" };
    const text = await openingText(environment, content, tokenizer);
    const tokens = openingTokens(text, tokenizer).length + passages;
    if (longest === undefined || tokens > longest.tokens) longest = { question, tokens };
  }
  return longest;
}

/**
 * Throws `ConfigError` that names the longest question when its prompt and one turn are more than the context, and where
 * the chat template cannot be used. Returns a sentence with the sum where the longest episode is more, else nothing.
 */
export async function requirePromptsFit(
  questions: Iterable<Question>,
  environment: EnvironmentOptions,
  { tokenizer, contextLength }: { readonly tokenizer: Tokenizer; readonly contextLength: number },
): Promise<string | undefined> {
  const longest = await longestPrompt(questions, { environment, tokenizer });
  if (longest === undefined) return undefined;
  const full = episodeTokens(environment, longest.tokens);
  if (full <= contextLength) return undefined;
  if (longest.tokens + environment.maxTurnTokens <= contextLength)
    return `the longest episode that is allowed has ${full} tokens (${episodeSum(environment, longest.tokens)}), the context holds ${contextLength}: one that reaches its end stops without an answer. Where many do, lower environment.maxTurnTokens, maxObservationTokens or maxSearches, or use a model with a longer context`;
  throw new ConfigError(
    `question ${questionKey(longest.question)} is too long: its prompt has ${longest.tokens} tokens and a turn up to ${environment.maxTurnTokens}, the context holds ${contextLength}; leave the question out, lower environment.maxTurnTokens, or use a model with a longer context`,
    { path: "model.contextLength" },
  );
}
