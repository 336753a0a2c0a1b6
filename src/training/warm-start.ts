/**
 * The supervised beginning of a recipe as a training of its own, so that recipes which differ in their reinforcement alone
 * can share it: a stage starts from the weights that the one before left, whoever trained them, so the rest of the recipe
 * ends with the same weights from there.
 */
import { isServed } from "../config/model-source-options.ts";
import { plannerSchema } from "../config/planner-options.ts";
import { rankerSchema } from "../config/ranker-options.ts";
import type { Recipe } from "../config/recipe.ts";
import { rankerFolder } from "./opened-ranker.ts";

export interface WarmStart {
  /** The supervised stages, all that only reinforcement reads at its defaults: equal for recipes that can share it. */
  readonly recipe: Recipe;
  /** What comes after, from the checkpoint in which `recipe` ended. */
  rest(checkpoint: string): Recipe;
}

/** The warm start of a recipe; undefined where it does not begin with supervised stages, trains adapters, or trains elsewhere. */
export function warmStartOf(recipe: Recipe): WarmStart | undefined {
  const first = recipe.stages.findIndex(({ type }) => type === "reinforcement");
  const supervised = recipe.stages.slice(0, Math.max(0, first));
  if (supervised.length === 0 || recipe.engine.type !== "embedded" || recipe.engine.lora) return undefined;
  const { ranker, planner } = recipe;
  const warm: Recipe = {
    ...recipe,
    name: "warm-start",
    stages: supervised,
    ...(planner && { planner: withoutReward(planner) }),
    ...(ranker && { ranker: withoutLearning(ranker) }),
  };
  return {
    recipe: warm,
    rest: (checkpoint) => ({
      ...recipe,
      model: { type: "pretrained", source: checkpoint },
      stages: recipe.stages.slice(first),
      ...(ranker && { ranker: fromCheckpoint(ranker, checkpoint) }),
    }),
  };
}

type Planner = NonNullable<Recipe["planner"]>;
type Ranker = NonNullable<Recipe["ranker"]>;

/** What evaluations say of a planner does not depend on these. */
function withoutReward(planner: Planner): Planner {
  const { alpha, outcome, roundCap, subQueryCap } = plannerSchema.parse({});
  return { ...planner, alpha, outcome, roundCap, subQueryCap };
}

/** A ranker with weights of its own lies beside the agent's. */
function fromCheckpoint(ranker: Ranker, checkpoint: string): Ranker {
  const isOwn =
    ranker.type === "generative" &&
    ranker.weights === "own" &&
    ranker.model !== undefined &&
    !isServed(ranker.model);
  return isOwn ? { ...ranker, model: { type: "pretrained", source: rankerFolder(checkpoint) } } : ranker;
}

function withoutLearning(ranker: Ranker): Ranker {
  if (ranker.type !== "generative") return ranker;
  const { model, weights, candidates, maxTokens, prompt, passages, maxPassageCharacters, chat } = ranker;
  const kept = { model, weights, candidates, maxTokens, prompt, passages, maxPassageCharacters, chat };
  // What is only asked stays so; what could be trained is warmed up alike whether it goes on learning or not.
  const isAsked = model !== undefined && isServed(model);
  return rankerSchema.parse({ ...kept, trainable: !isAsked });
}
