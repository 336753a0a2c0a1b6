/**
 * Chats as text: a model's own Jinja template, rendered as `apply_chat_template` of Hugging Face transformers does. The
 * template is a program from outside; the engine gives it no files, no clock and no network.
 *
 * Not covered: images and sound in messages; documents; the mask of assistant tokens.
 */
import { Environment, Template } from "@huggingface/jinja";
import { ConfigError } from "../errors.ts";
import { runTemplate } from "./chat-interpreter.ts";
import type { ChatFormat } from "./tokenizer.ts";

export interface ChatMessage {
  /** `system`, `user`, `assistant` or `tool`, as far as the template knows them. */
  readonly role: string;
  readonly content: string;
  /** Calls, thoughts and whatever else a template reads. */
  readonly [field: string]: unknown;
}

export interface ChatOptions {
  /** End with the opening of the assistant's turn, for it to be completed. */
  readonly addGenerationPrompt: boolean;
  /** JSON schemas of functions, as in the OpenAI protocol. */
  readonly tools?: readonly object[];
  /** What `strftime_now` of a template tells; without it a template that asks for the date is refused. */
  readonly today?: Date;
  /** Further variables of the template, such as `enable_thinking`. */
  readonly variables?: Readonly<Record<string, unknown>>;
}

/**
 * The text of a chat. Throws `ConfigError` when the template cannot be read, refuses the messages, or has no
 * generation prompt although one is wanted.
 */
export function renderChat(
  format: ChatFormat,
  messages: readonly ChatMessage[],
  options: ChatOptions,
): string {
  const template = parse(format.template);
  const text = render(template, format, { messages, options });
  if (options.addGenerationPrompt && !opensAssistantTurn(template, format, { messages, options }))
    throw new ConfigError(
      "the chat template has no generation prompt: it ignores add_generation_prompt and does not end where the assistant's text begins; use another template or none",
    );
  return text;
}

/** Templates are long and rendered for every prompt. */
const parsed = new Map<string, Template>();
const mostParsed = 32;

function parse(source: string): Template {
  const known = parsed.get(source);
  if (known) return known;
  try {
    // Jinja has one end of line.
    const template = new Template(source.replace(/\r\n?/g, "\n"));
    if (parsed.size >= mostParsed) parsed.clear();
    parsed.set(source, template);
    return template;
  } catch (cause) {
    throw new ConfigError(`the chat template cannot be read: ${(cause as Error).message}`, { cause });
  }
}

/** What every template may use; the library's own set comes with the clock of the machine. */
const globals: Readonly<Record<string, unknown>> = {
  true: true,
  True: true,
  false: false,
  False: false,
  none: null,
  None: null,
  raise_exception: (message: string) => {
    throw new Error(message);
  },
  range: (first: number, second?: number, step = 1) => {
    const [start, end] = second === undefined ? [0, first] : [first, second];
    const count = step === 0 ? 0 : Math.max(0, Math.ceil((end - start) / step));
    return Array.from({ length: count }, (_, i) => start + i * step);
  },
};

interface Chat {
  readonly messages: readonly ChatMessage[];
  readonly options: ChatOptions;
}

function render(template: Template, format: ChatFormat, { messages, options }: Chat): string {
  try {
    const environment = new Environment();
    const variables = {
      ...globals,
      strftime_now: (pattern: string) => formatDate(options.today, pattern),
      ...format.specialTokens,
      tools: options.tools ?? null,
      documents: null,
      ...options.variables,
      messages,
      add_generation_prompt: options.addGenerationPrompt,
    };
    for (const [name, value] of Object.entries(variables)) environment.set(name, value);
    return runTemplate(template.parsed, environment);
  } catch (cause) {
    if (cause instanceof ConfigError) throw cause;
    throw new ConfigError(`the chat template refuses these messages: ${(cause as Error).message}`, { cause });
  }
}

/**
 * Whether what the assistant says comes right after the messages: the template answers to `add_generation_prompt`, or an
 * answer's text follows that of a question directly, as where `[/INST]` alone ends a question.
 */
function opensAssistantTurn(template: Template, format: ChatFormat, chat: Chat): boolean {
  const show = (messages: readonly ChatMessage[], addGenerationPrompt: boolean): string =>
    render(template, format, { messages, options: { ...chat.options, addGenerationPrompt } });
  if (show(chat.messages, true) !== show(chat.messages, false)) return true;
  const [content, question] = ["forager", { role: "user", content: "question" }];
  const asked = show([question], false);
  if (show([question], true) !== asked) return true;
  const answered = show([question, { role: "assistant", content }], false);
  return answered.startsWith(asked) && answered.slice(asked.length).trimStart().startsWith(content);
}

/** The parts of `strftime` that templates use. */
function formatDate(date: Date | undefined, pattern: string): string {
  if (date === undefined) throw new ConfigError("the chat template asks for the date; say which day it is");
  const two = (value: number): string => String(value).padStart(2, "0");
  const month = (style: "long" | "short"): string => date.toLocaleString("en-GB", { month: style });
  const parts: Readonly<Record<string, string>> = {
    "%Y": String(date.getFullYear()),
    "%m": two(date.getMonth() + 1),
    "%d": two(date.getDate()),
    "%b": month("short").slice(0, 3),
    "%B": month("long"),
    "%H": two(date.getHours()),
    "%M": two(date.getMinutes()),
    "%S": two(date.getSeconds()),
    "%%": "%",
  };
  return pattern.replace(/%./g, (part) => {
    const value = parts[part];
    if (value === undefined)
      throw new ConfigError(`the chat template asks for ${part} of the date, which is not known`);
    return value;
  });
}
