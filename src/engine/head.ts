/**
 * Heads: what is read off the hidden states that leave the layers, with a loss over it and its way back. A head sees
 * only the rows it needs, and those in pieces, so that a matrix over the whole vocabulary never exists for a whole
 * batch. It knows nothing of the layers; a critic's is another head over the same ones.
 */
import { accumulate, accumulatorPrefix, differentiate } from "./differentiate.ts";
import { type ElementType, Graph, type Tensor } from "./graph.ts";
import type { LossNodes } from "./loss-graph.ts";
import type { ModelOptions } from "./model-options.ts";
import { type Parameter, type ParameterSet, parameterFeeds } from "./parameters.ts";
import { type Feed, Session, type SessionOptions, type Values } from "./session.ts";

/** The number of rows in a graph of a head. */
export const headRows = "M";

export interface Head {
  /** Equal keys, equal graphs. */
  readonly key: string;
  /** Names and shapes of the parameters it reads. */
  readonly parameters: ReadonlyMap<string, readonly number[]>;
  /** What is fed for each row, by name. */
  readonly inputs: ReadonlyMap<string, ElementType>;
  /** Numbers that it holds at once for each row, which bounds the rows of a piece. */
  readonly floatsPerRow: number;
  /** Adds one value for each row of the hidden states (M, width), not yet normalised, and the loss over them if it has one. */
  readonly build: (graph: Graph, hidden: Tensor, input: HeadInputs) => HeadNodes;
}

export interface HeadInputs {
  readonly parameter: (name: string) => Tensor;
  /** One of `inputs` (M). */
  readonly row: (name: string) => Tensor;
}

export interface HeadNodes {
  /** (M) */
  readonly values: Tensor;
  readonly loss?: LossNodes;
}

/** Rows that a head is applied to: hidden states (M, width) and what else is fed, all of M entries. */
export interface HeadRows {
  readonly hidden: Float32Array;
  readonly inputs: ReadonlyMap<string, Values>;
}

export interface HeadTraining {
  /** Of trained parameters of the head, by name; the gradient is added. Others get none. */
  readonly gradients: ParameterSet;
  /** Receives the gradient of the hidden states (M, width). */
  readonly hiddenGradient: Float32Array;
}

/** Bytes of a head's values at once; more makes products hardly faster. */
const pieceBytes = 192 * 2 ** 20;

interface HeadGraph {
  readonly session: Session;
  readonly nodes: HeadNodes;
  readonly hiddenGradient: string | undefined;
  readonly gradientOutputs: ReadonlyMap<string, string>;
}

/** Runs heads over rows; sessions are made when first needed and kept. */
export class HeadRunner {
  readonly #model: ModelOptions;
  readonly #options: SessionOptions;
  readonly #graphs = new Map<string, Promise<HeadGraph>>();

  constructor(model: ModelOptions, options: SessionOptions) {
    this.#model = model;
    this.#options = options;
  }

