/**
 * The trunk of the network: embedding and decoder layers over whole sequences, one call of a session for each layer.
 * Hidden states between layers are kept for the way back; of the inside of a layer either what is dear to compute
 * again (`layer-graphs.ts`), attention included where that is wanted, or, beyond the first `keptLayers` layers, nothing:
 * those run again on the way back.
 */
import { Activations } from "./activations.ts";
import { blockEndsOf } from "./attention-blocks.ts";
import { accumulatorPrefix } from "./differentiate.ts";
import { addEmbeddingGradient, embed, embeddingTable } from "./embeddings.ts";
import {
  type BackwardForm,
  type BackwardLayer,
  createBackwardLayer,
  createForwardLayer,
  type ForwardLayer,
  keptPrefix,
  type LayerForm,
  layerShapes,
  resolveShape,
} from "./layer-graphs.ts";
import { LayerSessions } from "./layer-sessions.ts";
import type { AdaptedModel } from "./lora.ts";
import type { Sequences } from "./packing.ts";
import type { Parameter, ParameterSet } from "./parameters.ts";
import type { Feed, SessionOptions } from "./session.ts";
import { tableFeeds } from "./table-feeds.ts";

export interface TrunkOptions extends SessionOptions {
  /** Whether layers that keep what their way back needs keep what attention computes too; absent: no. */
  readonly keepsAttention?: boolean;
}

export class Trunk {
  readonly #adapted: AdaptedModel;
  readonly #options: TrunkOptions;
  /** Of a layer's parameters, below `model.layers.N.`. */
  readonly #names: readonly string[];
  readonly #activations = new Activations();
  readonly #forward: LayerSessions<LayerForm, ForwardLayer>;
  readonly #backward: LayerSessions<BackwardForm, BackwardLayer>;

  constructor(adapted: AdaptedModel, options: TrunkOptions) {
    this.#adapted = adapted;
    this.#options = options;
    this.#names = [...layerShapes(adapted).keys()];
    this.#forward = new LayerSessions((form) => createForwardLayer(adapted, form, options));
    this.#backward = new LayerSessions((form) => createBackwardLayer(adapted, form, options));
  }

  /** Hidden states that leave the last layer (N, width), without a way back; valid until the next call. */
  async infer(parameters: ParameterSet, sequences: Sequences): Promise<Float32Array> {
    const tables = this.#tables(sequences);
    let hidden = this.#embed(parameters, sequences);
    for (let layer = 0; layer < this.#adapted.model.layers; layer++) {
      const next = this.#hidden(`hidden.${layer % 2 === 0 ? "even" : "odd"}`, sequences);
      await this.#runForward({ layer, parameters, hidden, next, sequences, tables });
      hidden = next;
    }
    return hidden.data as Float32Array;
  }

  /** As `infer`, but ready for `backward`; the first `keptLayers` layers keep what it needs. */
  async forward(parameters: ParameterSet, sequences: Sequences, keptLayers: number): Promise<Float32Array> {
    const tables = this.#tables(sequences);
    let hidden = this.#embed(parameters, sequences);
    for (let layer = 0; layer < this.#adapted.model.layers; layer++) {
      const next = this.#hidden(`hidden.${layer + 1}`, sequences);
      const kept = layer < keptLayers ? await this.#keptArrays(`${layer}`, sequences) : undefined;
      await this.#runForward({ layer, parameters, hidden, next, sequences, tables, kept });
      hidden = next;
    }
    return hidden.data as Float32Array;
  }

  /** A zeroed array (N, width) for the gradient of the hidden states that left the last layer. */
  zeroGradient(sequences: Sequences): Float32Array {
    return (this.#hidden("gradient.0", sequences).data as Float32Array).fill(0);
  }

  /**
   * The way back of the `forward` before, from the gradient of its result (`zeroGradient`, filled): gradients of the
   * parameters in `gradients` are added to them.
   */
  async backward(
    parameters: ParameterSet,
    sequences: Sequences,
    setting: { readonly keptLayers: number; readonly gradients: ParameterSet },
  ): Promise<void> {
    const { keptLayers, gradients } = setting;
    const tables = this.#tables(sequences);
    let gradient = this.#hidden("gradient.0", sequences);
    for (let layer = this.#adapted.model.layers - 1; layer >= 0; layer--) {
      const hidden = this.#hidden(`hidden.${layer}`, sequences);
      const isKept = layer < keptLayers;
      const kept = await this.#keptArrays(isKept ? `${layer}` : "again", sequences);
      const call = { layer, parameters, hidden, sequences, tables, kept };
      if (!isKept) await this.#runForward({ ...call, next: this.#hidden("again", sequences) });
      const next = this.#hidden(`gradient.${(this.#adapted.model.layers - layer) % 2}`, sequences);
      await this.#runBackward({ ...call, gradient, next, gradients });
      gradient = next;
    }
    const table = gradients.get(embeddingTable);
    if (table) addEmbeddingGradient(table, sequences.tokens, gradient.data as Float32Array);
  }

  async close(): Promise<void> {
    await this.#forward.close();
    await this.#backward.close();
    this.#activations.clear();
  }

  #embed(parameters: ParameterSet, sequences: Sequences): Feed {
    const hidden = this.#hidden("hidden.0", sequences);
    embed(parameters.get(embeddingTable) as Parameter, sequences.tokens, hidden.data as Float32Array);
    return hidden;
  }

