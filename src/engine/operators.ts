/**
 * The operators of the embedded engine with their derivatives. Activations are matrices (N, D) with N = batch
 * times time; attention (`attention.ts`) alone uses four dimensions. Weights are stored as Hugging Face does, (out, in), so
 * that a linear layer is x W^T and no weight is ever transposed in memory.
 *
 * Each backward rule is checked against finite differences in `operators.test.ts`. A catalogue of small
 * functions, hence longer than most files.
 */
import { assert } from "../errors.ts";
import type { Dimension, Graph, Tensor } from "./graph.ts";

const microsoft = "com.microsoft";

export function add(graph: Graph, a: Tensor, b: Tensor): Tensor {
  return graph.node("Add", [a, b], broadcastShape(a, b), {
    backward: (gradient) => [
      a.requiresGradient ? sumTo(graph, gradient, a.shape) : undefined,
      b.requiresGradient ? sumTo(graph, gradient, b.shape) : undefined,
    ],
  });
}

export function subtract(graph: Graph, a: Tensor, b: Tensor): Tensor {
  return graph.node("Sub", [a, b], broadcastShape(a, b), {
    backward: (gradient) => [
      a.requiresGradient ? sumTo(graph, gradient, a.shape) : undefined,
      b.requiresGradient ? sumTo(graph, graph.node("Neg", [gradient], gradient.shape), b.shape) : undefined,
    ],
  });
}

export function multiply(graph: Graph, a: Tensor, b: Tensor): Tensor {
  return graph.node("Mul", [a, b], broadcastShape(a, b), {
    backward: (gradient) => [
      a.requiresGradient ? sumTo(graph, multiply(graph, gradient, b), a.shape) : undefined,
      b.requiresGradient ? sumTo(graph, multiply(graph, gradient, a), b.shape) : undefined,
    ],
  });
}

/** The same values in another shape. */
export function reshape(graph: Graph, x: Tensor, shape: readonly Dimension[]): Tensor {
  return graph.node("Reshape", [x, graph.shape(shape)], shape, {
    type: x.type,
    backward: (gradient) => [reshape(graph, gradient, x.shape)],
  });
}

export function transpose(graph: Graph, x: Tensor, permutation: readonly number[]): Tensor {
  const shape = permutation.map((axis) => x.shape[axis] as Dimension);
  return graph.node("Transpose", [x], shape, {
    attributes: { perm: permutation },
    backward: (gradient) => {
      const inverse = permutation.map((_, axis) => permutation.indexOf(axis));
      return [transpose(graph, gradient, inverse)];
    },
  });
}

/** A linear layer: x (N, in) times weight (out, in) transposed, plus an optional bias (out) or summand (N, out). */
export function linear(graph: Graph, x: Tensor, weight: Tensor, bias?: Tensor): Tensor {
  const [rows] = x.shape as [Dimension];
  const [out] = weight.shape as [Dimension];
  const inputs = bias ? [x, weight, bias] : [x, weight];
  return graph.node("Gemm", inputs, [rows, out], {
    attributes: { transB: 1 },
    backward: (gradient) => [
      x.requiresGradient ? graph.node("Gemm", [gradient, weight], x.shape) : undefined,
      weight.requiresGradient
        ? graph.node("Gemm", [gradient, x], weight.shape, { attributes: { transA: 1 } })
        : undefined,
      bias?.requiresGradient ? sumTo(graph, gradient, bias.shape) : undefined,
    ],
  });
}

/** The same value, through which no gradient flows. */
export function detach(x: Tensor): Tensor {
  return { ...x, requiresGradient: false };
}

export interface BatchedProduct {
  readonly transposeA?: boolean;
  readonly transposeB?: boolean;
  /** The product is multiplied by this. */
  readonly scale?: number;
}

