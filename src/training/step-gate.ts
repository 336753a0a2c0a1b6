/**
 * Keeps completions and steps of one engine apart: a step starts when no completion is under way, and completions that are
 * asked for meanwhile wait until it is over. For servers that have one set of weights to sample from, where a completion
 * that began before a step would end with other weights, or overwrite them. Gradients may be computed at any time.
 */
import type { Engine } from "../engine/engine.ts";

export class StepGate {
  #underWay = 0;
  #step: Promise<void> | undefined;
  #whenIdle: (() => void) | undefined;

  /** Runs a completion, after the step under way. */
  async sample<T>(work: () => Promise<T>): Promise<T> {
    while (this.#step !== undefined) await this.#step;
    this.#underWay++;
    try {
      return await work();
    } finally {
      this.#underWay--;
      if (this.#underWay === 0) this.#whenIdle?.();
    }
  }

  /** Runs a step, after the completions under way; one step at a time. */
  async step<T>(work: () => Promise<T>): Promise<T> {
    let open = (): void => undefined;
    this.#step = new Promise((resolve) => {
      open = resolve;
    });
    try {
      if (this.#underWay > 0)
        await new Promise<void>((resolve) => {
          this.#whenIdle = resolve;
        });
      return await work();
    } finally {
      this.#whenIdle = undefined;
      this.#step = undefined;
      open();
    }
  }
}

/** `engine` for an update, whose steps go through `gate`. */
export function steppingThrough(gate: StepGate, engine: Engine): Engine {
  return {
    tokenizer: engine.tokenizer,
    contextLength: engine.contextLength,
    parameterCount: engine.parameterCount,
    trainableParameterCount: engine.trainableParameterCount,
    policy: () => engine.policy(),
    logprobs: (batch) => engine.logprobs(batch),
    forwardBackward: (batch, loss) => engine.forwardBackward(batch, loss),
    step: (options) => gate.step(() => engine.step(options)),
    resetOptimizer: () => engine.resetOptimizer(),
    save: (folder) => engine.save(folder),
    load: (folder) => engine.load(folder),
    discard: async (folder) => await engine.discard?.(folder),
    snapshot: () => engine.snapshot(),
    close: () => engine.close(),
  };
}
