/**
 * Weights in 8 bits with one scale for each row of a matrix (out, in): weight = code * scale. Codes are kept transposed,
 * (in, out), as the integer products of ONNX Runtime read their right factor.
 */

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
  for (let row = 0; row < rows; row++) {
    const start = row * columns;
    let most = 0;
    for (let i = start; i < start + columns; i++) most = Math.max(most, Math.abs(values[i] as number));
    if (most === 0) continue;
    scales[row] = most / highest;
    const inverse = highest / most;
    for (let column = 0; column < columns; column++) {
      codes[column * rows + row] = Math.round((values[start + column] as number) * inverse);
    }
  }
  return { rows, columns, codes, scales };
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