  /** The value of each row. */
  async values(head: Head, parameters: ParameterSet, rows: HeadRows): Promise<Float32Array> {
    const values = new Float32Array(rows.hidden.length / this.#model.width);
    const graph = await this.#graph(head, []);
    for (const piece of this.#pieces(head, rows)) {
      const feeds = new Map([...piece.feeds, ...this.#parameterFeeds(head, parameters)]);
      const into = new Map([[graph.nodes.values.name, piece.slice(values)]]);
      await graph.session.run(feeds, [], into);
    }
    return values;
  }

  /** The value of each row and the summed loss; gradients are added to those of `training`. */
  async train(
    head: Head,
    parameters: ParameterSet,
    { rows, training }: { readonly rows: HeadRows; readonly training: HeadTraining },
  ): Promise<{ readonly loss: number; readonly values: Float32Array }> {
    const values = new Float32Array(rows.hidden.length / this.#model.width);
    const trained = [...head.parameters.keys()].filter((name) => training.gradients.has(name));
    const graph = await this.#graph(head, trained);
    const lossName = (graph.nodes.loss as LossNodes).loss.name;
    const gradients = trained.map((name) => [name, training.gradients.get(name) as Parameter] as const);
    let loss = 0;
    for (const piece of this.#pieces(head, rows)) {
      const feeds = new Map([
        ...piece.feeds,
        ...this.#parameterFeeds(head, parameters),
        ...parameterFeeds(new Map(gradients), accumulatorPrefix),
      ]);
      const into = new Map<string, Feed>([
        [graph.nodes.values.name, piece.slice(values)],
        [graph.hiddenGradient as string, piece.sliceWide(training.hiddenGradient)],
        ...gradients.map(
          ([name, gradient]) => [graph.gradientOutputs.get(name) as string, gradient] as const,
        ),
      ]);
      const results = await graph.session.run(feeds, [lossName], into);
      loss += (results.get(lossName) as Feed).data[0] as number;
    }
    return { loss, values };
  }

  async close(): Promise<void> {
    for (const graph of this.#graphs.values()) await (await graph).session.close();
    this.#graphs.clear();
  }

  #parameterFeeds(head: Head, parameters: ParameterSet): [string, Feed][] {
    return [...head.parameters.keys()].map((name) => [name, parameters.get(name) as Parameter]);
  }

  *#pieces(head: Head, { hidden, inputs }: HeadRows): Generator<Piece> {
    const { width } = this.#model;
    const count = hidden.length / width;
    const size = rowsOfPiece(head);
    for (let start = 0; start < count; start += size) {
      const end = Math.min(count, start + size);
      const rows = end - start;
      const slice = <T extends Values>(data: T): { data: T; shape: number[] } => ({
        data: data.subarray(start, end) as T,
        shape: [rows],
      });
      const sliceWide = (data: Float32Array): Feed => ({
        data: data.subarray(start * width, end * width),
        shape: [rows, width],
      });
      const feeds: [string, Feed][] = [...inputs].map(([name, data]) => [name, slice(data)]);
      yield { feeds: [...feeds, ["hidden", sliceWide(hidden)]], slice, sliceWide };
    }
  }

  #graph(head: Head, trained: readonly string[]): Promise<HeadGraph> {
    const key = `${head.key} ${trained.join(" ")}`;
    const known = this.#graphs.get(key);
    if (known) return known;
    const created = createHeadGraph(head, { trained, model: this.#model }, this.#options);
    this.#graphs.set(key, created);
    return created;
  }
}

interface Piece {
  readonly feeds: readonly [string, Feed][];
  readonly slice: (data: Float32Array) => Feed;
  readonly sliceWide: (data: Float32Array) => Feed;
}

/** Most rows of a head at once. */
export function rowsOfPiece(head: Head): number {
  return Math.max(16, Math.floor(pieceBytes / (4 * head.floatsPerRow)));
}

async function createHeadGraph(
  head: Head,
  { trained, model }: { readonly trained: readonly string[]; readonly model: ModelOptions },
  options: SessionOptions,
): Promise<HeadGraph> {
  const graph = new Graph();
  const hidden = graph.parameter("hidden", [headRows, model.width]);
  const parameters = new Map(
    [...head.parameters].map(([name, shape]) => [
      name,
      trained.includes(name) ? graph.parameter(name, shape) : graph.input(name, shape),
    ]),
  );
  const rows = new Map([...head.inputs].map(([name, type]) => [name, graph.input(name, [headRows], type)]));
  const nodes = head.build(graph, hidden, {
    parameter: (name) => parameters.get(name) as Tensor,
    row: (name) => rows.get(name) as Tensor,
  });
  const { values, loss } = nodes;
  if (!loss) {
    const session = await Session.create(graph, [values], options);
    return { session, nodes, hiddenGradient: undefined, gradientOutputs: new Map() };
  }
  const wanted = [hidden, ...trained.map((name) => parameters.get(name) as Tensor)];
  const [hiddenGradient, ...gradients] = differentiate(
    graph,
    { output: values, gradient: loss.derivative },
    wanted,
  ) as [Tensor, ...Tensor[]];
  const sums = gradients.map((gradient, index) => accumulate(graph, trained[index] as string, gradient));
  const session = await Session.create(graph, [loss.loss, values, hiddenGradient, ...sums], options);
  const gradientOutputs = new Map(trained.map((name, index) => [name, (sums[index] as Tensor).name]));
  return { session, nodes, hiddenGradient: hiddenGradient.name, gradientOutputs };
}
