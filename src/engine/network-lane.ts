/** A lane that computes a micro-batch in one run of a graph of the whole network (`network-graph.ts`). */
import { Activations } from "./activations.ts";
import { accumulatorPrefix } from "./differentiate.ts";
import { addEmbeddingGradient, embed, embeddingTable } from "./embeddings.ts";
import type { Lane, LaneWork } from "./lane.ts";
import type { AdaptedModel } from "./lora.ts";
import { createNetworkGraph, type NetworkGraph } from "./network-graph.ts";
import type { Parameter, ParameterSet } from "./parameters.ts";
import { hiddenRows } from "./places.ts";
import type { Feed, SessionOptions } from "./session.ts";
import { tableFeeds } from "./table-feeds.ts";

export class NetworkLane implements Lane {
  readonly #adapted: AdaptedModel;
  readonly #options: SessionOptions;
  readonly #graphs = new Map<string, Promise<NetworkGraph>>();
  readonly #activations = new Activations();

  constructor(adapted: AdaptedModel, options: SessionOptions) {
    this.#adapted = adapted;
    this.#options = options;
  }

  async values(parameters: ParameterSet, work: LaneWork): Promise<Float32Array> {
    const graph = await this.#graph(work, new Set());
    const values = new Float32Array(work.places.rows.length);
    const into = new Map([[graph.values, { data: values, shape: [values.length] }]]);
    await graph.session.run(new Map(this.#feeds(graph, parameters, work)), [], into);
    return values;
  }

  async train(
    parameters: ParameterSet,
    work: LaneWork,
    gradients: ParameterSet,
  ): Promise<{ readonly loss: number; readonly values: Float32Array }> {
    const graph = await this.#graph(work, new Set(gradients.keys()));
    const { tokens } = work.sequences;
    const values = new Float32Array(work.places.rows.length);
    const hiddenGradient = this.#hidden("gradient", tokens.length);
    const sums = [...graph.gradientOutputs].map(
      ([name, output]) => [name, output, gradients.get(name) as Parameter] as const,
    );
    const feeds = new Map([
      ...this.#feeds(graph, parameters, work),
      ...sums.map(([name, , sum]): [string, Feed] => [accumulatorPrefix + name, sum]),
    ]);
    const into = new Map<string, Feed>([
      [graph.values, { data: values, shape: [values.length] }],
      ...sums.map(([, output, sum]) => [output, sum] as const),
    ]);
    if (graph.hiddenGradient) into.set(graph.hiddenGradient, hiddenGradient);
    const loss = graph.loss as string;
    const results = await graph.session.run(feeds, [loss], into);
    const table = gradients.get(embeddingTable);
    if (table) addEmbeddingGradient(table, tokens, hiddenGradient.data as Float32Array);
    return { loss: (results.get(loss) as Feed).data[0] as number, values };
  }

  async rest(): Promise<void> {
    for (const graph of this.#graphs.values()) await (await graph).session.close();
    this.#graphs.clear();
    this.#activations.clear();
  }

  #graph({ head }: LaneWork, trained: ReadonlySet<string>): Promise<NetworkGraph> {
    const key = [head.key, ...trained].join(" ");
    const known = this.#graphs.get(key);
    if (known) return known;
    const created = createNetworkGraph(this.#adapted, { head, trained }, this.#options);
    this.#graphs.set(key, created);
    return created;
  }

  #feeds(graph: NetworkGraph, parameters: ParameterSet, work: LaneWork): [string, Feed][] {
    const { sequences, places, inputs } = work;
    const { tokens } = sequences;
    const hidden = this.#hidden("hidden", tokens.length);
    embed(parameters.get(embeddingTable) as Parameter, tokens, hidden.data as Float32Array);
    const count = places.rows.length;
    return [
      ["hidden", hidden],
      ["places", { data: BigInt64Array.from(hiddenRows(sequences, places), BigInt), shape: [count] }],
      ...tableFeeds(this.#adapted.model, sequences),
      ...[...inputs].map(([name, data]): [string, Feed] => [name, { data, shape: [count] }]),
      ...graph.parameters.map((name): [string, Feed] => [name, parameters.get(name) as Parameter]),
    ];
  }

  #hidden(name: string, rows: number): Feed {
    const { width } = this.#adapted.model;
    return { data: this.#activations.take(name, rows * width), shape: [rows, width] };
  }
}
