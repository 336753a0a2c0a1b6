/**
 * Runs batches of whole sequences in micro-batches, in one lane or several side by side: through the network, what is
 * selected through a head, and with a loss the way back. Padding lies to the right; of a batch with a loss only
 * predictions that have a weight are selected.
 */
import type { Datum } from "../algorithm/datum.ts";
import type { Loss } from "../algorithm/loss.ts";
import { assert } from "../errors.ts";
import type { LossReport } from "./engine.ts";
import type { Head } from "./head.ts";
import { type Lane, LaneGradients, type LaneWork } from "./lane.ts";
import { languageHead, languageInputs } from "./language-head.ts";
import { LayeredLane, type LayeredOptions } from "./layered-lane.ts";
import type { AdaptedModel } from "./lora.ts";
import { type MicroBatch, paddedTokens, planMicroBatches, shareOut } from "./micro-batch.ts";
import { NetworkLane } from "./network-lane.ts";
import { layTokens, padTokens, type Sequences } from "./packing.ts";
import type { ParameterSet } from "./parameters.ts";
import { type RowPlaces, scatter, select } from "./places.ts";
import type { Values } from "./session.ts";
import { costOf, planSharing } from "./shared-micro-batches.ts";
import { scoresPerToken } from "./time-estimate.ts";

export interface SequenceRunnerOptions extends LayeredOptions {
  /** Most tokens of one micro-batch, padding included. */
  readonly tokenBudget: number;
  /** Whether a micro-batch is one run of the whole network, rather than one of each layer. Absent: no. */
  readonly inOneRun?: boolean;
  /** Micro-batches that are computed side by side, each with its share of the threads. Absent: 1. */
  readonly lanes?: number;
}

/** What a head is applied to: sequences, and of each the positions that matter. */
export interface Reading<T extends { readonly inputs: Int32Array }> {
  readonly head: Head;
  readonly isSelected: (datum: T, t: number) => boolean;
  /** What the head is fed for the places, which lie in the data given. */
  readonly inputs: (data: readonly T[], places: RowPlaces) => ReadonlyMap<string, Values>;
}

export interface TrainingReport {
  readonly loss: number;
  /** One value for each position, 0 where none was selected. */
  readonly values: Float32Array[];
  /** As of `LossReport`. */
  readonly paddedTokens: number;
  readonly sharedTokens?: number;
}

export class SequenceRunner {
  readonly #adapted: AdaptedModel;
  readonly #options: SequenceRunnerOptions;
  readonly #lanes: readonly { readonly lane: Lane; readonly gradients: LaneGradients }[];
  #last: Promise<unknown> = Promise.resolve();

