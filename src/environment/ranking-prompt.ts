/**
 * What the generative ranker reads: the question, the query of this turn and the numbered candidates; never the agent's
 * thoughts or what it saw before. `cosearch` asks for what the prompt released with CoSearch asks for, in our words;
 * `bare` is the content alone, for small models that learn the grammar from demonstrations.
 *
 * Everything but the frame comes from outside, the agent's query too, and is made safe.
 */
import { z } from "zod";
import { ConfigError } from "../errors.ts";
import type { ScoredPassage } from "../retrieval/retriever.ts";
import { canonicalJson, sha256 } from "../shared/hash.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import { neutralizer } from "./neutralize.ts";
import { chatDay } from "./opening.ts";
import { rankingTags } from "./ranking-codec.ts";

export const rankingPromptNames = ["cosearch", "bare"] as const;

export const rankingPromptSchema = z.strictObject({
  prompt: z
    .enum(rankingPromptNames)
    .default("cosearch")
    .describe(
      "What the ranker is told: `cosearch` explains task and format; `bare` shows question, query and passages alone.",
    ),
  passages: z
    .enum(["titled", "text"])
    .default("titled")
    .describe("How a candidate is shown after its number: with its title, or its text alone."),
  maxPassageCharacters: z
    .int()
    .min(1)
    .default(2000)
    .describe("A longer candidate is cut to so many characters; to fewer where the ranker's context asks."),
  chat: z
    .union([z.literal("auto"), z.boolean()])
    .default("auto")
    .describe("Whether the prompt goes through the ranker's chat template; `auto`: where it has one."),
});

export interface RankingPromptOptions extends Readonly<z.output<typeof rankingPromptSchema>> {
  /** Day that a chat template is told which asks for it, such as 2026-01-31. */
  readonly today?: string | undefined;
}

const templates: Readonly<Record<RankingPromptOptions["prompt"], string>> = {
  cosearch: [
    "A search agent works on a question. It has just sent a query to a search engine; below are the passages that were found, each after its number. Choose the {count} passages that help the agent most and put the best first.",
    "Judge by the query, in the light of the question: a passage that helps to answer the question itself goes before one that only fits the query; then comes how well a passage fits the query; a passage that drifts to another subject goes to the back. Among passages that fit alike, prefer those that say something new and something specific.",
    "First write five to eight short sentences on what decides, without any passage number, between <reason> and </reason>. Then write the choice between <rerank> and </rerank>: exactly {count} different numbers from 1 to {candidates} in square brackets with > between them, such as [3] > [1]. Write nothing else.",
    "Question: {question}",
    "Query: {query}",
    "Passages ({candidates}):",
    "{passages}",
  ].join("\n"),
  bare: "Question: {question}\nQuery: {query}\n{passages}",
};

export interface RankingContent {
  readonly question: string;
  readonly query: string;
  readonly candidates: readonly ScoredPassage[];
  /** Numbers that are asked for. */
  readonly count: number;
}

type ChatTokenizer = Pick<Tokenizer, "chat" | "specialTokens">;

/** Renders the prompt with candidates cut to `characters`. Throws `ConfigError` where the chat template cannot be used. */
export async function rankingPrompt(
  content: RankingContent,
  options: RankingPromptOptions,
  { tokenizer, characters }: { readonly tokenizer: ChatTokenizer | undefined; readonly characters: number },
): Promise<string> {
  const safe = neutralizer([...rankingTags, ...(tokenizer?.specialTokens ?? [])]);
  const passages = content.candidates.map(({ passage }, index) => {
    const text = options.passages === "titled" ? `${passage.title}: ${passage.text}` : passage.text;
    return `[${index + 1}] ${cut(safe(text), characters)}`;
  });
  const values: Readonly<Record<string, string>> = {
    question: safe(content.question),
    query: safe(content.query),
    passages: `${safe(passages.join("\n"))}\n`,
    count: String(content.count),
    candidates: String(content.candidates.length),
  };
  const text = templates[options.prompt].replace(/\{(\w+)\}/g, (_, key: string) => values[key] as string);
  return await asMessage(text, options, tokenizer);
}

/** SHA-256 of everything about the prompt that is not its content. */
export function rankingPromptHash(options: RankingPromptOptions): string {
  return sha256(canonicalJson({ ...options, template: templates[options.prompt] }));
}

async function asMessage(
  text: string,
  { chat, today }: RankingPromptOptions,
  tokenizer: ChatTokenizer | undefined,
): Promise<string> {
  if (chat === true && tokenizer?.chat === undefined)
    throw new ConfigError("the ranker's model has no chat template; set ranker.chat to auto or false", {
      path: "ranker.chat",
    });
  if (chat === false || tokenizer?.chat === undefined) return text;
  const { renderChat } = await import("../tokenizer/chat-template.ts");
  const message = { role: "user", content: text };
  return renderChat(tokenizer.chat, [message], { addGenerationPrompt: true, ...chatDay(today) });
}

function cut(text: string, characters: number): string {
  if (text.length <= characters) return text;
  return text.slice(0, characters).replace(/[\uD800-\uDBFF]$/, "");
}