  async #runForward(call: LayerCall & { readonly next: Feed }): Promise<void> {
    const { session, output, kept: outputs } = await this.#forward.get(this.#form(call.sequences));
    const feeds = new Map([["hidden", call.hidden], ...call.tables, ...this.#weights(call)]);
    const into = new Map([[output, call.next]]);
    for (const [name, array] of call.kept ?? []) into.set(outputs.get(name)?.name as string, array);
    await session.run(feeds, [], into);
  }

  async #runBackward(
    call: LayerCall & { readonly gradient: Feed; readonly next: Feed; readonly gradients: ParameterSet },
  ): Promise<void> {
    const { layer, gradients } = call;
    const trained = this.#names.filter((name) => gradients.has(nameOf(layer, name)));
    const { session, hiddenGradient, gradientOutputs } = await this.#backward.get({
      trained,
      ...this.#form(call.sequences),
    });
    const accumulators = trained.map(
      (name) => [name, gradients.get(nameOf(layer, name)) as Parameter] as const,
    );
    const feeds = new Map<string, Feed>([
      ["hidden", call.hidden],
      ["gradient", call.gradient],
      ...call.tables,
      ...this.#weights(call),
      ...[...(call.kept ?? [])].map(([name, array]) => [keptPrefix + name, array] as const),
      ...accumulators.map(([name, array]) => [accumulatorPrefix + name, array] as const),
    ]);
    const into = new Map<string, Feed>([
      [hiddenGradient, call.next],
      ...accumulators.map(([name, array]) => [gradientOutputs.get(name) as string, array] as const),
    ]);
    await session.run(feeds, [], into);
  }

  #form({ packing, batch, time }: Sequences): LayerForm {
    const count = blockEndsOf(time).length;
    const form = { isPacked: packing !== undefined, keepsAttention: this.#options.keepsAttention ?? false };
    return count === 1 ? form : { ...form, blocks: { count, batch } };
  }

  /** Weights of a layer by their names within it. */
  #weights({ layer, parameters }: LayerCall): [string, Feed][] {
    return this.#names.map((name) => [name, parameters.get(nameOf(layer, name)) as Parameter]);
  }

  #hidden(name: string, { tokens }: Sequences): Feed {
    const { width } = this.#adapted.model;
    const rows = tokens.length;
    return { data: this.#activations.take(name, rows * width), shape: [rows, width] };
  }

  async #keptArrays(label: string, sequences: Sequences): Promise<ReadonlyMap<string, Feed>> {
    const { kept } = await this.#forward.get(this.#form(sequences));
    const sizes = { ...sequences, rows: sequences.tokens.length, blockEnds: blockEndsOf(sequences.time) };
    return new Map(
      [...kept].map(([name, tensor]) => {
        const shape = resolveShape(tensor.shape, sizes);
        const length = shape.reduce((a, b) => a * b, 1);
        return [name, { shape, data: this.#activations.take(`${name}.${label}`, length) }];
      }),
    );
  }

  #tables(sequences: Sequences): [string, Feed][] {
    return [...tableFeeds(this.#adapted.model, sequences), ...blockFeeds(sequences)];
  }
}

interface LayerCall {
  readonly layer: number;
  readonly parameters: ParameterSet;
  readonly hidden: Feed;
  readonly sequences: Sequences;
  readonly tables: readonly [string, Feed][];
  readonly kept?: ReadonlyMap<string, Feed> | undefined;
}

function nameOf(layer: number, name: string): string {
  return `model.layers.${layer}.${name}`;
}

function blockFeeds({ time }: Sequences): [string, Feed][] {
  const ends = blockEndsOf(time);
  if (ends.length === 1) return [];
  return [["blockEnds", { data: BigInt64Array.from(ends, BigInt), shape: [ends.length] }]];
}
