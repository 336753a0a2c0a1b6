/**
 * What turns gradients into new weights: the gradients that add up, AdamW's moments and its count of steps. All of it is
 * made when it is first needed, since a model that only samples has none.
 */
import { EngineError } from "../errors.ts";
import { adamStep, gradientNorm, type OptimizerState } from "./adam.ts";
import { readOptimizer, writeOptimizer } from "./checkpoint.ts";
import type { AdamOptions, StepReport } from "./engine.ts";
import type { CreateMoments } from "./moments.ts";
import { type ParameterSet, zerosLike } from "./parameters.ts";

export interface OptimizerOptions {
  readonly createMoments: CreateMoments;
  /** Most that a step uses. */
  readonly threads: number;
}

export class Optimizer {
  readonly #parameters: ParameterSet;
  readonly #createMoments: CreateMoments;
  readonly #threads: number;
  #gradients: ParameterSet | undefined;
  #state: OptimizerState | undefined;
  /** A step began that has not ended: some weights are new and some are not. */
  #isTorn = false;

  constructor(parameters: ParameterSet, { createMoments, threads }: OptimizerOptions) {
    this.#parameters = parameters;
    this.#createMoments = createMoments;
    this.#threads = threads;
  }

  /** Of all parameters, by their names; what is added to them counts in the next step. */
  get gradients(): ParameterSet {
    this.#gradients ??= zerosLike(this.#parameters);
    return this.#gradients;
  }

  /** One update of the parameters, after which the gradients are 0. Throws as `adamStep` does. */
  async step(options: AdamOptions): Promise<StepReport> {
    this.requireWhole();
    this.#state ??= { step: 0, moments: await this.#createMoments(this.#parameters) };
    this.#isTorn = true;
    const trained = { parameters: this.#parameters, gradients: this.gradients, state: this.#state };
    const gradientNorm = await adamStep(trained, options, this.#threads);
    this.#isTorn = false;
    return { gradientNorm };
  }

  /** Euclidean norm of what has been added since the last step. */
  async gradientNorm(): Promise<number> {
    return await gradientNorm(this.gradients, this.#threads);
  }

  /** Forgets moments and steps. */
  async reset(): Promise<void> {
    await this.#state?.moments.close();
    this.#state = undefined;
  }

  /** Writes the state, if there is one, into an existing folder. Throws `EngineError` after a step that failed half way. */
  async save(folder: string): Promise<void> {
    this.requireWhole();
    if (this.#state) await writeOptimizer(folder, this.#state);
  }

  /** Reads what `save` wrote, for `replace`. Throws `CheckpointError`, `FileError`. */
  async read(folder: string): Promise<OptimizerState | undefined> {
    return await readOptimizer(folder, this.#parameters, this.#createMoments);
  }

  /** Goes on from another state, and forgets the gradients; the parameters are the caller's. */
  async replace(state: OptimizerState | undefined): Promise<void> {
    await this.reset();
    this.#state = state;
    this.#isTorn = false;
    for (const { data } of this.#gradients?.values() ?? []) data.fill(0);
  }

  async close(): Promise<void> {
    await this.reset();
  }

  /** Throws `EngineError` after a step that failed half way, until a whole state replaces it. */
  requireWhole(): void {
    if (this.#isTorn)
      throw new EngineError(
        "a step of the optimiser failed half way, so that its weights are of no use; go on from the newest checkpoint",
        { kind: "failed" },
      );
  }
}
