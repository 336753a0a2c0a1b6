/** Rules of a recipe with a search planner: its parts need each other, and none is read without the others. */
import type { z } from "zod";
import type { Stage } from "./stage-options.ts";

export interface CheckedPlanner {
  readonly environment: { readonly mode: string };
  readonly generator?: { readonly model: { readonly type: string } } | undefined;
  readonly planner?:
    | { readonly judge: { readonly type: string; readonly model?: { readonly type: string } | undefined } }
    | undefined;
  readonly evaluation: {
    readonly judge?:
      | { readonly type: string; readonly model?: { readonly type: string } | undefined }
      | undefined;
  };
  readonly stages: readonly Stage[];
}

/** Adds an issue for every rule that is broken. */
export function checkPlanner(recipe: CheckedPlanner, context: z.core.$RefinementCtx): void {
  const { environment, generator, planner, stages, evaluation } = recipe;
  const issue = (path: readonly (string | number)[], message: string): void =>
    context.addIssue({ code: "custom", path: [...path], message });
  const isPlanner = environment.mode === "planner";
  if (isPlanner && generator === undefined)
    issue(["generator"], "a planner does not answer; name the model that does (generator: …)");
  if (isPlanner && planner === undefined)
    issue(["planner"], "mode planner needs to know who judges; give planner: {} for the paper's values");
  if (!isPlanner && generator !== undefined)
    issue(["generator"], `mode ${environment.mode} asks no generator; leave it out or use mode planner`);
  if (!isPlanner && planner !== undefined)
    issue(["planner"], `mode ${environment.mode} has no planner; leave it out or use mode planner`);
  if (generator?.model.type === "fresh")
    issue(
      ["generator", "model"],
      "a fresh model knows nothing and is not trained here; name one that exists",
    );
  if (planner?.judge.model?.type === "fresh")
    issue(["planner", "judge", "model"], "a fresh model knows nothing; name one that exists");
  if (isPlanner && evaluation.judge !== undefined)
    issue(["evaluation", "judge"], "mode planner is judged as planner.judge says; leave this one out");
  if (evaluation.judge?.model?.type === "fresh")
    issue(["evaluation", "judge", "model"], "a fresh model knows nothing; name one that exists");
  if (!isPlanner) checkPlannerStages(stages, environment.mode, issue);
}

type Issue = (path: readonly (string | number)[], message: string) => void;

/** What only planners are taught and rewarded, in another mode. */
function checkPlannerStages(stages: readonly Stage[], mode: string, issue: Issue): void {
  stages.forEach((stage, index) => {
    if (stage.type === "supervised" && stage.teacher.type === "plan" && stage.teacher.redundancy > 0)
      issue(
        ["stages", index, "teacher", "redundancy"],
        `only planners are shown needless searches; mode is ${mode}, leave redundancy out`,
      );
    if (stage.type === "reinforcement" && stage.reward.type === "planner")
      issue(
        ["stages", index, "reward"],
        `the reward planner judges a planner with its generator; mode ${mode} has none, use mode planner`,
      );
  });
}
