/**
 * One episode played by a script, for tests of rollouts. The tokenizer has no merges: one token for each byte, one
 * for each tag, so that counts can be checked by hand.
 */
import type { Passage } from "../corpus/passage.ts";
import type { Question } from "../corpus/question.ts";
import { type EnvironmentOptions, environmentOptionsSchema } from "../environment/environment-options.ts";
import { searchR1Tags } from "../environment/search-r1-codec.ts";
import { scriptedRetriever } from "../retrieval/scripted-retriever.ts";
import { trainBytePair } from "../tokenizer/byte-pair-training.ts";
import { type RolloutInput, runRollout } from "./rollout.ts";
import { scriptedPolicy } from "./scripted-policy.ts";
import type { Trajectory } from "./trajectory.ts";

export const tokenizer = trainBytePair([], { vocabularySize: 266, specialTokens: searchR1Tags });
export const question: Question = {
  id: "1",
  dataset: "test",
  text: "q",
  goldAnswers: ["b"],
  goldPassages: [],
};
export const passage = (text: string): Passage => ({ id: text.slice(0, 8), title: "T", text });

export interface Setup extends Partial<Omit<RolloutInput, "environment">> {
  readonly turns?: readonly string[];
  readonly found?: Readonly<Record<string, readonly Passage[] | Error>>;
  readonly environment?: Partial<EnvironmentOptions>;
}

export function play({ turns = [], found = {}, environment = {}, ...rest }: Setup): Promise<Trajectory> {
  return runRollout({
    question,
    group: "test/1",
    sample: 0,
    seed: 7,
    policy: scriptedPolicy(turns, tokenizer),
    retriever: scriptedRetriever((query) => found[query] ?? []),
    tokenizer,
    environment: environmentOptionsSchema.parse({ prompt: "bare", ...environment }),
    sampling: { temperature: 1, topP: 1, topK: 0 },
    ...rest,
  });
}

/** 13 tokens. */
export const prompt = "Question: q?\n";
