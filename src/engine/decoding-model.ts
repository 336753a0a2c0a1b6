/** Extends cached sequences by new tokens: makes the feeds of the decoding graph and stores what it returns. */
import { releaseArrays } from "../shared/release-arrays.ts";
import { causalMask, maskedScore } from "./decoder-graph.ts";
import { createDecodingGraph, type DecodingGraph, type DecodingOptions } from "./decoding-graph.ts";
import { KeyValueCache } from "./key-value-cache.ts";
import { headSize, type ModelOptions } from "./model-options.ts";
import type { ParameterSet } from "./parameters.ts";
import { rotaryTables } from "./rotary-tables.ts";
import type { Feed } from "./session.ts";

/** New tokens (at least one) of the sequence in a slot, after `cached` tokens that the cache holds. */
export interface Extension {
  readonly slot: number;
  readonly cached: number;
  readonly tokens: readonly number[];
  /** Takes part only to keep all slots in order; nothing of it is stored. */
  readonly isIdle?: boolean;
}

interface Output {
  readonly data: Float32Array;
  readonly shape: readonly number[];
}

/** A graph with what its session may read while it lives. */
interface OpenGraph extends DecodingGraph {
  readonly weights: ParameterSet;
}

export interface DecodingModelOptions extends DecodingOptions {
  /** Told of weights that are not read any more. */
  readonly forget?: (weights: ParameterSet) => void;
}

export class DecodingModel {
  readonly model: ModelOptions;
  readonly #weights: () => Promise<ParameterSet>;
  readonly #options: DecodingModelOptions;
  #graph: OpenGraph | undefined;
  /** What the outputs of a call are written into. */
  readonly #buffers = new Map<string, Float32Array>();
  #closing: Promise<void> = Promise.resolve();

  /** `weights` is called whenever a session is made; what it returns is held as long as that session. */
  constructor(model: ModelOptions, weights: () => Promise<ParameterSet>, options: DecodingModelOptions) {
    this.model = model;
    this.#weights = weights;
    this.#options = options;
  }

  /** Forgets the weights; the next call reads them anew. */
  invalidate(): void {
    const graph = this.#graph;
    this.#graph = undefined;
    if (!graph) return;
    this.#closing = this.#closing.then(async () => {
      await graph.session.close();
      this.#options.forget?.(graph.weights);
    });
  }

  /** Forgets the weights and gives back all memory; no call may be under way. */
  async rest(): Promise<void> {
    this.invalidate();
    releaseArrays(this.#buffers.values());
    this.#buffers.clear();
    await this.#closing;
  }

  /**
   * Runs the new tokens of some slots and stores their keys and values. Returns log-probabilities of the token
   * after each extension, (extensions, vocabulary), in an array that the next call writes over. Extensions of all slots
   * in order read the cache in place; others work on a copy of their slots.
   */
  async extend(cache: KeyValueCache, extensions: readonly Extension[]): Promise<Float32Array> {
    const isWhole =
      extensions.length === cache.slots && extensions.every(({ slot }, index) => slot === index);
    const rows = Math.max(1, ...extensions.map(({ cached }) => cached));
    const source = isWhole ? cache : gather(this.model, cache, extensions, rows);
    const graph = await this.#open();
    const feeds = new Map<string, Feed>([
      ...tableFeeds(this.model, extensions),
      ...chunkFeeds(this.model, extensions),
      ["cacheMask", cacheMask(this.model, extensions, rows)],
      ...cacheFeeds(this.model, source, rows),
    ]);
    const fresh = graph.keys.flatMap((key, layer) => [key, graph.values[layer] as string]);
    const chunk = Math.max(...extensions.map(({ tokens }) => tokens.length));
    const logprobs = this.#output(graph.logprobs, [extensions.length, this.model.vocabularySize]);
    const outputs = fresh.map((name) => this.#output(name, [extensions.length, chunk, cache.slotWidth]));
    const into = new Map([
      [graph.logprobs, logprobs],
      ...fresh.map((name, index) => [name, outputs[index] as Output] as const),
    ]);
    await graph.session.run(feeds, [], into);
    if (source !== cache) source.release();
    for (const [index, { data }] of outputs.entries()) {
      for (const [sequence, { slot, cached, tokens, isIdle }] of extensions.entries()) {
        if (isIdle) continue;
        cache.append(index, slot, { data, sequence, chunk, start: cached, count: tokens.length });
      }
    }
    if (chunk > 1) releaseArrays(outputs.map(({ data }) => data));
    return logprobs.data;
  }

  /** The array of an output: of a prefill's keys and values a fresh one, which is large, else one that is kept and only grows. */
  #output(name: string, shape: readonly number[]): Output {
    const length = shape.reduce((product, size) => product * size, 1);
    const isPrefill = shape.length === 3 && shape[1] !== 1;
    if (isPrefill) return { data: new Float32Array(length), shape };
    let buffer = this.#buffers.get(name);
    if (buffer === undefined || buffer.length < length) {
      buffer = new Float32Array(length);
      this.#buffers.set(name, buffer);
    }
    return { data: buffer.subarray(0, length), shape };
  }

  async close(): Promise<void> {
    this.invalidate();
    await this.#closing;
  }

  async #open(): Promise<DecodingGraph> {
    await this.#closing;
    if (!this.#graph) {
      const weights = await this.#weights();
      this.#graph = { ...(await createDecodingGraph(this.model, { ...this.#options, weights })), weights };
    }
    return this.#graph;
  }
}

