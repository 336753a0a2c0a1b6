/**
 * The critic of the embedded engine. With a trunk of its own it has copies of what the engine trains (all weights, or
 * the adapters) and shares with it only what is frozen; with a shared trunk it has its head alone.
 */
import type { ValueDatum } from "../algorithm/datum.ts";
import type { ValueLoss } from "../algorithm/loss.ts";
import { allWritten } from "../shared/files.ts";
import { readCritic, writeCritic } from "./critic-files.ts";
import type { AdamOptions, Critic, CriticOptions, StepReport, ValueReport } from "./engine.ts";
import { Optimizer, type OptimizerOptions } from "./optimizer.ts";
import { copyParameters, type Parameter, type ParameterSet } from "./parameters.ts";
import type { SequenceRunner } from "./sequence-runner.ts";
import type { TrainedWeights } from "./trained-weights.ts";
import { valueHead, valueHeadShapes, valueInputs } from "./value-head.ts";

/** The engine that a critic belongs to. */
export interface CriticHost {
  readonly weights: TrainedWeights;
  readonly sequences: SequenceRunner;
  /** Where the gradients of a shared trunk are added. */
  readonly gradients: () => ParameterSet;
  /** Gives the sampler's memory back where training needs it. */
  readonly rest: () => Promise<void>;
  readonly optimizer: OptimizerOptions;
}

/** The output layer predicts tokens; no value depends on it where it is a table of its own. */
const outputLayer = "lm_head.weight";

export class EmbeddedCritic implements Critic {
  readonly #host: CriticHost;
  readonly #trunk: CriticOptions["trunk"];
  /** What the critic trains and saves, its head last. */
  readonly #own: ParameterSet;
  readonly #optimizer: Optimizer;

  /** A fresh critic of the weights of now. */
  constructor(host: CriticHost, { trunk }: CriticOptions) {
    this.#host = host;
    this.#trunk = trunk;
    const copied = trunk === "own" ? copyParameters(withoutOutput(host.weights.trained)) : [];
    this.#own = new Map([...copied, ...freshHead(host.weights.adapted)]);
    this.#optimizer = new Optimizer(this.#own, host.optimizer);
  }

  async values(batch: readonly Pick<ValueDatum, "inputs">[]): Promise<Float32Array[]> {
    await this.#host.rest();
    const { sequences, weights } = this.#host;
    return await sequences.values(this.#parameters(), batch, {
      head: valueHead(weights.adapted.model),
      isSelected: () => true,
      inputs: () => new Map(),
    });
  }

  async forwardBackward(
    batch: readonly ValueDatum[],
    loss: ValueLoss,
    part: "all" | "head" = "all",
  ): Promise<ValueReport> {
    const { sequences, weights } = this.#host;
    await this.#host.rest();
    const { loss: sum, values } = await sequences.train(this.#parameters(), batch, {
      head: valueHead(weights.adapted.model, loss),
      isSelected: (datum, t) => datum.weights[t] !== 0,
      inputs: valueInputs,
      gradients: this.#gradientsOf(part),
    });
    return { loss: sum, values };
  }

  async step(options: AdamOptions): Promise<StepReport> {
    return await this.#optimizer.step(options);
  }

  async save(folder: string): Promise<void> {
    await allWritten([writeCritic(folder, this.#own), this.#optimizer.save(folder)]);
  }

  async load(folder: string): Promise<void> {
    const weights = await readCritic(folder, this.#own);
    const state = await this.#optimizer.read(folder);
    for (const [name, { data }] of this.#own) data.set((weights.get(name) as Parameter).data);
    await this.#optimizer.replace(state);
  }

  /** Trunk and head run in the engine's sessions. */
  async close(): Promise<void> {
    await this.#optimizer.close();
  }

  /** The engine's weights of now, with the critic's own in their place. */
  #parameters(): ParameterSet {
    return new Map([...this.#host.weights.all, ...this.#own]);
  }

  #gradientsOf(part: "all" | "head"): ParameterSet {
    const { gradients } = this.#optimizer;
    if (part === "all" && this.#trunk === "own") return gradients;
    const head = [...valueHeadShapes(this.#host.weights.adapted.model).keys()].map(
      (name) => [name, gradients.get(name) as Parameter] as const,
    );
    return new Map([...(part === "all" ? this.#host.gradients() : []), ...head]);
  }
}

/** Zeros: a fresh critic says 0. */
function freshHead({ model }: TrainedWeights["adapted"]): [string, Parameter][] {
  return [...valueHeadShapes(model)].map(([name, shape]) => [
    name,
    { shape, data: new Float32Array(shape.reduce((a, b) => a * b, 1)) },
  ]);
}

function withoutOutput(parameters: ParameterSet): ParameterSet {
  return new Map([...parameters].filter(([name]) => name !== outputLayer));
}
