/**
 * A small builder of static computation graphs that are written as ONNX and run by ONNX Runtime. Operators
 * (`operators.ts`) add nodes and, where an input requires a gradient, a rule on the tape that
 * `differentiate.ts` plays backwards. A graph is built once and run many times; sizes that differ from run to
 * run have names, and every name is the size of some input.
 *
 * Not covered: control flow, second derivatives, types other than float32, integers and bytes.
 */
import { assert } from "../errors.ts";

export type ElementType = "float32" | "int64" | "int32" | "uint8" | "int8";

/** A size: fixed, or the name of one that is known only when the graph runs. */
export type Dimension = number | string;

/** A value inside a graph. */
export interface Tensor {
  readonly name: string;
  readonly shape: readonly Dimension[];
  readonly type: ElementType;
  /** True when a gradient flows through it. */
  readonly requiresGradient: boolean;
}

export type Attribute = number | { readonly float: number } | string | readonly number[];

export interface Node {
  readonly operator: string;
  readonly domain: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly attributes: Readonly<Record<string, Attribute>>;
}

export interface Constant {
  readonly name: string;
  readonly type: ElementType;
  readonly shape: readonly number[];
  readonly values: readonly number[];
}

/** Gradients of the inputs, in order, given the gradient of the output; `undefined` where none flows. */
export type BackwardRule = (gradient: Tensor) => readonly (Tensor | undefined)[];

interface TapeEntry {
  readonly output: Tensor;
  readonly inputs: readonly Tensor[];
  readonly backward: BackwardRule;
}

export interface NodeOptions {
  readonly type?: ElementType;
  readonly domain?: string;
  readonly attributes?: Readonly<Record<string, Attribute>>;
  readonly backward?: BackwardRule;
}

export class Graph {
  readonly inputs: Tensor[] = [];
  /** Values that are fixed when a session is made. */
  readonly weights: Tensor[] = [];
  readonly nodes: Node[] = [];
  readonly constants: Constant[] = [];
  readonly tape: TapeEntry[] = [];
  readonly #constantNames = new Map<string, Tensor>();
  readonly #shapes = new Map<string, Tensor>();
  #names = 0;

  /** A value that is fed at each run. */
  input(name: string, shape: readonly Dimension[], type: ElementType = "float32"): Tensor {
    return this.#declare(name, shape, type, false);
  }

  /** A value that is fixed when a session is made: matrix products run faster with it than with an input. */
  weight(name: string, shape: readonly number[], type: Exclude<ElementType, "int64"> = "float32"): Tensor {
    const tensor = { name, shape, type, requiresGradient: false };
    this.weights.push(tensor);
    return tensor;
  }

  /** A fed value for which a gradient is wanted. */
  parameter(name: string, shape: readonly Dimension[]): Tensor {
    return this.#declare(name, shape, "float32", true);
  }

  /** A vector of integers that is part of the graph (shapes, axes, indexes). */
  integers(values: readonly number[]): Tensor {
    return this.#constant("int64", [values.length], values);
  }

  /** A shape as a value of the graph; named sizes are read from the inputs when it runs. */
  shape(sizes: readonly Dimension[]): Tensor {
    if (sizes.every((size) => typeof size === "number")) return this.integers(sizes);
    const key = sizes.join(",");
    const known = this.#shapes.get(key);
    if (known) return known;
    const parts = sizes.map((size) => (typeof size === "number" ? this.integers([size]) : this.#size(size)));
    const shape = this.node("Concat", parts, [sizes.length], { type: "int64", attributes: { axis: 0 } });
    this.#shapes.set(key, shape);
    return shape;
  }

  /** A named size as a vector of one integer. */
  #size(name: string): Tensor {
    const known = this.#shapes.get(name);
    if (known) return known;
    const input = this.inputs.find(({ shape }) => shape.includes(name));
    assert(input, `no input of the graph has a size named ${name}`);
    const start = input.shape.indexOf(name);
    const size = this.node("Shape", [input], [1], { type: "int64", attributes: { start, end: start + 1 } });
    this.#shapes.set(name, size);
    return size;
  }

  /** A number that is part of the graph. */
  scalar(value: number): Tensor {
    return this.#constant("float32", [], [value]);
  }

  /** Adds a node with one output. */
  node(
    operator: string,
    inputs: readonly Tensor[],
    shape: readonly Dimension[],
    options: NodeOptions = {},
  ): Tensor {
    return this.nodesWithOutputs(operator, inputs, [shape], options)[0] as Tensor;
  }

  /** Adds a node with several outputs, of which those without a shape are left out; a backward rule belongs to the first. */
  nodesWithOutputs(
    operator: string,
    inputs: readonly Tensor[],
    shapes: readonly (readonly Dimension[] | undefined)[],
    options: NodeOptions = {},
  ): Tensor[] {
    const { backward } = options;
    const requiresGradient = backward !== undefined && inputs.some((input) => input.requiresGradient);
    const all = shapes.map((shape, index) => ({
      name: shape ? this.#name() : "",
      shape: shape ?? [],
      type: options.type ?? ("float32" as const),
      requiresGradient: requiresGradient && index === 0,
    }));
    const outputs = all.filter(({ name }) => name !== "");
    this.nodes.push({
      operator,
      domain: options.domain ?? "",
      inputs: inputs.map((input) => input.name),
      outputs: all.map((output) => output.name),
      attributes: options.attributes ?? {},
    });
    if (requiresGradient) this.tape.push({ output: outputs[0] as Tensor, inputs, backward });
    return outputs;
  }

  /** Gives a value that was computed by several nodes one backward rule of its own. */
  withBackward(output: Tensor, inputs: readonly Tensor[], backward: BackwardRule): Tensor {
    if (!inputs.some((input) => input.requiresGradient)) return output;
    const differentiable = { ...output, requiresGradient: true };
    this.tape.push({ output: differentiable, inputs, backward });
    return differentiable;
  }

  #declare(name: string, shape: readonly Dimension[], type: ElementType, requiresGradient: boolean): Tensor {
    assert(!this.inputs.some((input) => input.name === name), `the graph has two inputs named ${name}`);
    const tensor = { name, shape, type, requiresGradient };
    this.inputs.push(tensor);
    return tensor;
  }

  #constant(type: ElementType, shape: readonly number[], values: readonly number[]): Tensor {
    const key = `${type}|${shape.join(",")}|${values.join(",")}`;
    const known = this.#constantNames.get(key);
    if (known) return known;
    const tensor = { name: this.#name(), shape, type, requiresGradient: false };
    this.constants.push({ name: tensor.name, type, shape, values });
    this.#constantNames.set(key, tensor);
    return tensor;
  }

  #name(): string {
    return `t${this.#names++}`;
  }
}
