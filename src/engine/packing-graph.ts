/**
 * Rows (`packing.ts`) in a graph: laid out at the places of attention, and taken back. On the way back, keys and values add up
 * the gradients of all places of a row; queries have one at its first place only, since what attention gives elsewhere is
 * not read.
 */
import type { Graph, Tensor } from "./graph.ts";
import { reshape } from "./operators.ts";
import type { Packing } from "./packing.ts";
import type { Feed } from "./session.ts";

export interface PackingTables {
  /** The row of each place (B, T). */
  readonly rowOfPlace: Tensor;
  /** Sequence and time of the first place of each row (N, 2). */
  readonly placeOfRow: Tensor;
  /** Rows with several places (S, 1); all places of each (S, C, 2), and 1 for what is one, 0 for what fills the line (S, C, 1). */
  readonly repeated: Tensor;
  readonly places: Tensor;
  readonly isPlace: Tensor;
}

/** Declares the tables as inputs of the graph. */
export function declarePacking(graph: Graph): PackingTables {
  return {
    rowOfPlace: graph.input("rowOfPlace", ["B", "T"], "int32"),
    placeOfRow: graph.input("placeOfRow", ["N", 2], "int64"),
    repeated: graph.input("repeated", ["S", 1], "int64"),
    places: graph.input("places", ["S", "C", 2], "int64"),
    isPlace: graph.input("isPlace", ["S", "C", 1]),
  };
}

/** What the tables of `declarePacking` are fed. */
export function packingFeeds(
  { rowOfPlace, placeOfRow, repeated }: Packing,
  { batch, time }: { readonly batch: number; readonly time: number },
): [string, Feed][] {
  const [S, C] = [repeated.length, Math.max(...repeated.map(({ places }) => places.length))];
  const pairs = (count: number, placeAt: (index: number) => number): BigInt64Array =>
    BigInt64Array.from({ length: 2 * count }, (_, index) => {
      const place = placeAt(index >> 1);
      return BigInt(index % 2 === 0 ? Math.floor(place / time) : place % time);
    });
  const placeAt = (index: number): number | undefined => repeated[Math.floor(index / C)]?.places[index % C];
  return [
    ["rowOfPlace", { data: rowOfPlace, shape: [batch, time] }],
    [
      "placeOfRow",
      {
        data: pairs(placeOfRow.length, (row) => placeOfRow[row] as number),
        shape: [placeOfRow.length, 2],
      },
    ],
    ["repeated", { data: BigInt64Array.from(repeated, ({ row }) => BigInt(row)), shape: [S, 1] }],
    ["places", { data: pairs(S * C, (index) => placeAt(index) ?? 0), shape: [S, C, 2] }],
    [
      "isPlace",
      {
        data: Float32Array.from({ length: S * C }, (_, index) => (placeAt(index) === undefined ? 0 : 1)),
        shape: [S, C, 1],
      },
    ],
  ];
}

/** Rows (N, 1, D) at their places: (B, T, D). `readAt` says at which places of a row the result is read. */
export function layOut(
  graph: Graph,
  x: Tensor,
  { tables, readAt }: { readonly tables: PackingTables; readonly readAt: "first" | "all" },
): Tensor {
  const [N, , D] = x.shape as Tensor["shape"] & [string, 1, number];
  const rows = reshape(graph, { ...x, requiresGradient: false }, [N, D]);
  const output = graph.node("Gather", [rows, tables.rowOfPlace], ["B", "T", D], { attributes: { axis: 0 } });
  return graph.withBackward(output, [x], (gradient) => {
    const first = graph.node("GatherND", [gradient, tables.placeOfRow], [N, D]);
    const all = readAt === "first" ? first : addRepeated(graph, first, { gradient, tables });
    return [reshape(graph, all, x.shape)];
  });
}

/** The rows of which there are several places get the sum over these. */
function addRepeated(
  graph: Graph,
  first: Tensor,
  { gradient, tables }: { readonly gradient: Tensor; readonly tables: PackingTables },
): Tensor {
  const D = gradient.shape[2] as number;
  const { repeated, places, isPlace } = tables;
  const lines = graph.node("GatherND", [gradient, places], ["S", "C", D]);
  const real = graph.node("Mul", [lines, isPlace], ["S", "C", D]);
  const sums = graph.node("ReduceSum", [real, graph.integers([1])], ["S", D], {
    attributes: { keepdims: 0 },
  });
  return graph.node("ScatterND", [first, repeated, sums], first.shape);
}

/** What lies at the first place of each row: (B, T, D) to (N, D). */
export function takeBack(graph: Graph, x: Tensor, { placeOfRow }: PackingTables): Tensor {
  const D = x.shape[2] as number;
  const output = graph.node("GatherND", [x, placeOfRow], ["N", D]);
  return graph.withBackward(output, [x], (gradient) => {
    const zeros = graph.node("Expand", [graph.scalar(0), graph.shape(x.shape)], x.shape);
    return [graph.node("ScatterND", [zeros, placeOfRow, gradient], x.shape)];
  });
}
