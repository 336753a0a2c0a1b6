/** Where sampling may run ahead of training (`maxStaleness`): what would be trained on something else than was sampled is refused. */
import type { z } from "zod";
import type { Stage } from "./stage-options.ts";

/** What the rules look at; the recipe has it all. */
export interface CheckedAhead {
  readonly engine: { readonly type: string };
  readonly environment: { readonly mode: string };
  readonly retriever: { readonly type: string };
  readonly ranker?: { readonly type: string } | undefined;
  readonly stages: readonly Stage[];
}

/** Adds an issue for each stage that samples ahead with what cannot. */
export function checkSamplingAhead(recipe: CheckedAhead, context: z.core.$RefinementCtx): void {
  recipe.stages.forEach((stage, index) => {
    if (stage.type !== "reinforcement" || stage.maxStaleness === 0) return;
    const message = reasonAgainst(recipe) ?? reasonAgainstAlgorithm(stage);
    if (message === undefined) return;
    const path = ["stages", index, "maxStaleness"];
    context.addIssue({ code: "custom", path, message: `${message}; leave maxStaleness at 0` });
  });
}

function reasonAgainst({ engine, environment, retriever, ranker }: CheckedAhead): string | undefined {
  if (engine.type === "embedded")
    return "the embedded engine samples and trains in turns, with one set of weights; sampling ahead needs an engine on other machines";
  if (environment.mode === "planner")
    return "a planner's episodes wait for a generator and judges that are asked for one step at a time";
  if (ranker?.type === "generative") return "a generative ranker is sampled with the weights of its own step";
  if (retriever.type === "simulated")
    return "a simulated retriever changes with the step, and episodes of several steps would share it";
  return undefined;
}

function reasonAgainstAlgorithm({
  algorithm,
}: Extract<Stage, { type: "reinforcement" }>): string | undefined {
  if (algorithm.type === "rejectionSampling")
    return "rejection sampling imitates without a probability ratio, so that nothing corrects for older weights";
  if (!algorithm.maskRetrieved)
    return "retrieved tokens that are trained on (maskRetrieved: false) have no log-probability of the older weights";
  return undefined;
}
