/**
 * One update of AdamW (Loshchilov & Hutter, 2019) for all parameters as a graph: the gradient's norm, clipping,
 * both moments, bias correction and decoupled decay. Every result is written over its operand in place, which
 * is safe because each node on the way works element by element.
 */
import type { AdamOptions } from "./engine.ts";
import { Graph, type Tensor } from "./graph.ts";
import { type Parameter, type ParameterSet, parameterFeeds } from "./parameters.ts";
import { type Feed, Session, type SessionOptions } from "./session.ts";

/** What the optimiser remembers between steps. */
export interface OptimizerState {
  /** Updates made so far. */
  step: number;
  readonly firstMoments: ReadonlyMap<string, Parameter>;
  readonly secondMoments: ReadonlyMap<string, Parameter>;
}

const scalarNames = [
  "learningRate",
  "beta1",
  "beta2",
  "complement1",
  "complement2",
  "correction1",
  "correction2",
  "epsilon",
  "decay",
  "maxNorm",
] as const;
type Scalars = Readonly<Record<(typeof scalarNames)[number], number>>;

export class AdamW {
  readonly #session: Session;
  readonly #normName: string;
  /** Output name by the input it replaces. */
  readonly #replaced: ReadonlyMap<string, string>;
  private constructor(session: Session, normName: string, replaced: ReadonlyMap<string, string>) {
    this.#session = session;
    this.#normName = normName;
    this.#replaced = replaced;
  }

  static async create(parameters: ParameterSet, options: SessionOptions): Promise<AdamW> {
    const graph = new Graph();
    const scalars = Object.fromEntries(
      scalarNames.map((name) => [name, graph.input(name, [])]),
    ) as ScalarTensors;
    const gradients = new Map(
      [...parameters].map(([name, { shape }]) => [name, graph.input(`gradient.${name}`, shape)]),
    );
    const norm = gradientNorm(graph, [...gradients.values()]);
    const scale = clippingScale(graph, norm, scalars.maxNorm);
    const replaced = new Map<string, string>();
    const outputs: Tensor[] = [norm];
    for (const [name, { shape }] of parameters) {
      const inputs = {
        value: graph.input(`value.${name}`, shape),
        first: graph.input(`first.${name}`, shape),
        second: graph.input(`second.${name}`, shape),
        gradient: gradients.get(name) as Tensor,
      };
      // Decay pulls matrices only: a normalisation's scale has no reason to be small.
      const updated = updateParameter(graph, inputs, { scalars, scale, hasDecay: shape.length > 1 });
      for (const role of ["value", "first", "second"] as const) {
        replaced.set(inputs[role].name, updated[role].name);
        outputs.push(updated[role]);
      }
    }
    return new AdamW(await Session.create(graph, outputs, options), norm.name, replaced);
  }

  /** Updates weights and moments in place; returns the gradient's norm before clipping. */
  async step(
    parameters: ParameterSet,
    gradients: ParameterSet,
    state: OptimizerState,
    options: AdamOptions,
  ): Promise<number> {
    state.step++;
    const replaceable = new Map<string, Feed>([
      ...parameterFeeds(parameters, "value."),
      ...parameterFeeds(state.firstMoments, "first."),
      ...parameterFeeds(state.secondMoments, "second."),
    ]);
    const feeds = new Map([
      ...replaceable,
      ...parameterFeeds(gradients, "gradient."),
      ...scalarFeeds(options, state.step),
    ]);
    const into = new Map(
      [...this.#replaced].map(([input, output]) => [output, replaceable.get(input) as Feed]),
    );
    const results = await this.#session.run(feeds, [this.#normName], into);
    return (results.get(this.#normName) as Feed).data[0] as number;
  }

  async close(): Promise<void> {
    await this.#session.close();
  }
}

type ScalarTensors = Readonly<Record<(typeof scalarNames)[number], Tensor>>;

function scalarFeeds(options: AdamOptions, step: number): [string, Feed][] {
  const { beta1, beta2, epsilon, learningRate, weightDecay, maxGradientNorm } = options;
  const scalars: Scalars = {
    learningRate,
    beta1,
    beta2,
    complement1: 1 - beta1,
    complement2: 1 - beta2,
    correction1: 1 / (1 - beta1 ** step),
    correction2: 1 / (1 - beta2 ** step),
    epsilon,
    decay: 1 - learningRate * weightDecay,
    maxNorm: maxGradientNorm === 0 ? Number.MAX_VALUE : maxGradientNorm,
  };
  return scalarNames.map((name) => [
    name,
    { data: Float32Array.of(Math.min(scalars[name], 3e38)), shape: [] },
  ]);
}

function gradientNorm(graph: Graph, gradients: readonly Tensor[]): Tensor {
  const squares = gradients.map((gradient) =>
    graph.node("ReduceSumSquare", [gradient], [], { attributes: { keepdims: 0 } }),
  );
  return graph.node("Sqrt", [graph.node("Sum", squares, [])], []);
}

/** min(1, maxNorm / norm); the small number keeps a zero gradient from dividing by zero, as PyTorch does. */
function clippingScale(graph: Graph, norm: Tensor, maxNorm: Tensor): Tensor {
  const safeNorm = graph.node("Add", [norm, graph.scalar(1e-6)], []);
  return graph.node("Min", [graph.node("Div", [maxNorm, safeNorm], []), graph.scalar(1)], []);
}

interface Moments {
  readonly value: Tensor;
  readonly first: Tensor;
  readonly second: Tensor;
}

function updateParameter(
  graph: Graph,
  inputs: Moments & { readonly gradient: Tensor },
  setting: { readonly scalars: ScalarTensors; readonly scale: Tensor; readonly hasDecay: boolean },
): Moments {
  const { scalars, scale, hasDecay } = setting;
  const { shape } = inputs.value;
  const op = (operator: string, ...operands: Tensor[]): Tensor => graph.node(operator, operands, shape);
  const gradient = op("Mul", inputs.gradient, scale);
  const first = op("Add", op("Mul", inputs.first, scalars.beta1), op("Mul", gradient, scalars.complement1));
  const square = op("Mul", gradient, gradient);
  const second = op("Add", op("Mul", inputs.second, scalars.beta2), op("Mul", square, scalars.complement2));
  const denominator = op("Add", op("Sqrt", op("Mul", second, scalars.correction2)), scalars.epsilon);
  const direction = op("Div", op("Mul", first, scalars.correction1), denominator);
  const decayed = hasDecay ? op("Mul", inputs.value, scalars.decay) : inputs.value;
  return { value: op("Sub", decayed, op("Mul", direction, scalars.learningRate)), first, second };
}
