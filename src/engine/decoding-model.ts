/** Extends cached sequences by new tokens: makes the feeds of the decoding graph, which stores keys and values itself. */
import { assert } from "../errors.ts";
import { releaseArrays } from "../shared/release-arrays.ts";
import { BlockMasses } from "./block-masses.ts";
import { createDecodingGraph, type DecodingGraph, type DecodingOptions } from "./decoding-graph.ts";
import type { KeyValueCache } from "./key-value-cache.ts";
import { headSize, type ModelOptions } from "./model-options.ts";
import type { ParameterSet } from "./parameters.ts";
import { type RotaryValues, rotaryTables } from "./rotary-tables.ts";
import type { Feed } from "./session.ts";

/** New tokens (at least one) of the sequence in a slot, after `cached` tokens that the cache holds. */
export interface Extension {
  readonly slot: number;
  readonly cached: number;
  readonly tokens: readonly number[];
  /** Only stands between others, whose slots are read at once; its token is not run, and what follows its cached rows is lost. */
  readonly isIdle?: boolean;
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
  /** Of what `extend` returns. */
  readonly masses: BlockMasses;
  readonly #weights: () => Promise<ParameterSet>;
  readonly #options: DecodingModelOptions;
  #graph: OpenGraph | undefined;
  #logprobs = new Float32Array();
  #closing: Promise<void> = Promise.resolve();

  /** `weights` is called whenever a session is made; what it returns is held as long as that session. */
  constructor(model: ModelOptions, weights: () => Promise<ParameterSet>, options: DecodingModelOptions) {
    this.model = model;
    this.masses = new BlockMasses(model.vocabularySize, options.threads);
    this.#weights = weights;
    this.#options = options;
  }

  /** Whether one scale rounds what all tokens of a run compute. */
  get sharesScales(): boolean {
    return this.#options.bits === 8;
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
    releaseArrays([this.#logprobs]);
    this.#logprobs = new Float32Array();
    await this.masses.rest();
    await this.#closing;
  }

  /**
   * Runs the new tokens of some slots and stores their keys and values. Returns log-probabilities of the token
   * after each extension that is not idle, (extensions, vocabulary), in an array that the next call writes over. Extensions
   * by one token of neighbouring slots in order are one run; of others each has its own.
   */
  async extend(cache: KeyValueCache, extensions: readonly Extension[]): Promise<Float32Array> {
    const graph = await this.#open();
    const { vocabularySize } = this.model;
    const busy = extensions.filter(({ isIdle }) => !isIdle).length;
    const logprobs = this.#logprobsOf(busy * vocabularySize);
    let row = 0;
    for (const together of runs(extensions)) {
      const rows = together.filter(({ isIdle }) => !isIdle).length;
      const data = logprobs.subarray(row * vocabularySize, (row + rows) * vocabularySize);
      row += rows;
      await this.#run(graph, cache, together, { data, shape: [rows, vocabularySize] });
    }
    return logprobs;
  }

  async #run(
    { session, ...outputs }: DecodingGraph,
    cache: KeyValueCache,
    extensions: readonly Extension[],
    logprobs: Feed,
  ): Promise<void> {
    const feeds = new Map<string, Feed>([...tableFeeds(this.model, extensions), ...tokenFeeds(extensions)]);
    const into = new Map([[outputs.logprobs, logprobs]]);
    const first = (extensions[0] as Extension).slot;
    for (let layer = 0; layer < this.model.layers; layer++) {
      const keys = cache.view(2 * layer, first, extensions.length);
      const values = cache.view(2 * layer + 1, first, extensions.length);
      feeds.set(`keys.${layer}`, keys).set(`values.${layer}`, values);
      into.set(outputs.keys[layer] as string, keys).set(outputs.values[layer] as string, values);
    }
    await session.run(feeds, [], into);
  }

  /** An array that is kept and only grows. */
  #logprobsOf(length: number): Float32Array {
    if (this.#logprobs.length < length) this.#logprobs = new Float32Array(length);
    return this.#logprobs.subarray(0, length);
  }

  async close(): Promise<void> {
    this.invalidate();
    await this.masses.rest();
    await this.#closing;
  }

  async #open(): Promise<DecodingGraph> {
    await this.#closing;
    if (!this.#graph) {
      const weights = await this.#weights();
      try {
        this.#graph = { ...(await createDecodingGraph(this.model, { ...this.#options, weights })), weights };
      } catch (error) {
        this.#options.forget?.(weights);
        throw error;
      }
    }
    return this.#graph;
  }
}

/** Extensions that are one run. */
function runs(extensions: readonly Extension[]): (readonly Extension[])[] {
  const start = extensions[0]?.slot ?? 0;
  const areTogether = extensions.every(({ slot, tokens }, i) => slot === start + i && tokens.length === 1);
  if (areTogether) return [extensions];
  assert(
    !extensions.some(({ isIdle }) => isIdle),
    "an idle slot stands among extensions that are not one run",
  );
  return extensions.map((extension) => [extension]);
}

const scaledTables = new WeakMap<RotaryValues, RotaryValues>();

/** The rotary tables times headDim^(-1/4), with which products of queries and keys are divided by sqrt(headDim). */
function scaledRotaryTables(model: ModelOptions, rows: number): RotaryValues {
  const tables = rotaryTables(model, rows);
  const known = scaledTables.get(tables);
  if (known) return known;
  const factor = headSize(model) ** -0.25;
  const scale = (values: Float32Array): Float32Array => values.map((value) => value * factor);
  const scaled = { ...tables, cosine: scale(tables.cosine), sine: scale(tables.sine) };
  scaledTables.set(tables, scaled);
  return scaled;
}

function tableFeeds(model: ModelOptions, extensions: readonly Extension[]): [string, Feed][] {
  const most = Math.max(...extensions.map(({ cached, tokens }) => cached + tokens.length));
  const { rows, cosine, sine } = scaledRotaryTables(model, most);
  const shape = [rows, headSize(model) / 2];
  return [
    ["cosine", { data: cosine, shape }],
    ["sine", { data: sine, shape }],
  ];
}

/** Tokens of one run, their positions, and where each stands. */
function tokenFeeds(extensions: readonly Extension[]): [string, Feed][] {
  const slots = extensions.length;
  const chunk = extensions[0]?.tokens.length ?? 0;
  const tokens: number[] = [];
  const rows: number[] = [];
  const last: number[] = [];
  const places: number[] = [];
  const positions: number[] = [];
  const ends: number[] = [];
  for (const [index, { cached, tokens: fresh, isIdle }] of extensions.entries()) {
    for (const [i, token] of fresh.entries()) {
      positions.push(cached + i);
      places.push(isIdle ? 0 : tokens.length);
      if (isIdle) continue;
      rows.push(index * chunk + i);
      tokens.push(token);
    }
    ends.push(cached + fresh.length - 1);
    if (!isIdle) last.push(tokens.length - 1);
  }
  return [
    ["tokens", vector(tokens)],
    ["rows", vector(rows)],
    ["last", vector(last)],
    ["places", vector(places)],
    ["positions", { ...vector(positions), shape: [slots, chunk] }],
    ["ends", { data: Int32Array.from(ends), shape: [slots] }],
    ["longest", { data: Int32Array.of(Math.max(...ends) + 1), shape: [1] }],
  ];
}

const vector = (values: readonly number[]): Feed => ({
  data: BigInt64Array.from(values, BigInt),
  shape: [values.length],
});
