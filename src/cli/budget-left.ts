/**
 * What is left of the budgets of a recipe's models after an evaluation, for commands that evaluate several times: one budget
 * holds for the command. Where a judge's calls cannot be told from a generator's they count for both, so that neither is
 * exceeded.
 */
import type { ModelSourceOptions } from "../config/model-source-options.ts";
import type { Recipe } from "../config/recipe.ts";
import type { CostPart, EvaluationCost } from "../evaluation/cost.ts";
import type { ModelSource } from "./open-model.ts";

type Parts = NonNullable<EvaluationCost["parts"]>;

/** `source` with the budgets of its models less what `cost` says was used; budgets that are used up are 0. */
export function withBudgetLeft(source: ModelSource, { parts = {} }: EvaluationCost): ModelSource {
  const left = <M extends { readonly type: string }>(model: M, ...names: readonly CostPart[]): M =>
    lessOf(model, parts, names);
  const { model, recipe } = source;
  return {
    ...source,
    model: typeof model === "string" ? model : left(model, "agent"),
    recipe: { ...recipe, model: left(recipe.model, "agent"), ...frozenLeft(recipe, left) },
  };
}

function frozenLeft(
  { generator, planner, evaluation, ranker }: Recipe,
  left: <M extends ModelSourceOptions>(model: M, ...names: readonly CostPart[]) => M,
): Partial<Recipe> {
  const judged = <J extends Recipe["evaluation"]["judge"]>(judge: J): J =>
    judge?.type === "model" && judge.model !== undefined
      ? { ...judge, model: left(judge.model, "judge") }
      : judge;
  return {
    ...(generator && { generator: { ...generator, model: left(generator.model, "generator", "judge") } }),
    ...(planner && { planner: { ...planner, judge: judged(planner.judge) } }),
    evaluation: { ...evaluation, judge: judged(evaluation.judge) },
    ...(ranker?.type === "generative" &&
      ranker.model !== undefined && { ranker: { ...ranker, model: left(ranker.model, "ranker") } }),
  };
}

interface Limits {
  readonly maxCalls?: number | undefined;
  readonly maxTokens?: number | undefined;
  readonly maxDollars?: number | undefined;
}

function lessOf<M extends { readonly type: string }>(model: M, parts: Parts, names: readonly CostPart[]): M {
  if (model.type !== "openai") return model;
  const { budget } = model as unknown as { readonly budget: Limits };
  const sum = (of: (part: NonNullable<Parts[CostPart]>) => number): number =>
    names.reduce((total, name) => total + (parts[name] ? of(parts[name]) : 0), 0);
  const less = (limit: number | undefined, used: number): number | undefined =>
    limit === undefined ? undefined : Math.max(0, limit - used);
  return {
    ...model,
    budget: {
      maxCalls: less(
        budget.maxCalls,
        sum(({ calls }) => calls),
      ),
      maxTokens: less(
        budget.maxTokens,
        sum(({ promptTokens, completionTokens }) => promptTokens + completionTokens),
      ),
      maxDollars: less(
        budget.maxDollars,
        sum(({ dollars = 0 }) => dollars),
      ),
    },
  };
}
