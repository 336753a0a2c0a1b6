/** What plays an episode with a policy: one object an episode, which knows no tokens of the policy and no reward. */
import type { Codec } from "./action.ts";
import { PlannerEnvironment } from "./planner-environment.ts";
import { SearchEnvironment, type SearchEnvironmentInput } from "./search-environment.ts";
import type { StepResult } from "./step-result.ts";

export interface Environment {
  readonly codec: Codec;
  /** The text that opens the episode. */
  prompt(signal?: AbortSignal): Promise<string>;
  /** Plays one turn of the policy, given as its text alone. */
  step(turnText: string, signal?: AbortSignal): Promise<StepResult>;
}

/** The environment of one episode, by the mode that the options name. */
export function openEnvironment(input: SearchEnvironmentInput): Environment {
  return input.options.mode === "planner" ? new PlannerEnvironment(input) : new SearchEnvironment(input);
}