/** Matrix products over equal leading dimensions, with transpositions and a factor at no cost. */
export function batchedProduct(graph: Graph, a: Tensor, b: Tensor, options: BatchedProduct = {}): Tensor {
  const { transposeA = false, transposeB = false, scale = 1 } = options;
  const rows = a.shape.at(transposeA ? -1 : -2) as Dimension;
  const columns = b.shape.at(transposeB ? -2 : -1) as Dimension;
  return graph.node("FusedMatMul", [a, b], [...a.shape.slice(0, -2), rows, columns], {
    domain: microsoft,
    attributes: { transA: transposeA ? 1 : 0, transB: transposeB ? 1 : 0, alpha: { float: scale } },
    backward: (gradient) => {
      assert(!transposeA, "the derivative of a product with its left factor transposed is not needed");
      return transposeB
        ? [
            batchedProduct(graph, gradient, b, { scale }),
            batchedProduct(graph, gradient, a, { transposeA: true, scale }),
          ]
        : [
            batchedProduct(graph, gradient, b, { transposeB: true, scale }),
            batchedProduct(graph, a, gradient, { transposeA: true, scale }),
          ];
    },
  });
}

/** Rows of a table (V, D) for integer indexes (N): (N, D). There is no way back through it. */
export function gatherRows(graph: Graph, table: Tensor, indexes: Tensor): Tensor {
  const [, width] = table.shape as [Dimension, Dimension];
  const [count] = indexes.shape as [Dimension];
  return graph.node("Gather", [table, indexes], [count, width], { attributes: { axis: 0 } });
}

/** Some rows of x (N, D), each at most once: (M, D). The others have no gradient from here. */
export function selectRows(graph: Graph, x: Tensor, indexes: Tensor): Tensor {
  const output = gatherRows(graph, x, indexes);
  return graph.withBackward(output, [x], (gradient) => {
    const zeros = graph.node("Expand", [graph.scalar(0), graph.shape(x.shape)], x.shape);
    const [count] = indexes.shape as [Dimension];
    const column = graph.node("Unsqueeze", [indexes, graph.integers([1])], [count, 1], { type: "int64" });
    return [graph.node("ScatterND", [zeros, column, gradient], x.shape)];
  });
}

/** RMS normalisation over the last dimension with a learned scale (Zhang & Sennrich, 2019). */
export function rmsNorm(graph: Graph, x: Tensor, weight: Tensor, epsilon: number): Tensor {
  const [output, inverse] = graph.nodesWithOutputs(
    "SimplifiedLayerNormalization",
    [x, weight],
    [x.shape, [...x.shape.slice(0, -1), 1]],
    {
      attributes: { axis: -1, epsilon: { float: epsilon } },
      backward: (gradient) => {
        const product = (a: Tensor, b: Tensor): Tensor => graph.node("Mul", [a, b], x.shape);
        // With r the inverse root mean square: dx = r (g w) - x r^3 / D sum(g w x), dw = sum over rows of r (g x).
        const along = product(gradient, x);
        const inputGradient = (): Tensor => {
          const [width] = weight.shape as [number];
          const column = reshape(graph, detach(weight), [width, 1]);
          const sums = graph.node("MatMul", [along, column], inverse.shape);
          const cube = graph.node("Pow", [inverse, graph.scalar(3)], inverse.shape);
          const factor = graph.node("Mul", [cube, graph.scalar(1 / width)], inverse.shape);
          const pull = product(x, graph.node("Mul", [sums, factor], inverse.shape));
          return graph.node("Sub", [product(product(gradient, weight), inverse), pull], x.shape);
        };
        return [
          x.requiresGradient ? inputGradient() : undefined,
          weight.requiresGradient ? scaleGradient(graph, along, inverse, weight) : undefined,
        ];
      },
    },
  ) as [Tensor, Tensor];
  return output;
}

/** The sum over all rows of x g times their inverse root mean square: the gradient of the scale of `rmsNorm` (width). */
function scaleGradient(graph: Graph, along: Tensor, inverse: Tensor, scale: Tensor): Tensor {
  const [width] = scale.shape as [number];
  const column = graph.node("Reshape", [inverse, graph.integers([-1, 1])], ["rows", 1]);
  const rows = graph.node("Reshape", [along, graph.integers([-1, width])], ["rows", width]);
  const sum = graph.node("Gemm", [column, rows], [1, width], { attributes: { transA: 1 } });
  return graph.node("Reshape", [sum, graph.integers([width])], [width]);
}

