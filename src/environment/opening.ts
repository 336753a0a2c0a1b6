/**
 * What opens an episode: the prompt, as one message of the user through the model's own chat template where it has one
 * (as Search-R1 does, for base models too that come with a template). The policy's turns and the observations then
 * follow each other in one turn of the assistant.
 */
import { ConfigError } from "../errors.ts";
import { sha256 } from "../shared/hash.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import {
  type PromptContent,
  type PromptOptions,
  prepareQuestion,
  renderExampleAnswer,
  renderPrompt,
} from "./prompt.ts";

interface ChatOptions {
  /** `auto`: where the model has a template. */
  readonly chat: "auto" | boolean;
  /** Day that a template is told which asks for it, such as 2026-01-31. */
  readonly today?: string | undefined;
}

export interface OpeningOptions extends PromptOptions, ChatOptions {}

type ChatTokenizer = Pick<Tokenizer, "chat">;

/**
 * The text that opens the episode of a question. Throws `ConfigError` when a chat template is wanted and there is none, or
 * when it cannot be used: no generation prompt, a date that is not given, messages that it refuses.
 */
export async function openingText(
  options: OpeningOptions,
  content: PromptContent,
  tokenizer: ChatTokenizer | undefined,
): Promise<string> {
  const format = chatFormat(options, tokenizer);
  return format === undefined
    ? renderPrompt(options, content)
    : await throughTemplate(format, messages(options, content), options);
}

/** `text` as one message of the user, through the model's chat template where the options want it. Throws as `openingText`. */
export async function chatText(
  text: string,
  options: ChatOptions,
  tokenizer: ChatTokenizer | undefined,
): Promise<string> {
  const format = chatFormat(options, tokenizer);
  return format === undefined
    ? text
    : await throughTemplate(format, [{ role: "user", content: text }], options);
}

async function throughTemplate(
  format: NonNullable<Tokenizer["chat"]>,
  said: ReturnType<typeof messages>,
  { today }: ChatOptions,
): Promise<string> {
  const { renderChat } = await import("../tokenizer/chat-template.ts");
  return renderChat(format, said, { addGenerationPrompt: true, ...chatDay(today) });
}

/** The day of `environment.today` as `renderChat` takes it. */
export function chatDay(today: string | undefined): { readonly today?: Date } {
  return today === undefined ? {} : { today: new Date(`${today}T12:00:00`) };
}

/** Examples are earlier turns of the chat: a model that was taught to chat repeats the manner of its own answers. */
function messages(options: OpeningOptions, content: PromptContent) {
  const alone = { ...options, examples: [] };
  const shown = options.examples.flatMap((example) => [
    {
      role: "user",
      content: renderPrompt(alone, { question: prepareQuestion(example.question), information: "" }),
    },
    { role: "assistant", content: renderExampleAnswer(options, example.answer) },
  ]);
  return [...shown, { role: "user", content: renderPrompt(alone, content) }];
}

function chatFormat({ chat }: ChatOptions, tokenizer: ChatTokenizer | undefined): Tokenizer["chat"] {
  if (chat === false) return undefined;
  if (chat === true && tokenizer?.chat === undefined)
    throw new ConfigError("the model has no chat template; set environment.chat to auto or false", {
      path: "environment.chat",
    });
  return tokenizer?.chat;
}

/** SHA-256 of the opening with names in the places of question and passages; results of unequal openings are not compared. */
export async function openingHash(
  options: OpeningOptions,
  tokenizer: ChatTokenizer | undefined,
): Promise<string> {
  return sha256(
    await openingText(options, { question: "{question}", information: "{information}" }, tokenizer),
  );
}

/** The ids of an opening: after the id that begins a text where the tokenizer has one, unless the template wrote it. */
export function openingTokens(text: string, tokenizer: Tokenizer): number[] {
  const tokens = tokenizer.encode(text);
  const begin = tokenizer.beginOfTextId;
  return begin === undefined || tokens[0] === begin ? tokens : [begin, ...tokens];
}