  constructor(adapted: AdaptedModel, options: SequenceRunnerOptions) {
    const { lanes = 1, inOneRun = false } = options;
    this.#adapted = adapted;
    this.#options = options;
    const share = { ...options, threads: Math.max(1, Math.floor(options.threads / lanes)) };
    this.#lanes = Array.from({ length: lanes }, () => ({
      lane: inOneRun ? new NetworkLane(adapted, share) : new LayeredLane(adapted, share),
      gradients: new LaneGradients(),
    }));
  }

  /** Log-probability of every target, one array (T) for each datum. */
  async logprobs(parameters: ParameterSet, batch: readonly Datum[]): Promise<Float32Array[]> {
    return await this.values(parameters, batch, {
      head: languageHead(this.#adapted.model),
      isSelected: () => true,
      inputs: languageInputs,
    });
  }

  /** Adds the gradient of the loss to `gradients` of what is trained, in place. Log-probabilities of weightless targets are 0. */
  async forwardBackward(
    parameters: ParameterSet,
    batch: readonly Datum[],
    { loss, gradients }: { readonly loss: Loss; readonly gradients: ParameterSet },
  ): Promise<LossReport> {
    const reading: Reading<Datum> = {
      head: languageHead(this.#adapted.model, loss),
      isSelected: ({ weights }, t) => weights[t] !== 0,
      inputs: (data, places) => languageInputs(data, places, loss),
    };
    const { values, ...report } = await this.train(parameters, batch, { ...reading, gradients });
    return { ...report, logprobs: values };
  }

  /** The head's value at every selected position, one array (T) for each datum; no gradient. */
  async values<T extends { readonly inputs: Int32Array }>(
    parameters: ParameterSet,
    batch: readonly T[],
    reading: Reading<T>,
  ): Promise<Float32Array[]> {
    return await this.#alone(() => this.#infer(parameters, batch, reading));
  }

  /** Calls share their arrays, so that each waits for the one before. */
  async #alone<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work);
    this.#last = result.catch(() => undefined);
    return await result;
  }

  async #infer<T extends { readonly inputs: Int32Array }>(
    parameters: ParameterSet,
    batch: readonly T[],
    reading: Reading<T>,
  ): Promise<Float32Array[]> {
    const rows = batch.map(({ inputs }) => new Float32Array(inputs.length));
    await this.#inLanes(batch, reading, async (lane, { microBatch, ...work }) => {
      scatter(await lane.values(parameters, work), work.places, { microBatch, rows });
    });
    return rows;
  }

  /** Does the work of each micro-batch that has any, in its lane; lanes side by side. */
  async #inLanes<T extends { readonly inputs: Int32Array }>(
    batch: readonly T[],
    reading: Reading<T>,
    work: (lane: Lane, work: LaneWork & { readonly microBatch: MicroBatch }, index: number) => Promise<void>,
  ): Promise<void> {
    const dataOf = ({ members }: MicroBatch): T[] => members.map((member) => batch[member] as T);
    const isRead = (datum: T): boolean => datum.inputs.some((_, t) => reading.isSelected(datum, t));
    const plan = this.#plan(batch).filter((microBatch) => dataOf(microBatch).some(isRead));
    const shares = shareOut(plan, this.#lanes.length, this.#costsIn(batch));
    const done = this.#lanes.map(async ({ lane }, index) => {
      for (const microBatch of shares[index] as MicroBatch[]) {
        const data = dataOf(microBatch);
        const places = select(data, reading.isSelected);
        const sequences = this.#lay(data, microBatch);
        const inputs = reading.inputs(data, places);
        await work(lane, { microBatch, sequences, places, head: reading.head, inputs }, index);
      }
    });
    // No lane may run on while the caller sees that another failed.
    const ends = await Promise.allSettled(done);
    if (ends.every(({ status }) => status === "fulfilled")) return;
    for (const { gradients } of this.#lanes) gradients.clear();
    await Promise.all(done);
  }

  /** As `values` with a head that has a loss, whose gradient is added to `gradients` in place; of what is not in them none is made. */
  async train<T extends { readonly inputs: Int32Array }>(
    parameters: ParameterSet,
    batch: readonly T[],
    training: Reading<T> & { readonly gradients: ParameterSet },
  ): Promise<TrainingReport> {
    return await this.#alone(() => this.#train(parameters, batch, training));
  }

  async #train<T extends { readonly inputs: Int32Array }>(
    parameters: ParameterSet,
    batch: readonly T[],
    { gradients, ...reading }: Reading<T> & { readonly gradients: ParameterSet },
  ): Promise<TrainingReport> {
    const values = batch.map(({ inputs }) => new Float32Array(inputs.length));
    const sums = this.#lanes.map((lane, index) => ({
      gradients: index === 0 ? gradients : lane.gradients.like(gradients),
      loss: 0,
      paddedTokens: 0,
      sharedTokens: 0,
    }));
    await this.#inLanes(batch, reading, async (lane, { microBatch, ...work }, index) => {
      const sum = sums[index] as (typeof sums)[0];
      const report = await lane.train(parameters, work, sum.gradients);
      sum.loss += report.loss;
      const shared = work.sequences.packing?.sharedTokens ?? 0;
      sum.paddedTokens += work.sequences.tokens.length + shared;
      sum.sharedTokens += shared;
      scatter(report.values, work.places, { microBatch, rows: values });
    });
    try {
      for (const own of this.#lanes.slice(1)) await own.gradients.moveInto(gradients, this.#options.threads);
    } catch (error) {
      for (const own of this.#lanes) own.gradients.clear();
      throw error;
    }
    const total = (key: "loss" | "paddedTokens" | "sharedTokens"): number =>
      sums.reduce((all, sum) => all + sum[key], 0);
    const sharedTokens = total("sharedTokens");
    const tokens = { paddedTokens: total("paddedTokens"), ...(sharedTokens > 0 && { sharedTokens }) };
    return { loss: total("loss"), values, ...tokens };
  }

  /** Gives back sessions and arrays, which the next call makes anew. */
  async rest(): Promise<void> {
    await this.#alone(async () => {
      for (const { lane, gradients } of this.#lanes) {
        await lane.rest();
        gradients.clear();
      }
    });
  }

  async close(): Promise<void> {
    await this.rest();
  }

  /** One run of a small network is as fast with padding as without. */
  #lay(data: readonly { readonly inputs: Int32Array }[], { time }: MicroBatch): Sequences {
    const inputs = data.map((datum) => datum.inputs);
    if (!this.#options.inOneRun) return layTokens(inputs, time);
    return { tokens: padTokens(inputs, time), batch: inputs.length, time };
  }

  #plan(batch: readonly { readonly inputs: Int32Array }[]): MicroBatch[] {
    const { contextLength } = this.#adapted.model;
    for (const { inputs } of batch) {
      assert(
        inputs.length <= contextLength,
        `a datum of ${inputs.length} tokens for a context of ${contextLength}`,
      );
    }
    const lengths = batch.map(({ inputs }) => inputs.length);
    const share = Math.ceil(lengths.reduce((sum, length) => sum + length, 0) / this.#lanes.length);
    const tokenBudget = Math.min(this.#options.tokenBudget, share);
    if (this.#options.inOneRun) return planMicroBatches(lengths, tokenBudget);
    const sequences = batch.map(({ inputs }) => inputs);
    return planSharing(sequences, { tokenBudget, scoresPerToken: scoresPerToken(this.#adapted.model) });
  }

  /** What micro-batches of a batch cost, for a fair share. */
  #costsIn(batch: readonly { readonly inputs: Int32Array }[]): (microBatch: MicroBatch) => number {
    if (this.#options.inOneRun) return paddedTokens;
    const sequences = batch.map(({ inputs }) => inputs);
    const setting = { scoresPerToken: scoresPerToken(this.#adapted.model) };
    return (microBatch) => costOf(microBatch, sequences, setting);
  }
}
