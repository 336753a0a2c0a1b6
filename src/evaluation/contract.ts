/**
 * What a score depends on besides the policy. Two results are compared only when their contracts agree on
 * everything that was not meant to differ: the model and the seed may, the rest may not.
 */
import { z } from "zod";
import { type Question, questionKey } from "../corpus/question.ts";
import { condensePromptHash } from "../environment/condense-prompt.ts";
import type { EnvironmentOptions } from "../environment/environment-options.ts";
import { openingHash } from "../environment/opening.ts";
import { findPassageTemplate } from "../environment/passage-template.ts";
import { rankingPromptHash } from "../environment/ranking-prompt.ts";
import type { Retriever } from "../retrieval/retriever.ts";
import type { Policy, SamplingOptions } from "../rollout/policy.ts";
import type { Ranker } from "../rollout/ranked-search.ts";
import { canonicalJson, sha256 } from "../shared/hash.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";

const plain = z.union([z.string(), z.number(), z.boolean()]);

export const contractSchema = z.object({
  /** SHA-256 of the corpus that is searched. */
  corpusHash: z.string(),
  /** How passages are ranked. */
  retriever: z.object({
    method: z.string(),
    indexHash: z.string(),
    parameters: z.record(z.string(), plain),
  }),
  /** Passages of one search. */
  k: z.number(),
  /** Which part of the data the questions are from. */
  split: z.string(),
  /** Number of questions. */
  n: z.number(),
  /** SHA-256 of the questions with their gold answers and gold passages, whatever their order. */
  questionsHash: z.string(),
  /** SHA-256 of what opens an episode, examples and chat template included. */
  promptHash: z.string(),
  /** SHA-256 of the template that passages are shown with. */
  templateHash: z.string(),
  codec: z.string(),
  /** The other rules of an episode: its mode, limits of searches and tokens, whether the budget is told. */
  limits: z.record(z.string(), plain),
  /** How answers are made comparable. */
  normaliser: z.literal("squad"),
  /** What decides that an answer is right. */
  judge: z.literal("exactMatch"),
  /** Mode planner: who answers, who judges, and their prompts. */
  generator: z.exactOptional(z.record(z.string(), plain)),
  /** Who judges answers beside exact match, and by which rule and prompt; absent where nobody does. */
  answerJudge: z.exactOptional(z.record(z.string(), plain)),
  /** Who chooses the passages of each search, among how many, by which prompt. */
  ranker: z.exactOptional(z.record(z.string(), plain)),
  sampling: z.object({ temperature: z.number(), topP: z.number(), topK: z.number() }),
  model: z.object({ type: z.string(), model: z.string(), weights: z.string().optional() }),
  codeVersion: z.string(),
  seed: z.number(),
});

export type EvaluationContract = Readonly<z.infer<typeof contractSchema>>;

export interface ContractInput {
  readonly policy: Policy;
  readonly retriever: Retriever;
  /** How its answers were changed, such as `oracle`; absent: not at all. */
  readonly condition?: string | undefined;
  readonly environment: EnvironmentOptions;
  readonly questions: readonly Question[];
  readonly split: string;
  readonly sampling: Pick<SamplingOptions, "temperature" | "topP" | "topK">;
  readonly generator?: Readonly<Record<string, string | number>> | undefined;
  readonly answerJudge?: Readonly<Record<string, string | number>> | undefined;
  readonly ranker?: Ranker | undefined;
  readonly codeVersion: string;
  readonly seed: number;
  /** Whose chat template the prompt goes through. */
  readonly tokenizer?: Tokenizer | undefined;
}

/** The contract of an evaluation that is about to run. Throws `ConfigError` when the prompt cannot be rendered. */
export async function evaluationContract(input: ContractInput): Promise<EvaluationContract> {
  const { policy, retriever, questions, split, codeVersion, seed } = input;
  const {
    codec,
    passageTemplate,
    k,
    prompt: _,
    chat: __,
    today: ___,
    examples: ____,
    condense,
    ...limits
  } = input.environment;
  const { corpusHash, method, indexHash, parameters } = retriever.identity;
  const { temperature, topP, topK } = input.sampling;
  return {
    corpusHash,
    retriever: {
      method,
      indexHash,
      parameters: { ...parameters, ...(input.condition !== undefined && { condition: input.condition }) },
    },
    k,
    split,
    n: questions.length,
    questionsHash: hashQuestions(questions),
    promptHash: await openingHash(input.environment, input.tokenizer),
    templateHash: findPassageTemplate(passageTemplate).hash,
    codec,
    limits: {
      ...limits,
      ...(condense && { condenseTokens: condense.maxTokens, condensePromptHash }),
    },
    normaliser: "squad",
    judge: "exactMatch",
    ...(input.generator && { generator: { ...input.generator } }),
    ...(input.answerJudge && { answerJudge: { ...input.answerJudge } }),
    ...(input.ranker && { ranker: describeRanker(input.ranker) }),
    sampling: { temperature, topP, topK },
    model: {
      type: policy.identity.type,
      model: policy.identity.model,
      ...(policy.identity.weights !== undefined && { weights: policy.identity.weights }),
    },
    codeVersion,
    seed,
  };
}

/** What scores depend on of a ranker; its model may differ like the agent's. */
function describeRanker(ranker: Ranker): Record<string, string | number> {
  const { type, candidates } = ranker;
  if (ranker.type === "oracle") return { type, candidates };
  const { policy, sampling, maxTokens, prompt } = ranker;
  return {
    type,
    candidates,
    model: `${policy.identity.type}:${policy.identity.model}`,
    promptHash: rankingPromptHash(prompt),
    maxTokens,
    ...sampling,
  };
}

/** SHA-256 of everything about the questions that a score depends on; their order does not matter. */
export function hashQuestions(questions: readonly Question[]): string {
  const lines = questions.map((question) =>
    canonicalJson([questionKey(question), question.text, question.goldAnswers, question.goldPassages]),
  );
  return sha256(lines.sort().join("\n"));
}

export interface ContractDifference {
  /** Dotted, such as `sampling.temperature`. */
  readonly key: string;
  readonly a: unknown;
  readonly b: unknown;
}

/** Where two contracts differ that must not, in the order of the contract. */
export function contractDifferences(a: EvaluationContract, b: EvaluationContract): ContractDifference[] {
  const left = flatten(a);
  const right = flatten(b);
  return [...new Set([...left.keys(), ...right.keys()])]
    .filter((key) => !mayDiffer(key) && left.get(key) !== right.get(key))
    .map((key) => ({ key, a: left.get(key), b: right.get(key) }));
}

function mayDiffer(key: string): boolean {
  return key === "seed" || key.startsWith("model.") || key === "ranker.model";
}

function flatten(value: object, prefix = ""): Map<string, unknown> {
  const entries = Object.entries(value).flatMap(([key, inner]: [string, unknown]): [string, unknown][] =>
    typeof inner === "object" && inner !== null
      ? [...flatten(inner, `${prefix}${key}.`)]
      : [[`${prefix}${key}`, inner]],
  );
  return new Map(entries);
}
