/**
 * Rules of a recipe that span several options, each with a sentence. What can be known without reading data is an
 * error here; what may still go well (a context that only a long trajectory fills) is a warning of `forager doctor`.
 */
import type { z } from "zod";
import { klOf } from "../algorithm/options.ts";
import { type CheckedEngine, checkEngine } from "./engine-rules.ts";
import { type CheckedPlanner, checkPlanner } from "./planner-rules.ts";
import { type CheckedRanker, checkRanker } from "./ranker-options.ts";
import { checkSamplingAhead } from "./sample-ahead-rules.ts";
import type { Stage } from "./stage-options.ts";

/** What the rules look at; the recipe has it all. */
interface Checked extends CheckedPlanner, CheckedRanker, Pick<CheckedEngine, "engine"> {
  readonly data:
    | {
        readonly type: "world";
        readonly world: { readonly hops: readonly number[]; readonly familiar?: number };
      }
    | {
        readonly type: "files";
        readonly corpus?: unknown;
        readonly questions: { readonly train?: unknown; readonly validation?: unknown };
      };
  readonly retriever: { readonly type: string };
  readonly environment: {
    readonly k: number;
    readonly mode: string;
    readonly maxSearches: number;
    readonly maxTurnTokens: number;
    readonly maxObservationTokens: number;
    readonly condense?: unknown;
  };
  readonly model:
    | {
        readonly type: "fresh";
        readonly contextLength: number;
        readonly width: number;
        readonly heads: number;
      }
    | { readonly type: "pretrained" | "openai" | "replay" | "remote" };
  readonly evaluation: CheckedPlanner["evaluation"] & { readonly split?: string | undefined };
  readonly stages: readonly Stage[];
}

type Context = z.core.$RefinementCtx;

/** Adds an issue for every rule that is broken. */
export function checkRecipe(recipe: Checked, context: Context): void {
  checkStageNames(recipe.stages, context);
  checkStages(recipe, context);
  checkSwitching(recipe, context);
  recipe.stages.forEach((stage, index) => {
    if (stage.type === "supervised") checkSupervised(recipe, index, context);
  });
  checkBudgets(recipe, context);
  checkCorpus(recipe, context);
  checkAdapters(recipe, context);
  checkEngine(recipe, context);
  checkPlanner(recipe, context);
  checkRanker(recipe, context);
  checkSamplingAhead(recipe, context);
}

/** Beside random weights that never change there is nothing to learn, and a checkpoint would not hold them. */
function checkAdapters({ engine, model }: Checked, context: Context): void {
  if (!("lora" in engine) || engine.lora === undefined || model.type === "pretrained") return;
  issue(
    context,
    ["engine", "lora"],
    "adapters are trained beside the weights of a model that exists; name one (model: smollm2-135m), or leave engine.lora out to train a fresh model as a whole",
  );
}

/** What is built at the start needs something to be built from. */
function checkCorpus({ data, retriever, model }: Checked, context: Context): void {
  if (data.type === "world" || data.corpus !== undefined) return;
  if (retriever.type === "bm25")
    issue(
      context,
      ["data", "corpus"],
      "retriever.type bm25 is built from a corpus; name one, or a retriever that exists (index, remote, …)",
    );
  else if (model.type === "fresh" && retriever.type !== "index")
    issue(
      context,
      ["data", "corpus"],
      "a fresh model learns its tokenizer from a corpus; name one, or start from a model that exists",
    );
}

/** Random weights answer nothing, and stages learn from questions. */
function checkStages({ data, model, stages }: Checked, context: Context): void {
  if (data.type === "files" && data.questions.train === undefined && stages.length > 0)
    issue(
      context,
      ["data", "questions", "train"],
      "stages train on questions; name files of them, or leave the stages out of a recipe that is only evaluated",
    );
  if (model.type !== "fresh" || stages.length > 0) return;
  issue(context, ["stages"], "a fresh model knows nothing; give at least one stage to train it in");
}

function checkStageNames(stages: readonly Stage[], context: Context): void {
  stages.forEach(({ name }, index) => {
    if (stages.findIndex((other) => other.name === name) < index)
      issue(context, ["stages", index, "name"], `two stages are named "${name}"; give each its own name`);
  });
}