export interface RotaryTables {
  /** Position of each token (B, T). */
  readonly positions: Tensor;
  /** Cosine and sine (positions, headDim / 2), and the negated sine for the way back. */
  readonly cosine: Tensor;
  readonly sine: Tensor;
  readonly negatedSine: Tensor;
}

/** Rotary position embedding (Su et al., 2021) in the half-split form, on (B, T, heads * headDim). */
export function rotate(graph: Graph, x: Tensor, tables: RotaryTables): Tensor {
  const { positions, cosine, sine, negatedSine } = tables;
  return graph.node("RotaryEmbedding", [x, positions, cosine, sine], x.shape, {
    domain: microsoft,
    attributes: { interleaved: 0 },
    // The transpose of a rotation is the rotation by the negative angle.
    backward: (gradient) => [
      rotate(graph, gradient, { positions, cosine, sine: negatedSine, negatedSine: sine }),
      undefined,
      undefined,
      undefined,
    ],
  });
}

/** gate * sigmoid(gate) * up, the gated activation of SwiGLU (Shazeer, 2020). */
export function gatedSilu(graph: Graph, gate: Tensor, up: Tensor): Tensor {
  const { shape } = gate;
  const elementwise = (operator: string, a: Tensor, b: Tensor): Tensor => graph.node(operator, [a, b], shape);
  const sigmoid = graph.node("Sigmoid", [gate], shape);
  const silu = elementwise("Mul", gate, sigmoid);
  return graph.withBackward(elementwise("Mul", silu, up), [gate, up], (gradient) => {
    const ofUp = elementwise("Mul", gradient, silu);
    if (!gate.requiresGradient) return [undefined, ofUp];
    // d silu / d gate = sigmoid + silu (1 - sigmoid); with the gradient in front, silu is already multiplied by it.
    const rest = elementwise("Mul", sigmoid, elementwise("Sub", gradient, ofUp));
    const ofGate = elementwise("Mul", up, elementwise("Add", ofUp, rest));
    return [ofGate, up.requiresGradient ? ofUp : undefined];
  });
}

/** The sum over the last dimension, which stays with size 1. */
export function sumOfLastDimension(graph: Graph, x: Tensor): Tensor {
  return graph.node("ReduceSum", [x, graph.integers([-1])], [...x.shape.slice(0, -1), 1], {
    attributes: { keepdims: 1 },
  });
}

/** Undoes broadcasting: sums a gradient to the shape of the value it belongs to. */
function sumTo(graph: Graph, gradient: Tensor, shape: readonly Dimension[]): Tensor {
  const offset = gradient.shape.length - shape.length;
  const axes = gradient.shape.flatMap((size, axis) =>
    axis < offset || shape[axis - offset] !== size ? [axis] : [],
  );
  if (axes.length === 0) return gradient;
  const kept = gradient.shape.filter((_, axis) => !axes.includes(axis));
  const summed = graph.node("ReduceSum", [gradient, graph.integers(axes)], kept, {
    attributes: { keepdims: 0 },
  });
  if (kept.length === shape.length) return summed;
  return graph.node("Reshape", [summed, graph.shape(shape)], shape);
}

function broadcastShape(a: Tensor, b: Tensor): Dimension[] {
  const rank = Math.max(a.shape.length, b.shape.length);
  return Array.from({ length: rank }, (_, axis) => {
    const left = a.shape[a.shape.length - rank + axis] ?? 1;
    const right = b.shape[b.shape.length - rank + axis] ?? 1;
    assert(left === right || left === 1 || right === 1, `shapes [${a.shape}] and [${b.shape}] do not fit`);
    return left === 1 ? right : left;
  });
}
