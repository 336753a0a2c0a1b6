/**
 * Runs batches of whole sequences in micro-batches: through the trunk, then what is selected through a head, and with a
 * loss the way back. Padding lies to the right; of a batch with a loss only predictions that have a weight are selected.
 */
import type { Datum } from "../algorithm/datum.ts";
import type { Loss } from "../algorithm/loss.ts";
import { assert } from "../errors.ts";
import { Activations } from "./activations.ts";
import type { LossReport } from "./engine.ts";
import { type Head, HeadRunner } from "./head.ts";
import { languageHead, languageInputs, type RowPlaces } from "./language-head.ts";
import type { AdaptedModel } from "./lora.ts";
import { type MicroBatch, paddedTokens, planMicroBatches } from "./micro-batch.ts";
import type { ParameterSet } from "./parameters.ts";
import type { SessionOptions, Values } from "./session.ts";
import { type Sequences, Trunk } from "./trunk.ts";

export interface SequenceRunnerOptions extends SessionOptions {
  /** Most tokens of one micro-batch, padding included. */
  readonly tokenBudget: number;
  /** Layers that keep what their way back needs; the others compute it again. Absent: all. */
  readonly keptLayers?: number;
  /** Whether those that are kept keep their attention weights too. Absent: no. */
  readonly keepsAttention?: boolean;
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
  /** Tokens that were computed, padding included. */
  readonly paddedTokens: number;
}

export class SequenceRunner {
  readonly #adapted: AdaptedModel;
  readonly #options: SequenceRunnerOptions;
  readonly #trunk: Trunk;
  readonly #heads: HeadRunner;
  readonly #rows = new Activations();
  #last: Promise<unknown> = Promise.resolve();

  constructor(adapted: AdaptedModel, options: SequenceRunnerOptions) {
    this.#adapted = adapted;
    this.#options = options;
    this.#trunk = new Trunk(adapted, { ...options, keepsAttention: options.keepsAttention ?? false });
    this.#heads = new HeadRunner(adapted.model, options);
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
    { head, ...reading }: Reading<T>,
  ): Promise<Float32Array[]> {
    const values = batch.map(({ inputs }) => new Float32Array(inputs.length));
    for (const microBatch of this.#plan(batch)) {
      const { data, sequences, places } = select(batch, microBatch, reading.isSelected);
      if (places.rows.length === 0) continue;
      const hidden = this.#gather(await this.#trunk.infer(parameters, sequences), sequences, places);
      const rows = { hidden, inputs: reading.inputs(data, places) };
      scatter(await this.#heads.values(head, parameters, rows), places, { microBatch, rows: values });
    }
    return values;
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
    { head, gradients, ...reading }: Reading<T> & { readonly gradients: ParameterSet },
  ): Promise<TrainingReport> {
    const values = batch.map(({ inputs }) => new Float32Array(inputs.length));
    const keptLayers = this.#options.keptLayers ?? this.#adapted.model.layers;
    const hasTrunk =
      [...gradients.keys()].some((name) => !head.parameters.has(name)) ||
      gradients.has("model.embed_tokens.weight");
    let [loss, computed] = [0, 0];
    for (const microBatch of this.#plan(batch)) {
      const { data, sequences, places } = select(batch, microBatch, reading.isSelected);
      if (places.rows.length === 0) continue;
      computed += paddedTokens(microBatch);
      const hidden = this.#gather(
        await (hasTrunk
          ? this.#trunk.forward(parameters, sequences, keptLayers)
          : this.#trunk.infer(parameters, sequences)),
        sequences,
        places,
      );
      const hiddenGradient = this.#rows.take("gradient", hidden.length);
      const rows = { hidden, inputs: reading.inputs(data, places) };
      const training = { gradients, hiddenGradient };
      const report = await this.#heads.train(head, parameters, { rows, training });
      loss += report.loss;
      scatter(report.values, places, { microBatch, rows: values });
      if (!hasTrunk) continue;
      this.#spread(hiddenGradient, sequences, places);
      await this.#trunk.backward(parameters, sequences, { keptLayers, gradients });
    }
    return { loss, values, paddedTokens: computed };
  }

  /** Gives back sessions and arrays, which the next call makes anew. */
  async rest(): Promise<void> {
    await this.#alone(async () => {
      await this.#trunk.close();
      await this.#heads.close();
      this.#rows.clear();
    });
  }

  async close(): Promise<void> {
    await this.rest();
  }

  /** The hidden states of the selected places (M, width). */
  #gather(hidden: Float32Array, { time }: Sequences, { rows, times }: RowPlaces): Float32Array {
    const { width } = this.#adapted.model;
    const gathered = this.#rows.take("hidden", rows.length * width);
    for (let i = 0; i < rows.length; i++) {
      const start = ((rows[i] as number) * time + (times[i] as number)) * width;
      gathered.set(hidden.subarray(start, start + width), i * width);
    }
    return gathered;
  }

  /** Brings the gradient of the selected places (M, width) to where the way back through the trunk starts. */
  #spread(gradient: Float32Array, sequences: Sequences, { rows, times }: RowPlaces): void {
    const { width } = this.#adapted.model;
    const target = this.#trunk.zeroGradient(sequences);
    for (let i = 0; i < rows.length; i++) {
      const start = ((rows[i] as number) * sequences.time + (times[i] as number)) * width;
      target.set(gradient.subarray(i * width, (i + 1) * width), start);
    }
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
    return planMicroBatches(lengths, this.#options.tokenBudget);
  }
}

/** The sequences of a micro-batch and the places in them that matter. */
function select<T extends { readonly inputs: Int32Array }>(
  batch: readonly T[],
  { time, members }: MicroBatch,
  isSelected: (datum: T, t: number) => boolean,
): { readonly data: T[]; readonly sequences: Sequences; readonly places: RowPlaces } {
  const data = members.map((index) => batch[index] as T);
  const tokens = new Int32Array(data.length * time);
  const rows: number[] = [];
  const times: number[] = [];
  for (const [row, datum] of data.entries()) {
    tokens.set(datum.inputs, row * time);
    for (let t = 0; t < datum.inputs.length; t++) {
      if (!isSelected(datum, t)) continue;
      rows.push(row);
      times.push(t);
    }
  }
  const places = { rows: Int32Array.from(rows), times: Int32Array.from(times) };
  return { data, sequences: { tokens, batch: data.length, time }, places };
}

/** Brings the values of the selected places of a micro-batch to their data. */
export function scatter(
  values: Float32Array,
  selection: RowPlaces,
  target: { readonly microBatch: MicroBatch; readonly rows: readonly Float32Array[] },
): void {
  for (const [index, value] of values.entries()) {
    const datum = target.microBatch.members[selection.rows[index] as number] as number;
    (target.rows[datum] as Float32Array)[selection.times[index] as number] = value;
  }
}
