/** Runs batches of whole sequences in micro-batches; one graph for each loss is built when it is first needed and kept. */
import type { Datum } from "../algorithm/datum.ts";
import type { Loss } from "../algorithm/loss.ts";
import { assert } from "../errors.ts";
import { canonicalJson } from "../shared/hash.ts";
import type { LossReport } from "./engine.ts";
import type { AdaptedModel } from "./lora.ts";
import { type MicroBatch, planMicroBatches } from "./micro-batch.ts";
import { type Parameter, type ParameterSet, parameterFeeds } from "./parameters.ts";
import type { Feed, SessionOptions } from "./session.ts";
import {
  accumulatorPrefix,
  createSequenceGraph,
  type SequenceGraph,
  sequenceFeeds,
} from "./training-graph.ts";

export interface SequenceRunnerOptions extends SessionOptions {
  /** Most tokens of one micro-batch, padding included. */
  readonly tokenBudget: number;
}

export class SequenceRunner {
  readonly #adapted: AdaptedModel;
  readonly #options: SequenceRunnerOptions;
  readonly #graphs = new Map<string, Promise<SequenceGraph>>();

  constructor(adapted: AdaptedModel, options: SequenceRunnerOptions) {
    this.#adapted = adapted;
    this.#options = options;
  }

  /** Log-probability of every target, one array (T) for each datum. */
  async logprobs(parameters: ParameterSet, batch: readonly Datum[]): Promise<Float32Array[]> {
    const logprobs = batch.map(({ targets }) => new Float32Array(targets.length));
    for (const microBatch of this.#plan(batch)) {
      const graph = await this.#graph();
      const data = microBatch.members.map((index) => batch[index] as Datum);
      const selection = sequenceFeeds(data, microBatch.time, this.#adapted);
      const feeds = new Map([...selection.feeds, ...parameterFeeds(parameters)]);
      const results = await graph.session.run(feeds, [graph.logprobs]);
      scatter((results.get(graph.logprobs) as Feed).data as Float32Array, selection, {
        microBatch,
        logprobs,
      });
    }
    return logprobs;
  }

  /** Adds the gradient of the loss to `gradients` of what is trained, in place. Log-probabilities of weightless targets are 0. */
  async forwardBackward(
    parameters: ParameterSet,
    batch: readonly Datum[],
    setting: { readonly loss: Loss; readonly gradients: ReadonlyMap<string, Parameter> },
  ): Promise<LossReport> {
    const { loss, gradients } = setting;
    const logprobs = batch.map(({ targets }) => new Float32Array(targets.length));
    let total = 0;
    for (const microBatch of this.#plan(batch)) {
      const data = microBatch.members.map((index) => batch[index] as Datum);
      if (data.every(({ weights }) => weights.every((weight) => weight === 0))) continue;
      const graph = await this.#graph(loss);
      const selection = sequenceFeeds(data, microBatch.time, { model: this.#adapted.model, loss });
      const feeds = new Map([
        ...selection.feeds,
        ...parameterFeeds(parameters),
        ...parameterFeeds(gradients, accumulatorPrefix),
      ]);
      const into = new Map(
        [...graph.gradientOutputs].map(([name, output]) => [output, gradients.get(name) as Feed]),
      );
      const lossOutput = graph.loss as string;
      const results = await graph.session.run(feeds, [lossOutput, graph.logprobs], into);
      total += (results.get(lossOutput) as Feed).data[0] as number;
      scatter((results.get(graph.logprobs) as Feed).data as Float32Array, selection, {
        microBatch,
        logprobs,
      });
    }
    return { loss: total, logprobs };
  }

  async close(): Promise<void> {
    for (const graph of this.#graphs.values()) await (await graph).session.close();
    this.#graphs.clear();
  }

  #plan(batch: readonly Datum[]): MicroBatch[] {
    const { contextLength } = this.#adapted.model;
    for (const { inputs } of batch) {
      assert(
        inputs.length <= contextLength,
        `a datum of ${inputs.length} tokens for a context of ${contextLength}`,
      );
    }
    const lengths = batch.map(({ inputs }) => inputs.length);
    return planMicroBatches(lengths, this.#options.tokenBudget);
  }

  #graph(loss?: Loss): Promise<SequenceGraph> {
    const key = canonicalJson(loss ?? null);
    const known = this.#graphs.get(key);
    if (known) return known;
    const created = createSequenceGraph(this.#adapted, { ...this.#options, ...(loss && { loss }) });
    this.#graphs.set(key, created);
    return created;
  }
}

/** Brings the selected log-probabilities of a micro-batch to their data. */
function scatter(
  values: Float32Array,
  selection: { readonly rows: Int32Array; readonly times: Int32Array },
  target: { readonly microBatch: MicroBatch; readonly logprobs: readonly Float32Array[] },
): void {
  for (const [index, value] of values.entries()) {
    const datum = target.microBatch.members[selection.rows[index] as number] as number;
    (target.logprobs[datum] as Float32Array)[selection.times[index] as number] = value;
  }
}