/** What a stage takes over must be there, and what it is chosen by must not be what it is judged by. */
function checkSwitching({ data, stages, evaluation }: Checked, context: Context): void {
  if (
    evaluation.split === "validation" &&
    stages.some((stage) => stage.type === "reinforcement" && stage.until)
  )
    issue(
      context,
      ["evaluation", "split"],
      "a stage with until chooses its weights by the validation split, whose score is then too good; evaluate on test",
    );
  stages.forEach((stage, index) => {
    if (stage.type !== "reinforcement") return;
    if (stage.until && data.type === "files" && data.questions.validation === undefined)
      issue(
        context,
        ["data", "questions", "validation"],
        `stage ${stage.name} ends by its score on validation questions; name files of them, or leave until out`,
      );
    const path = ["stages", index, "carry"];
    const before = stages[index - 1];
    if (stage.carry.length > 0 && before === undefined)
      issue(context, path, "the first stage has none before it to take anything over from; leave carry out");
    else if (stage.carry.includes("reference") && !(hasReference(stage) && before && hasReference(before)))
      issue(
        context,
        path,
        "a reference is taken over between two stages whose algorithm has a kl term; give both one, or leave reference out",
      );
  });
}

function hasReference(stage: Stage): boolean {
  return stage.type === "reinforcement" && klOf(stage.algorithm) !== undefined;
}

function checkSupervised({ data, environment, stages }: Checked, index: number, context: Context): void {
  const stage = stages[index];
  if (environment.condense !== undefined)
    issue(
      context,
      ["environment", "condense"],
      "a supervised stage has no one to condense its demonstrations; leave the stage or condense out",
    );
  checkHabits({ data, environment, stages }, index, context);
  const isSearching = environment.mode === "search" || environment.mode === "planner";
  if (!isSearching || stage?.type !== "supervised" || stage.teacher.type !== "plan") return;
  if (data.type === "files") {
    issue(
      context,
      ["stages", index, "teacher", "type"],
      "the teacher plan follows plans, which only questions of built-in worlds have; use goldPassages, which needs questions with `supporting` passages",
    );
    return;
  }
  const hops = Math.max(...data.world.hops);
  if (hops > environment.maxSearches)
    issue(
      context,
      ["environment", "maxSearches"],
      `the teacher makes ${hops} searches for a question of ${hops} hops, ${environment.maxSearches} are allowed; raise it or lower data.world.hops`,
    );
}

/** Habits are of searching, and what is known by heart must be asked. */
function checkHabits(
  { data, environment, stages }: Pick<Checked, "data" | "environment" | "stages">,
  index: number,
  context: Context,
): void {
  const stage = stages[index];
  if (stage?.type !== "supervised" || stage.teacher.type !== "plan" || !stage.teacher.habits) return;
  const path = ["stages", index, "teacher", "habits"];
  if (environment.mode !== "search")
    issue(
      context,
      path,
      `habits are of searching, in mode search; mode is ${environment.mode}, leave habits out`,
    );
  if (stage.teacher.habits.memory > 0 && !(data.type === "world" && data.world.familiar))
    issue(
      context,
      [...path, "memory"],
      "memory is of familiar questions, and there are none; set data.world.familiar of the world lab, or memory to 0",
    );
}

/** One turn and one observation must fit beside a prompt, or no episode could ever get past its first search. */
function checkBudgets({ environment, model }: Checked, context: Context): void {
  if (model.type !== "fresh") return;
  const { maxTurnTokens, maxObservationTokens } = environment;
  if (maxTurnTokens + maxObservationTokens < model.contextLength) return;
  issue(
    context,
    ["model", "contextLength"],
    `one turn (${maxTurnTokens}) and one observation (${maxObservationTokens}) need more than ${model.contextLength} tokens, and the prompt comes on top; raise it or lower environment.maxTurnTokens and environment.maxObservationTokens`,
  );
}

function issue(context: Context, path: readonly (string | number)[], message: string): void {
  context.addIssue({ code: "custom", path: [...path], message });
}
