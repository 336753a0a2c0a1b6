/** One AdamW step of a model on a server, and the norm of its gradient, which servers tell under several names. */
import { EngineError } from "../../errors.ts";
import type { AdamOptions } from "../engine.ts";
import type { Profile } from "./profiles.ts";
import type { RemoteModel } from "./remote-model.ts";

/** Throws `EngineError` for a setting that the server would ignore. */
export function requireKnown(options: AdamOptions, { adamMissing, title }: Profile): void {
  for (const field of adamMissing)
    if (options[field] !== 0)
      throw new EngineError(`${title} does not know ${field}; set it to 0 in the stage's optimizer`);
}

/** Takes the step; returns the norm before clipping. Throws `EngineError` (`malformed`) where none was told. */
export async function optimStep(model: RemoteModel, options: AdamOptions): Promise<number> {
  const adam_params = {
    learning_rate: options.learningRate,
    beta1: options.beta1,
    beta2: options.beta2,
    eps: options.epsilon,
    weight_decay: options.weightDecay,
    grad_clip_norm: options.maxGradientNorm,
  };
  const { metrics } = await model.run("optim_step", { adam_params });
  const told = Object.entries(metrics ?? {}).find(([name]) => /(^|[/_.])grad(ient)?_norm$/.test(name))?.[1];
  if (told !== undefined && Number.isFinite(told)) return told;
  throw model.connection.error(
    { path: "optim_step" },
    `expected the norm of the gradient among its metrics, got ${JSON.stringify(metrics ?? null)}; check engine.profile`,
    "malformed",
  );
}

/** Moments of nothing: a step that changes no weight. */
export const stillStep: AdamOptions = {
  learningRate: 0,
  beta1: 0.9,
  beta2: 0.95,
  epsilon: 1e-8,
  weightDecay: 0,
  maxGradientNorm: 0,
};
