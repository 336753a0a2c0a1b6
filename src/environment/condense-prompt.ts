/**
 * Reason in documents (Search-o1, arXiv 2501.05366, section 3.3): what a search found is not shown; the policy itself first
 * writes down what of it helps, in a completion of its own, and that is shown. The published prompt's meaning in our
 * words. Chat templates and completions are the rollout's business.
 */
import { z } from "zod";
import { sha256 } from "../shared/hash.ts";

export const condenseOptionsSchema = z.strictObject({
  maxTokens: z.int().min(1).default(500).describe("Most tokens of what is written down of one search."),
});

export type CondenseOptions = z.infer<typeof condenseOptionsSchema>;

/** One search whose passages are to be condensed; everything is safe to insert. */
export interface FoundDocuments {
  readonly question: string;
  /** What the policy has written so far, the query included. */
  readonly reasoning: string;
  readonly query: string;
  /** The passages as the template renders them. */
  readonly documents: string;
}

/** Writes down what helps of the documents of a search. */
export type Condense = (found: FoundDocuments, signal?: AbortSignal) => Promise<string>;

/** What stands for documents that do not help. */
export const nothingFound = "No helpful information found.";

const template = [
  "Someone reasons about a question and has searched. Read the documents that were found and write down only what helps the next step of the reasoning, in a few sentences and with nothing made up.",
  `If nothing in them helps, write: ${nothingFound}`,
  "Question: {question}",
  "Reasoning so far:\n{reasoning}",
  "Query: {query}",
  "Documents:\n{documents}",
  "What helps:",
].join("\n");

/** The prompt, without a chat template. */
export function condensePrompt(found: FoundDocuments): string {
  const values: Readonly<Record<string, string>> = { ...found };
  return template.replace(/\{(\w+)\}/g, (_, key: string) => values[key] as string);
}

/** For contracts: results of unequal prompts are not compared. */
export const condensePromptHash = sha256(template);
