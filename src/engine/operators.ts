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

/** A matrix (out, in) and the same one in parts, rows after rows; a single part is the matrix itself. */
export interface MatrixInParts {
  readonly whole: Tensor;
  readonly parts: readonly Tensor[];
}

/**
 * As `linear` with a matrix of very many rows, whose way back goes part by part: gradients belong to the parts, each small
 * enough for the processor's caches.
 */
export function linearInParts(graph: Graph, x: Tensor, { whole, parts }: MatrixInParts): Tensor {
  if (parts.length === 1) return linear(graph, x, whole);
  const [rows] = x.shape as [Dimension];
  const product = linear(graph, detach(x), detach(whole));
  return graph.withBackward(product, [x, ...parts], (gradient) => {
    const sizes = parts.map(({ shape: [size] }) => size as number);
    const columns = graph.nodesWithOutputs(
      "Split",
      [gradient, graph.integers(sizes)],
      sizes.map((size) => [rows, size]),
      { attributes: { axis: 1 } },
    );
    let ofX: Tensor | undefined;
    const ofParts = parts.map((part, index) => {
      const ofPart = columns[index] as Tensor;
      if (x.requiresGradient) ofX = graph.node("Gemm", ofX ? [ofPart, part, ofX] : [ofPart, part], x.shape);
      return part.requiresGradient
        ? graph.node("Gemm", [ofPart, x], part.shape, { attributes: { transA: 1 } })
        : undefined;
    });
    return [ofX, ...ofParts];
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
        const normalized = product(x, inverse as Tensor);
        const inputGradient = (): Tensor => {
          const scaled = product(gradient, weight);
          const along = meanOfLastDimension(graph, product(scaled, normalized));
          const centred = graph.node("Sub", [scaled, product(normalized, along)], x.shape);
          return product(centred, inverse as Tensor);
        };
        return [
          x.requiresGradient ? inputGradient() : undefined,
          weight.requiresGradient ? sumTo(graph, product(gradient, normalized), weight.shape) : undefined,
        ];
      },
    },
  ) as [Tensor, Tensor];
  return output;
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

/** Natural log of the softmax over the last dimension, at one index of each row: x (M, V), indexes (M) to (M). */
export function logSoftmaxAt(graph: Graph, x: Tensor, indexes: Tensor): Tensor {
  const [rows] = x.shape as [Dimension];
  const logSoftmax = graph.node("LogSoftmax", [x], x.shape, { attributes: { axis: -1 } });
  const last = graph.integers([1]);
  const column = graph.node("Unsqueeze", [indexes, last], [rows, 1], { type: "int64" });
  const picked = graph.node("GatherElements", [logSoftmax, column], [rows, 1], { attributes: { axis: 1 } });
  const output = graph.node("Squeeze", [picked, last], [rows]);
  return graph.withBackward(output, [x], (gradient) => {
    // d logprob / d x = onehot(index) - softmax(x)
    const negative = graph.node("Neg", [graph.node("Unsqueeze", [gradient, last], [rows, 1])], [rows, 1]);
    const probabilities = graph.node("Exp", [logSoftmax], x.shape);
    const scaled = graph.node("Mul", [probabilities, negative], x.shape);
    const updates = graph.node("Unsqueeze", [gradient, last], [rows, 1]);
    return [
      graph.node("ScatterElements", [scaled, column, updates], x.shape, {
        attributes: { axis: 1, reduction: "add" },
      }),
    ];
  });
}

/** The sum over the last dimension, which stays with size 1. */
export function sumOfLastDimension(graph: Graph, x: Tensor): Tensor {
  return graph.node("ReduceSum", [x, graph.integers([-1])], [...x.shape.slice(0, -1), 1], {
    attributes: { keepdims: 1 },
  });
}

function meanOfLastDimension(graph: Graph, x: Tensor): Tensor {
  return graph.node("ReduceMean", [x, graph.integers([-1])], [...x.shape.slice(0, -1), 1], {
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
