/**
 * Who decides whether an answer is right, and how sensible a search was: a rule, or a language model that is asked. The
 * rule is looked up in any case, so that the agreement of both can be told. Prompts are ours; the one for answers sees the
 * gold answers, the one for grades does not. The paper names neither its judge nor the words of its prompts.
 */
import { z } from "zod";
import type { Question } from "../corpus/question.ts";
import type { EnvironmentOptions } from "../environment/environment-options.ts";
import { neutralizer } from "../environment/neutralize.ts";
import { completeOnce, type Generator, inChat } from "../rollout/generator.ts";
import { searchText } from "../rollout/generator-prompt.ts";
import type { Trajectory } from "../rollout/trajectory.ts";
import { goldPassageRecall } from "../rollout/trajectory-view.ts";
import { noUsage, type PolicyUsage } from "../rollout/usage.ts";
import { sha256 } from "../shared/hash.ts";
import { coverExactMatch } from "./cover-exact-match.ts";
import { exactMatch } from "./exact-match.ts";
import { readGrade, readVerdict } from "./judge-reply.ts";

export const judgeRules = ["exactMatch", "coverExactMatch"] as const;
export type JudgeRule = (typeof judgeRules)[number];

/** Fields of a judge besides who it is. */
export const judgeFields = {
  rule: z
    .enum(judgeRules)
    .default("coverExactMatch")
    .describe(
      "The rule: the answer equals a gold answer, or contains one, both normalised. With `type: model` it decides nothing and is compared with the model.",
    ),
};

/** A rule, beside a model that is asked where there is one. */
export interface Judge {
  readonly rule: JudgeRule;
  /** Decides instead of the rule. */
  readonly model?: Generator | undefined;
}

export interface Verdict {
  readonly score: 0 | 1;
  readonly ruleScore: 0 | 1;
  /** True where a model was asked and said neither yes nor no; the score is 0 then. */
  readonly isUnreadable: boolean;
  /** False where the rule decided, or there was no answer to judge. */
  readonly isAsked: boolean;
  readonly usage: PolicyUsage;
}

const verdictText =
  "Does the answer to a question mean the same as one of the reference answers, or contain one? Write yes or no and nothing else.\nQuestion: {question}\nReference answers: {gold}\nAnswer: {answer}\n";
const gradeText =
  "A model has searched for what is needed to answer a question. Grade the search from 1 to 5 and write the number alone.\n" +
  "1: useless, off the question or without a search. 2: mostly beside the point. 3: partly useful, with gaps or repetitions. 4: useful, with small detours. 5: every query was needed, each built on what was known, and it stopped in time.\n" +
  "Question: {question}\nSearch:\n{record}\n";

/** SHA-256 of both prompts, for contracts. */
export const judgePromptHash: string = sha256(verdictText + gradeText);

/** Judges one answer; without an answer it is wrong, and nobody is asked. Throws `PolicyError` and the signal's reason. */
export async function judgeAnswer(
  { question, answer }: { readonly question: Question; readonly answer: string | undefined },
  { rule, model }: Judge,
  ask: { readonly seed: number; readonly signal?: AbortSignal | undefined },
): Promise<Verdict> {
  const ruleScore = ruleVerdict(rule, answer, question.goldAnswers);
  if (model === undefined || answer === undefined)
    return { score: ruleScore, ruleScore, isUnreadable: false, isAsked: false, usage: noUsage };
  const safe = neutralizer(model.tokenizer?.specialTokens ?? []);
  const values = { question: question.text, gold: question.goldAnswers.join(" | "), answer };
  const prompt = await inChat(model, safe(filled(verdictText, values)));
  const reply = await completeOnce(model, { ...ask, prompt, stop: [] });
  const verdict = readVerdict(reply?.text ?? "");
  return {
    score: verdict === "yes" ? 1 : 0,
    ruleScore,
    isUnreadable: verdict === undefined,
    isAsked: true,
    usage: reply?.usage ?? noUsage,
  };
}

/** The score of an answer by a rule. */
export function ruleVerdict(rule: JudgeRule, answer: string | undefined, golds: readonly string[]): 0 | 1 {
  return rule === "exactMatch" ? exactMatch(answer, golds) : coverExactMatch(answer, golds);
}

/** Grades the searching of an episode by a model; without a grade that can be read there is none. */
export async function gradeSearch(
  trajectory: Trajectory,
  model: Generator,
  ask: {
    readonly environment: EnvironmentOptions;
    readonly seed: number;
    readonly signal?: AbortSignal | undefined;
  },
): Promise<{ readonly grade?: number; readonly usage: PolicyUsage }> {
  const { environment, ...rest } = ask;
  const { question } = trajectory;
  const record = searchText(trajectory, { environment, tokenizer: model.tokenizer });
  const prompt = await inChat(model, filled(gradeText, { question: question.text, record }));
  const reply = await completeOnce(model, { ...rest, prompt, stop: [] });
  const grade = readGrade(reply?.text ?? "");
  return { ...(grade !== undefined && { grade }), usage: reply?.usage ?? noUsage };
}

/** The grade that a rule gives: 1 where no gold passage was found, 5 where all were; undefined where none is marked. */
export function gradeByRecall(trajectory: Trajectory): number | undefined {
  const recall = goldPassageRecall(trajectory);
  return recall === undefined ? undefined : 1 + 4 * recall;
}

function filled(text: string, values: Readonly<Record<string, string>>): string {
  return text.replace(/\{(\w+)\}/g, (_, key: string) => values[key] as string);
}
