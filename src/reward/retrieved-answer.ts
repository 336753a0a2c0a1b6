/**
 * Whether what the environment showed holds a gold answer: the retrieval recall of DeSA (arXiv 2510.04695, stage 1)
 * and the retrieval accuracy of its ablation. A passage counts when it was found by a search that was carried out and
 * what was shown of it holds the answer; what the policy wrote never counts, even between the environment's tags.
 *
 * The released code searches the whole text with a regular expression and compares characters: it pays a policy that
 * writes passages itself, finds "no" in "north", and finds an empty gold answer everywhere. The first and the last are
 * closed for good here, the second by `match`.
 */
import { z } from "zod";
import type { Trajectory } from "../rollout/trajectory.ts";
import { shownPassages } from "../rollout/trajectory-view.ts";
import { answerTokens } from "./normalize-answer.ts";

/** Fields of every reward that looks for gold answers in passages. */
export const answerMatchFields = {
  match: z
    .enum(["tokens", "substring"])
    .default("tokens")
    .describe(
      "How a gold answer is found in a passage, both normalised: `tokens` as whole words, so that `art` is not in `party`; `substring` by characters, as DeSA released it and as languages without spaces between words need.",
    ),
  skipYesNo: z
    .boolean()
    .default(true)
    .describe(
      "True: the gold answers yes and no are never found, since passages hold these words for other reasons; false: as released.",
    ),
};

export const answerMatchSchema = z.strictObject(answerMatchFields);
export type AnswerMatch = z.infer<typeof answerMatchSchema>;

/** As DeSA released it, but that an empty gold answer is found nowhere. */
export const releasedMatch: AnswerMatch = { match: "substring", skipYesNo: false };

/** What metrics use: whole words, yes and no left out. */
export const wordMatch: AnswerMatch = answerMatchSchema.parse({});

/** 1 when any passage that was shown holds any gold answer, else 0. */
export function retrievalRecall(trajectory: Trajectory, options: AnswerMatch): 0 | 1 {
  return judgePassages(trajectory, options).includes(true) ? 1 : 0;
}

/** The share of the passages that were shown, each time one was, that hold a gold answer; 0 without passages. */
export function retrievalAccuracy(trajectory: Trajectory, options: AnswerMatch): number {
  const judged = judgePassages(trajectory, options);
  return judged.length === 0 ? 0 : judged.filter(Boolean).length / judged.length;
}

/**
 * For each passage that was shown, in order, whether it holds a gold answer. What was cut off or left out by the template
 * was not shown, so the text that was inserted must hold it too, where tags may touch its words.
 */
function judgePassages(trajectory: Trajectory, options: AnswerMatch): boolean[] {
  const golds = goldTokens(trajectory.question.goldAnswers, options);
  const holds = options.match === "tokens" ? holdsWords : holdsText;
  return shownPassages(trajectory).flatMap(({ passages, text }) => {
    const shown = answerTokens(text);
    const candidates = golds.filter((gold) => holdsText(shown, gold));
    return passages.map(({ passage }) => {
      const words = answerTokens(`${passage.title}\n${passage.text}`);
      return candidates.some((gold) => holds(words, gold));
    });
  });
}

function goldTokens(golds: readonly string[], { skipYesNo }: AnswerMatch): string[][] {
  return golds
    .map(answerTokens)
    .filter((tokens) => tokens.length > 0 && !(skipYesNo && /^(yes|no)$/.test(tokens.join(" "))));
}

function holdsText(tokens: readonly string[], gold: readonly string[]): boolean {
  return tokens.join(" ").includes(gold.join(" "));
}

function holdsWords(tokens: readonly string[], gold: readonly string[]): boolean {
  return tokens.some((_, start) => gold.every((word, i) => tokens[start + i] === word));
}
