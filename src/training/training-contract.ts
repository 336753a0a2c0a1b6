/** What all scores of a training depend on; `contract.json` of its run folder. The contract of an evaluation says the same and more. */
import { isServed } from "../config/model-source-options.ts";
import type { RankerOptions } from "../config/ranker-options.ts";
import type { Recipe } from "../config/recipe.ts";
import type { Engine } from "../engine/engine.ts";
import { openingHash } from "../environment/opening.ts";
import { findPassageTemplate } from "../environment/passage-template.ts";
import { rankingPromptHash } from "../environment/ranking-prompt.ts";
import { hashQuestions } from "../evaluation/contract.ts";
import type { Assessor } from "./assessor.ts";
import { describeBaseModel } from "./base-model.ts";
import type { Watcher } from "./hub-settings.ts";
import type { TrainingData } from "./setup.ts";

export interface ContractParts {
  readonly data: TrainingData;
  readonly engine: Pick<Engine, "tokenizer" | "describe">;
  /** Who judges, and in mode planner who answers. */
  readonly assessor?: Pick<Assessor, "describe"> | undefined;
  /** Version of Forager. */
  readonly codeVersion: string;
  readonly watcher?: Watcher;
}

/** The contract of a training with an open engine; reads the files of a pretrained model to hash them. */
export async function trainingContract(
  recipe: Recipe,
  { data, engine, assessor, codeVersion, watcher }: ContractParts,
): Promise<Readonly<Record<string, unknown>>> {
  return {
    retriever: data.retriever.identity,
    trainQuestions: { n: data.train.length, hash: hashQuestions(data.train) },
    evaluationQuestions: {
      n: data.evaluation.length,
      hash: hashQuestions(data.evaluation),
      split: data.split,
    },
    ...(data.validation.length > 0 && {
      validationQuestions: { n: data.validation.length, hash: hashQuestions(data.validation) },
    }),
    // The weights behind a server are not here to be hashed; the part `engine` says which they are.
    model: engine.describe ? { type: "remote" } : await describeBaseModel(recipe.model, watcher),
    ...(engine.describe && { engine: engine.describe() }),
    tokenizerHash: engine.tokenizer.hash,
    promptHash: await openingHash(recipe.environment, engine.tokenizer),
    templateHash: findPassageTemplate(recipe.environment.passageTemplate).hash,
    ...(assessor && { [recipe.generator ? "generator" : "answerJudge"]: assessor.describe() }),
    ...(recipe.ranker && { ranker: await describeRanker(recipe.ranker, recipe.environment, watcher) }),
    mode: recipe.environment.mode,
    codec: recipe.environment.codec,
    seed: recipe.seed,
    codeVersion,
    node: process.version,
  };
}

/** Who chooses the passages of each search; how it learns is in the recipe. */
async function describeRanker(
  ranker: RankerOptions,
  { today }: Recipe["environment"],
  watcher?: Watcher,
): Promise<object> {
  if (ranker.type !== "generative") return ranker;
  const { type, candidates, weights, model, maxTokens, prompt, passages, maxPassageCharacters, chat } =
    ranker;
  const promptHash = rankingPromptHash({ prompt, passages, maxPassageCharacters, chat, today });
  if (model !== undefined && isServed(model))
    return { type, candidates, weights, promptHash, maxTokens, model: { type: model.type } };
  const described = model && (await describeBaseModel(model, watcher));
  return { type, candidates, weights, promptHash, maxTokens, ...(described && { model: described }) };
}
