/** The critic of a stage: made when the stage starts, taken from its checkpoint when the stage goes on. */
import { join } from "node:path";
import type { Recipe } from "../config/recipe.ts";
import type { Stage } from "../config/stage-options.ts";
import type { Critic, Engine } from "../engine/engine.ts";
import { EngineError } from "../errors.ts";

/** Throws `EngineError` where a stage needs a critic and the engine has none; called before anything is trained. */
export function requireCritic({ stages, engine: { type } }: Recipe, engine: Engine): void {
  const stage = stages.find((candidate) => algorithmOf(candidate)?.type === "ppo");
  if (!stage || engine.critic) return;
  throw new EngineError(
    `stage ${stage.name} trains with a critic (algorithm.type ppo), which the engine ${type} does not offer; use algorithm.type grpo or the embedded engine`,
  );
}

/**
 * The critic of `stage`, if its algorithm has one: fresh from the engine's weights of now, or as `checkpoint` holds it.
 * Throws `CheckpointError`.
 */
export async function openCritic(
  engine: Engine,
  stage: Stage,
  checkpoint: string | undefined,
): Promise<Critic | undefined> {
  const algorithm = algorithmOf(stage);
  if (algorithm?.type !== "ppo") return undefined;
  const critic = await engine.critic?.({ trunk: algorithm.critic.trunk });
  if (critic && checkpoint !== undefined) await critic.load(criticFolder(checkpoint));
  return critic;
}

/** Where the critic lies within a checkpoint. */
export function criticFolder(checkpoint: string): string {
  return join(checkpoint, "critic");
}

function algorithmOf(stage: Stage) {
  return stage.type === "reinforcement" ? stage.algorithm : undefined;
}