function gather(
  model: ModelOptions,
  cache: KeyValueCache,
  extensions: readonly Extension[],
  rows: number,
): KeyValueCache {
  const copy = new KeyValueCache(model, extensions.length, rows);
  for (const [index, { slot, cached }] of extensions.entries()) copy.copySlot(cache, slot, index, cached);
  return copy;
}

function tableFeeds(model: ModelOptions, extensions: readonly Extension[]): [string, Feed][] {
  const most = Math.max(...extensions.map(({ cached, tokens }) => cached + tokens.length));
  const { rows, cosine, sine } = rotaryTables(model, most);
  const shape = [rows, headSize(model) / 2];
  return [
    ["cosine", { data: cosine, shape }],
    ["sine", { data: sine, shape }],
  ];
}

/** Tokens (B * S) and positions (B, S), padded to the right, the causal mask among them, and where each sequence ends. */
function chunkFeeds(model: ModelOptions, extensions: readonly Extension[]): [string, Feed][] {
  const count = extensions.length;
  const chunk = Math.max(...extensions.map(({ tokens }) => tokens.length));
  const tokens = new BigInt64Array(count * chunk);
  const positions = new BigInt64Array(count * chunk);
  const last = new BigInt64Array(count);
  for (const [row, extension] of extensions.entries()) {
    const { length } = extension.tokens;
    for (let i = 0; i < length; i++) {
      tokens[row * chunk + i] = BigInt(extension.tokens[i] as number);
      positions[row * chunk + i] = BigInt(extension.cached + i);
    }
    last[row] = BigInt(row * chunk + length - 1);
  }
  const groupSize = model.heads / model.keyValueHeads;
  return [
    ["tokens", { data: tokens, shape: [count * chunk] }],
    ["positions", { data: positions, shape: [count, chunk] }],
    ["last", { data: last, shape: [count] }],
    ["chunkMask", { data: causalMask(chunk, groupSize), shape: [groupSize * chunk, chunk] }],
  ];
}

function cacheMask(model: ModelOptions, extensions: readonly Extension[], rows: number): Feed {
  const { keyValueHeads } = model;
  const mask = new Float32Array(extensions.length * keyValueHeads * rows);
  for (const [row, { cached }] of extensions.entries()) {
    for (let head = 0; head < keyValueHeads; head++) {
      const start = (row * keyValueHeads + head) * rows;
      mask.fill(maskedScore, start + cached, start + rows);
    }
  }
  return { data: mask, shape: [extensions.length * keyValueHeads, 1, rows] };
}

function cacheFeeds(model: ModelOptions, cache: KeyValueCache, rows: number): [string, Feed][] {
  const shape = [rows, cache.slots * model.keyValueHeads, headSize(model)];
  return Array.from({ length: model.layers }, (_, layer) => [
    [`keys.${layer}`, { data: cache.view(2 * layer, rows), shape }],
    [`values.${layer}`, { data: cache.view(2 * layer + 1, rows), shape }],
  ]).flat() as [string, Feed][];
}
