/**
 * Weights in 8 bits with one scale for each row of a matrix (out, in): weight = code * scale. Codes are kept transposed,
 * (in, out), as the integer products of ONNX Runtime read their right factor. A model passes here whenever its weights
 * have changed, which is why graphs do it, with all threads.
 */
import { assert } from "../errors.ts";
import { canonicalJson } from "../shared/hash.ts";
import { Graph, type Tensor } from "./graph.ts";
import { hadamardMatrix } from "./hadamard.ts";
import { type Feed, Session, type Weight } from "./session.ts";

/** A matrix (rows, columns) that is rotated in pieces (`hadamard.ts`) before it is rounded. */
export interface RotatedMatrix {
  readonly shape: readonly [rows: number, columns: number];
  readonly data: Float32Array;
  /** Numbers of a piece of a row; 1: rows are not rotated. */
  readonly rowPiece: number;
  /** Numbers of a piece of a column; absent: columns are not rotated. */
  readonly columnPiece?: number;
}

/** What is rounded together, and where it goes. */
export interface RowQuantization {
  /** Of as many columns, below one another. */
  readonly parts: readonly RotatedMatrix[];
  /** (columns, rows of all parts); receives codes, each from -highest to highest. */
  readonly codes: Int8Array;
  /** (rows of all parts); receives scales, more than 0. */
  readonly scales: Float32Array;
}

export interface QuantizationOptions {
  /** The code of the largest weight of each row, at most 127. */
  readonly highest: number;
  readonly threads: number;
}

/** Stands for the largest weight of a row of zeros. */
const leastMagnitude = 1e-30;
/** Numbers that are rounded at once, so that of a table of a large vocabulary no copy is made as a whole. */
const numbersAtOnce = 1 << 20;
/** Rows of a cut lie at multiples of this, so that no piece of a column is cut. */
const rowsOfCut = 64;
const int8 = 3;

/** Rounds each matrix to the nearest codes, one after the other. Throws `EngineError` where memory runs out. */
export async function quantizeRows(
  works: readonly RowQuantization[],
  options: QuantizationOptions,
): Promise<void> {
  const forms = new Map<string, Rounder>();
  try {
    for (const { parts: matrices, codes, scales } of works) {
      const parts = matrices.flatMap(cut);
      const form = canonicalJson(parts.map(({ data: _, ...shapes }) => shapes));
      const rounder = forms.get(form) ?? (await createRounder(parts, options));
      forms.set(form, rounder);
      const { session, outputs } = rounder;
      const feeds = new Map(
        parts.map(({ data, shape }, index): [string, Feed] => [partName(index), { data, shape }]),
      );
      const { columns, rows } = sizesOf(parts);
      const into = new Map<string, Weight>([
        [outputs.codes, { data: codes, shape: [columns, rows] }],
        [outputs.scales, { data: scales, shape: [rows, 1] }],
      ]);
      await session.run(feeds, [], into);
    }
  } finally {
    for (const { session } of forms.values()) await session.close();
  }
}

interface Rounder {
  readonly session: Session;
  readonly outputs: { readonly codes: string; readonly scales: string };
}

/** The matrix as matrices of fewer rows below one another, without a copy. */
function cut(matrix: RotatedMatrix): RotatedMatrix[] {
  const { shape, data } = matrix;
  const [rows, columns] = shape;
  const most = rowsOfCut * Math.max(1, Math.floor(numbersAtOnce / columns / rowsOfCut));
  assert(rowsOfCut % (matrix.columnPiece ?? 1) === 0, `pieces of ${matrix.columnPiece} rows would be cut`);
  return Array.from({ length: Math.ceil(rows / most) }, (_, index) => {
    const [start, end] = [index * most, Math.min(rows, (index + 1) * most)];
    return { ...matrix, shape: [end - start, columns], data: data.subarray(start * columns, end * columns) };
  });
}

const partName = (index: number): string => `part.${index}`;

