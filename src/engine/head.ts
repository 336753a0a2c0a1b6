/**
 * Heads: what is read off the hidden states that leave the layers, with a loss over it and its way back. A head sees
 * only the rows it needs, and those in pieces, so that a matrix over the whole vocabulary never exists for a whole
 * batch. It knows nothing of the layers; a critic's is another head over the same ones.
 */
import { assert } from "../errors.ts";
import { accumulate, accumulatorPrefix, differentiate } from "./differentiate.ts";
import { type ElementType, Graph, type Tensor } from "./graph.ts";
import type { LossNodes } from "./loss-graph.ts";
import type { ModelOptions } from "./model-options.ts";
import type { Parameter, ParameterSet } from "./parameters.ts";
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
  /** A parameter that is a matrix, as parts one after the other, to which its gradient belongs. */
  readonly inParts: (name: string) => readonly Tensor[];
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

/** Rows of a part of a matrix, so that what they give fits into the processor's caches; more where the parts would be too many. */
const leastRowsOfPart = 512;
const mostParts = 128;

/** Rows of a part of a matrix of so many rows. */
export function rowsOfPart(rows: number): number {
  return Math.max(leastRowsOfPart, Math.ceil(rows / mostParts));
}

/** Consecutive rows of a parameter, or all of it under its own name. */
interface ParameterPart {
  readonly name: string;
  readonly parameter: string;
  readonly start: number;
  readonly shape: readonly number[];
}

interface HeadGraph {
  readonly session: Session;
  readonly nodes: HeadNodes;
  readonly hiddenGradient: string | undefined;
  /** What is fed of the parameters, and of those of which some gradient is made, where it comes out. */
  readonly fed: readonly ParameterPart[];
  readonly gradients: readonly { readonly part: ParameterPart; readonly output: string }[];
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
      const feeds = new Map([...piece.feeds, ...feedsOf(graph, parameters)]);
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
    const gradients = graph.gradients.map(({ part, output }) => {
      return { name: part.name, output, feed: partOf(training.gradients, part) };
    });
    let loss = 0;
    for (const piece of this.#pieces(head, rows)) {
      const feeds = new Map([
        ...piece.feeds,
        ...feedsOf(graph, parameters),
        ...gradients.map(({ name, feed }): [string, Feed] => [accumulatorPrefix + name, feed]),
      ]);
      const into = new Map<string, Feed>([
        [graph.nodes.values.name, piece.slice(values)],
        [graph.hiddenGradient as string, piece.sliceWide(training.hiddenGradient)],
        ...gradients.map(({ output, feed }): [string, Feed] => [output, feed]),
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

function partOf(parameters: ParameterSet, { parameter, start, shape }: ParameterPart): Feed {
  const { data } = parameters.get(parameter) as Parameter;
  const [, ...rest] = shape;
  const first = start * rest.reduce((a, b) => a * b, 1);
  return { data: data.subarray(first, first + shape.reduce((a, b) => a * b, 1)), shape };
}

function feedsOf({ fed }: HeadGraph, parameters: ParameterSet): [string, Feed][] {
  return fed.map((part) => [part.name, partOf(parameters, part)]);
}

/** The parameter as a whole. */
function wholeOf(name: string, shape: readonly number[]): ParameterPart {
  return { name, parameter: name, start: 0, shape };
}

/** A matrix of many rows in parts. */
function partsOf(name: string, shape: readonly number[]): ParameterPart[] {
  const [rows, ...columns] = shape as [number, ...number[]];
  const most = rowsOfPart(rows);
  if (columns.length === 0 || rows <= most) return [wholeOf(name, shape)];
  return Array.from({ length: Math.ceil(rows / most) }, (_, index) => {
    const start = index * most;
    const size = Math.min(most, rows - start);
    return { name: `${name}.from.${start}`, parameter: name, start, shape: [size, ...columns] };
  });
}

interface HeadGraphSetting {
  /** Parameters of which there is a gradient. */
  readonly trained: readonly string[];
  readonly model: ModelOptions;
}

async function createHeadGraph(
  head: Head,
  { trained, model }: HeadGraphSetting,
  options: SessionOptions,
): Promise<HeadGraph> {
  const graph = new Graph();
  const hidden = graph.parameter("hidden", [headRows, model.width]);
  const declared = new Map<string, { readonly part: ParameterPart; readonly tensor: Tensor }>();
  const declare = (part: ParameterPart, isTrained: boolean): Tensor => {
    const { name, shape } = part;
    const known = declared.get(name)?.tensor;
    assert(
      known === undefined || known.requiresGradient === isTrained,
      `a head reads ${name} whole and in parts, so that some of its gradient would be lost`,
    );
    const tensor = known ?? (isTrained ? graph.parameter(name, shape) : graph.input(name, shape));
    declared.set(name, { part, tensor });
    return tensor;
  };
  const shapeOf = (name: string): readonly number[] => head.parameters.get(name) as readonly number[];
  const parameter = (name: string): Tensor => declare(wholeOf(name, shapeOf(name)), trained.includes(name));
  const inParts = (name: string): Tensor[] =>
    partsOf(name, shapeOf(name)).map((part) => declare(part, trained.includes(name)));
  const rows = new Map([...head.inputs].map(([name, type]) => [name, graph.input(name, [headRows], type)]));
  const nodes = head.build(graph, hidden, { parameter, inParts, row: (name) => rows.get(name) as Tensor });
  const fed = [...declared.values()].map(({ part }) => part);
  const { values, loss } = nodes;
  if (!loss) {
    const session = await Session.create(graph, [values], options);
    return { session, nodes, hiddenGradient: undefined, fed, gradients: [] };
  }
  const wanted = [...declared.values()].filter(({ tensor }) => tensor.requiresGradient);
  const [hiddenGradient, ...gradients] = differentiate(graph, { output: values, gradient: loss.derivative }, [
    hidden,
    ...wanted.map(({ tensor }) => tensor),
  ]) as [Tensor, ...Tensor[]];
  const sums = gradients.map((gradient, index) =>
    accumulate(graph, (wanted[index] as (typeof wanted)[0]).part.name, gradient),
  );
  const session = await Session.create(graph, [loss.loss, values, hiddenGradient, ...sums], options);
  const outputs = wanted.map(({ part }, index) => ({ part, output: (sums[index] as Tensor).name }));
  return { session, nodes, hiddenGradient: hiddenGradient.name, fed, gradients: outputs };
}
