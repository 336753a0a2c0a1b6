/** One trained model of an embedded base: its weights, its optimiser, and the graphs it shares with its like. */
import type { Datum } from "../../algorithm/datum.ts";
import type { Loss } from "../../algorithm/loss.ts";
import type { AdamOptions, StepReport } from "../../engine/engine.ts";
import { languageHead, languageInputs } from "../../engine/language-head.ts";
import { momentsInMemory } from "../../engine/moments.ts";
import { Optimizer } from "../../engine/optimizer.ts";
import type { Parameter } from "../../engine/parameters.ts";
import type { SequenceRunner } from "../../engine/sequence-runner.ts";
import type { TrainedWeights } from "../../engine/trained-weights.ts";
import { EngineError } from "../../errors.ts";
import type { LossSum, Sampler, TrainedModel } from "./backend.ts";

/** The graphs of a shape, for one call at a time. */
export interface RunOfShape {
  alone<T>(work: (runner: SequenceRunner) => Promise<T>): Promise<T>;
  giveBack(): void;
}

export interface EmbeddedModelParts {
  /** Most that a step of the optimiser uses. */
  readonly threads: number;
  readonly weights: TrainedWeights;
  readonly run: RunOfShape;
  readonly snapshot: () => Sampler;
  /** Writes weights and tokenizer. */
  readonly save: (folder: string) => Promise<void>;
}

export class EmbeddedModel implements TrainedModel {
  readonly #parts: EmbeddedModelParts;
  readonly #optimizer: Optimizer;

  constructor(parts: EmbeddedModelParts) {
    this.#parts = parts;
    this.#optimizer = new Optimizer(parts.weights.trained, {
      createMoments: momentsInMemory,
      threads: parts.threads,
    });
  }

  async logprobs(batch: readonly Datum[]): Promise<Float32Array[]> {
    const { run, weights } = this.#parts;
    return await run.alone((runner) => runner.logprobs(weights.all, batch));
  }

  /** Unlike `Engine.forwardBackward` it computes the log-probabilities of weightless targets too, as the protocol has it. */
  async forwardBackward(batch: readonly Datum[], loss: Loss): Promise<LossSum> {
    this.#optimizer.requireWhole();
    const { run, weights } = this.#parts;
    const { model } = weights.adapted;
    const reading = {
      head: languageHead(model, loss),
      isSelected: () => true,
      inputs: (data: readonly Datum[], places: Parameters<typeof languageInputs>[1]) =>
        languageInputs(data, places, loss),
    };
    const { gradients } = this.#optimizer;
    const report = await run.alone((runner) => runner.train(weights.all, batch, { ...reading, gradients }));
    if (Number.isFinite(report.loss) && report.values.every((values) => values.every(Number.isFinite)))
      return { loss: report.loss, logprobs: report.values };
    this.#forgetGradients();
    throw new EngineError(
      "the loss or a log-probability is not a finite number, so that the gradient is of no use and all that has accumulated since the last step is forgotten; look for advantages or log-probabilities far out of range, or load an earlier checkpoint",
    );
  }

  async step(options: AdamOptions): Promise<StepReport> {
    return await this.#parts.run.alone(async () => {
      if (!Number.isFinite(await this.#optimizer.gradientNorm())) {
        this.#forgetGradients();
        throw new EngineError(
          "the gradient is not a finite number; it is forgotten and the weights are as they were. Look for advantages or weights far out of range",
        );
      }
      return await this.#optimizer.step(options);
    });
  }

  async snapshot(): Promise<Sampler> {
    this.#optimizer.requireWhole();
    return this.#parts.snapshot();
  }

  async save(folder: string): Promise<void> {
    this.#optimizer.requireWhole();
    await this.#parts.save(folder);
    await this.#optimizer.save(folder);
  }

  async load(folder: string, { optimizer }: { readonly optimizer: boolean }): Promise<void> {
    const { trained, read } = this.#parts.weights;
    // All is read before anything changes, so that a damaged folder leaves the model as it was.
    const saved = await read(folder);
    const state = optimizer ? await this.#optimizer.read(folder) : undefined;
    for (const [name, { data }] of trained) data.set((saved.get(name) as Parameter).data);
    await this.#optimizer.replace(state);
  }

  async close(): Promise<void> {
    await this.#optimizer.close();
    this.#parts.run.giveBack();
  }

  #forgetGradients(): void {
    for (const { data } of this.#optimizer.gradients.values()) data.fill(0);
  }
}