function sizesOf(parts: readonly RotatedMatrix[]): { readonly rows: number; readonly columns: number } {
  const [first] = parts as readonly [RotatedMatrix];
  return { rows: parts.reduce((sum, { shape }) => sum + shape[0], 0), columns: first.shape[1] };
}

async function createRounder(
  parts: readonly RotatedMatrix[],
  { highest, threads }: QuantizationOptions,
): Promise<Rounder> {
  const graph = new Graph();
  const weights = new Map<string, Weight>();
  const { rows, columns } = sizesOf(parts);
  const rounded = parts.map((part, index) => {
    const input = graph.input(partName(index), part.shape);
    return round(graph, rotate(graph, input, { ...part, weights }), highest);
  });
  const join = (tensors: readonly Tensor[], shape: readonly number[], axis: number): Tensor => {
    const [first] = tensors as readonly [Tensor];
    if (tensors.length === 1) return first;
    return graph.node("Concat", tensors, shape, { type: first.type, attributes: { axis } });
  };
  // The last one made is computed first: codes, whose cuts then end one after the other, and scales on the way.
  const scales = join(
    rounded.map((part) => part.scales),
    [rows, 1],
    0,
  );
  const codes = join(
    rounded.map((part) => part.codes),
    [columns, rows],
    1,
  );
  const session = await Session.create(graph, [codes, scales], { threads, weights });
  return { session, outputs: { codes: codes.name, scales: scales.name } };
}

/** Codes (columns, rows) and scales (rows, 1) of a matrix (rows, columns). */
function round(
  graph: Graph,
  x: Tensor,
  highest: number,
): { readonly codes: Tensor; readonly scales: Tensor } {
  const [rows, columns] = x.shape as [number, number];
  const column = [rows, 1];
  const magnitudes = graph.node("Abs", [x], x.shape);
  const largest = graph.node("ReduceMax", [magnitudes, graph.integers([1])], column, {
    attributes: { keepdims: 1 },
  });
  const most = graph.node("Max", [largest, graph.scalar(leastMagnitude)], column);
  const scales = graph.node("Div", [most, graph.scalar(highest)], column);
  const inverses = graph.node("Div", [graph.scalar(highest), most], column);
  const steps = graph.node("Round", [graph.node("Mul", [x, inverses], x.shape)], x.shape);
  const rounded = graph.node("Cast", [steps], x.shape, { type: "int8", attributes: { to: int8 } });
  const codes = graph.node("Transpose", [rounded], [columns, rows], {
    type: "int8",
    attributes: { perm: [1, 0] },
  });
  return { codes, scales };
}

/** The matrix with its rows and columns rotated; `weights` receives what that is multiplied by. */
function rotate(
  graph: Graph,
  x: Tensor,
  { shape, rowPiece, columnPiece = 1, weights }: RotatedMatrix & { readonly weights: Map<string, Weight> },
): Tensor {
  const [rows, columns] = shape;
  const matrixOf = (size: number): Tensor => {
    const name = `hadamard.${size}`;
    const known = graph.weights.find((tensor) => tensor.name === name);
    if (known) return known;
    weights.set(name, { data: hadamardMatrix(size), shape: [size, size] });
    return graph.weight(name, [size, size]);
  };
  const reshaped = (value: Tensor, sizes: readonly number[]): Tensor =>
    graph.node("Reshape", [value, graph.integers(sizes)], sizes);
  let turned = x;
  if (rowPiece > 1) {
    const pieces = [(rows * columns) / rowPiece, rowPiece];
    const product = graph.node("MatMul", [reshaped(turned, pieces), matrixOf(rowPiece)], pieces);
    turned = reshaped(product, shape);
  }
  if (columnPiece > 1) {
    const pieces = [rows / columnPiece, columnPiece, columns];
    const product = graph.node("MatMul", [matrixOf(columnPiece), reshaped(turned, pieces)], pieces);
    turned = reshaped(product, shape);
  }
  return turned;
}
