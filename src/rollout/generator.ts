/**
 * The frozen generator of a planner: any policy that is asked for one answer and never trained. What it reads is made in
 * `generator-prompt.ts`; here it is put through the model's chat template, completed, and read.
 */
import { z } from "zod";
import type { Question } from "../corpus/question.ts";
import type { EnvironmentOptions } from "../environment/environment-options.ts";
import { chatDay, openingTokens } from "../environment/opening.ts";
import { ConfigError, PolicyError } from "../errors.ts";
import type { ScoredPassage } from "../retrieval/retriever.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import {
  type GeneratorPromptSetting,
  generatorPromptHash,
  generatorPromptNames,
  type SearchRecord,
  textAlone,
  textFromRecord,
  textWithPassages,
} from "./generator-prompt.ts";
import type { Policy } from "./policy.ts";
import { noUsage, type PolicyUsage, usageOf } from "./usage.ts";

/** Options of a generator besides the model that it is. */
export const generatorFields = {
  prompt: z
    .enum(generatorPromptNames)
    .default("record")
    .describe(
      "What it reads: `record` explains and shows all that was thought, asked and found; `bare` is the format of this library's small models (codec compact), each query with its passages.",
    ),
  chat: z
    .union([z.literal("auto"), z.boolean()])
    .default("auto")
    .describe(
      "Whether its prompt goes through its chat template, thinking left out; `auto`: where it has one.",
    ),
  temperature: z.number().min(0).default(0).describe("Of its answers; 0 is greedy."),
  maxAnswerTokens: z.int().min(1).default(256).describe("Most tokens of an answer, reasoning included."),
};

export const generatorOptionsSchema = z.strictObject(generatorFields);
export type GeneratorOptions = z.output<typeof generatorOptionsSchema>;

/** A model that is only asked, with how. */
export interface Generator {
  readonly policy: Policy;
  readonly options: GeneratorOptions;
  readonly tokenizer?: Tokenizer | undefined;
  /** Day that chat templates are told which ask for it, such as 2026-01-31. */
  readonly today?: string | undefined;
  /** Most tokens of prompt and answer together. */
  readonly contextLength?: number | undefined;
}

export interface GeneratorReply {
  readonly answer?: string;
  readonly usage: PolicyUsage;
}

/** What a result that it answered depends on. */
export function describeGenerator({ policy, options }: Generator): Readonly<Record<string, string | number>> {
  const { type, model, weights } = policy.identity;
  const { prompt, chat, temperature, maxAnswerTokens } = options;
  return {
    type,
    model,
    ...(weights !== undefined && { weights }),
    promptHash: generatorPromptHash(prompt),
    chat: String(chat),
    temperature,
    maxAnswerTokens,
  };
}

/** The prompt that shows what a planner has found. Throws `ConfigError` when the chat template cannot be used. */
export async function recordPrompt(
  generator: Generator,
  record: SearchRecord,
  environment: EnvironmentOptions,
): Promise<string> {
  return await inChat(generator, textFromRecord(record, settingOf(generator, environment)));
}

/** The prompt of the question alone. */
export async function directPrompt(
  generator: Generator,
  question: Question,
  environment: EnvironmentOptions,
): Promise<string> {
  return await inChat(generator, textAlone(question, settingOf(generator, environment)));
}

/** The prompt of the question with passages. */
export async function ragPrompt(
  generator: Generator,
  { question, passages }: { readonly question: Question; readonly passages: readonly ScoredPassage[] },
  environment: EnvironmentOptions,
): Promise<string> {
  return await inChat(generator, textWithPassages(question, passages, settingOf(generator, environment)));
}

function settingOf(generator: Generator, environment: EnvironmentOptions): GeneratorPromptSetting {
  return { prompt: generator.options.prompt, environment, tokenizer: generator.tokenizer };
}

/** `text` as one message of the user, where the model speaks in messages; templates that know thinking leave it out. */
export async function inChat({ options, tokenizer, today }: Generator, text: string): Promise<string> {
  const format = tokenizer?.chat;
  if (options.chat === true && format === undefined && tokenizer !== undefined)
    throw new ConfigError("the generator has no chat template; set generator.chat to auto or false", {
      path: "generator.chat",
    });
  if (options.chat === false || format === undefined) return text;
  const { renderChat } = await import("../tokenizer/chat-template.ts");
  return renderChat(format, [{ role: "user", content: text }], {
    addGenerationPrompt: true,
    variables: { enable_thinking: false },
    ...chatDay(today),
  });
}

/**
 * One answer. A prompt that leaves no room for `maxAnswerTokens` has none, and costs nothing. Throws `PolicyError` and the
 * signal's reason.
 */
export async function askGenerator(
  generator: Generator,
  prompt: string,
  seed: number,
  signal?: AbortSignal,
): Promise<GeneratorReply> {
  const reply = await completeOnce(generator, { prompt, seed, stop: ["</answer>"], signal });
  if (reply === undefined) return { usage: noUsage };
  const answer = readAnswer(reply.text);
  return { ...(answer !== "" && { answer }), usage: reply.usage };
}

/** One completion of a prompt; undefined where it does not fit into the context. */
export async function completeOnce(
  { policy, options, tokenizer, contextLength }: Generator,
  ask: {
    readonly prompt: string;
    readonly seed: number;
    readonly stop: readonly string[];
    readonly signal?: AbortSignal | undefined;
  },
): Promise<{ readonly text: string; readonly usage: PolicyUsage } | undefined> {
  const { prompt: text, seed, stop, signal } = ask;
  const { temperature, maxAnswerTokens: maxTokens } = options;
  const tokens = tokenizer === undefined ? undefined : openingTokens(text, tokenizer);
  if (contextLength !== undefined && (tokens?.length ?? 0) + maxTokens > contextLength) return undefined;
  const context = {
    text,
    parts: [{ source: "prompt", text } as const],
    ...(tokens && { tokens }),
    seed,
  };
  const completions = await policy.complete(
    [context],
    { maxTokens, temperature, topP: 1, topK: 0, stop },
    signal,
  );
  const [completion] = completions;
  if (completions.length !== 1 || completion === undefined)
    throw new PolicyError(`expected one completion for one context, got ${completions.length}`);
  return { text: completion.text, usage: usageOf(completion.usage) };
}

/** The text of the first answer, behind all reasoning; without tags, all of the text. Empty where there is none. */
export function readAnswer(text: string): string {
  const behind = text.replace(/^[\s\S]*<\/think>/, "").replace(/<think>[\s\S]*$/, "");
  const tagged = /<answer>([\s\S]*?)(?:<\/answer>|$)/.exec(behind);
  return (tagged ? (tagged[1] as string) : behind.replace(/<\/answer>[\s\S]*$/, "")).trim();
}
