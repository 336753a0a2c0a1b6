/** Rounding by row as plain loops, which `row-quantization.ts` is compared with. */

import { rotatePieces } from "./hadamard.ts";

/** A matrix (rows, columns) with a scale for each row. */
export interface RowQuantizedMatrix {
  readonly rows: number;
  readonly columns: number;
  /** (columns, rows), each from -highest to highest. */
  readonly codes: Int8Array;
  /** (rows) */
  readonly scales: Float32Array;
}

/** Rounds a matrix (rows, columns) to the nearest codes; `highest`, at most 127, is the code of the largest weight of each row. */
export function quantizeRows(
  values: Float32Array,
  [rows, columns]: readonly [number, number],
  highest = 127,
): RowQuantizedMatrix {
  const codes = new Int8Array(rows * columns);
  const scales = new Float32Array(rows);
  const inverses = new Float64Array(rows);
  for (let row = 0; row < rows; row++) {
    const most = largestMagnitude(values, row * columns, (row + 1) * columns);
    scales[row] = most / highest;
    inverses[row] = most === 0 ? 0 : highest / most;
  }
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      const code = (values[row * columns + column] as number) * (inverses[row] as number);
      codes[column * rows + row] = code < 0 ? code - 0.5 : code + 0.5;
    }
  }
  return { rows, columns, codes, scales };
}

function largestMagnitude(values: Float32Array, start: number, end: number): number {
  let most = 0;
  for (let i = start; i < end; i++) {
    const value = values[i] as number;
    const magnitude = value < 0 ? -value : value;
    if (magnitude > most) most = magnitude;
  }
  return most;
}

/** The weights that the codes stand for, (rows, columns). */
export function dequantizeRows({ rows, columns, codes, scales }: RowQuantizedMatrix): Float32Array {
  const values = new Float32Array(rows * columns);
  for (let row = 0; row < rows; row++) {
    const scale = scales[row] as number;
    for (let column = 0; column < columns; column++) {
      values[row * columns + column] = (codes[column * rows + row] as number) * scale;
    }
  }
  return values;
}

/** A matrix of so many columns with each column rotated in pieces of `size` (`hadamard.ts`). */
export function rotateColumns(values: Float32Array, size: number, columns: number): Float32Array {
  const rotated = new Float32Array(values.length);
  for (let column = 0; column < columns; column++) {
    const turned = rotatePieces(
      values.filter((_, i) => i % columns === column),
      size,
    );
    for (const [row, value] of turned.entries()) rotated[row * columns + column] = value;
  }
  return rotated;
}
