/**
 * Weights in 4 bits for `com.microsoft.MatMulNBits`: each row is cut into blocks of 32, and a weight is
 * (code - zero point) * scale + offset, with a scale, a whole zero point and an offset for each block, as in GGUF's Q4_1
 * whose weights come back as they were. The operator knows no offsets; they are added by a small product of their own
 * (`block-products.ts`), since zero points that are no whole numbers make it 50 times as slow. Its activations have
 * 8 bits (`accuracy_level` 4), about 4e-3 of the product's norm away from exact arithmetic with the same weights.
 */

export type WeightBits = 4 | 8;

/** What a model samples with: its weights as they are, or linear layers in 8 or 4 bits. */
export const samplingWeights = ["f32", "int8", "int4"] as const;
export type SamplingWeights = (typeof samplingWeights)[number];

export function bitsOf(weights: SamplingWeights): WeightBits | undefined {
  return weights === "f32" ? undefined : weights === "int8" ? 8 : 4;
}

/** A matrix (rows, columns) in blocks along its columns; what fills up the last block of a row means nothing. */
export interface QuantizedMatrix {
  readonly rows: number;
  readonly columns: number;
  /** (rows, blocks, blockSize / 2); of two codes in one byte the first is in the low half. */
  readonly codes: Uint8Array;
  /** (rows, blocks). */
  readonly scales: Float32Array;
  /** (rows, ceil(blocks / 2)); of two zero points in one byte the first is in the low half. */
  readonly zeroPoints: Uint8Array;
  /** (rows, blocks); at most half a scale where the block's range holds zero. */
  readonly offsets: Float32Array;
}

export const blockSize = 32;
const highest = 15;
/** In blocks of still smaller steps all weights are equal: the inverse of the step would be no number. */
const leastScale = 1e-30;

export function blocksOf(columns: number): number {
  return Math.ceil(columns / blockSize);
}

/** Rounds a matrix (rows, columns) to the nearest codes of each block. */
export function quantizeMatrix(
  values: Float32Array,
  [rows, columns]: readonly [number, number],
): QuantizedMatrix {
  const blocks = blocksOf(columns);
  const matrix: QuantizedMatrix = {
    rows,
    columns,
    codes: new Uint8Array((rows * blocks * blockSize) / 2),
    scales: new Float32Array(rows * blocks),
    zeroPoints: new Uint8Array(rows * Math.ceil(blocks / 2)),
    offsets: new Float32Array(rows * blocks),
  };
  const block: Block = { values, start: 0, end: 0, codes: new Uint8Array(blockSize) };
  for (let row = 0; row < rows; row++) {
    for (let index = 0; index < blocks; index++) {
      block.start = row * columns + index * blockSize;
      block.end = Math.min(block.start + blockSize, (row + 1) * columns);
      const { scale, zeroPoint, offset } = quantizeBlock(block);
      matrix.offsets[row * blocks + index] = offset;
      matrix.scales[row * blocks + index] = scale;
      writeZeroPoint(matrix, { row, index, blocks }, zeroPoint);
      writeCodes(matrix, row * blocks + index, block.codes);
    }
  }
  return matrix;
}

interface Block {
  readonly values: Float32Array;
  /** Where its values start and end. */
  start: number;
  end: number;
  /** Receives a code for each. */
  readonly codes: Uint8Array;
}

/** Codes from 0 to 15 for one block; codes beyond its end are left as they are, their columns do not exist. */
function quantizeBlock({ values, start, end, codes }: Block): {
  readonly scale: number;
  readonly zeroPoint: number;
  readonly offset: number;
} {
  let least = values[start] as number;
  let most = least;
  for (let i = start + 1; i < end; i++) {
    const value = values[i] as number;
    if (value < least) least = value;
    if (value > most) most = value;
  }
  const scale = Math.fround((most - least) / highest);
  if (scale < leastScale) {
    codes.fill(0);
    return { scale: 0, zeroPoint: 0, offset: least };
  }
  const inverse = 1 / scale;
  for (let i = start; i < end; i++) {
    const code = (((values[i] as number) - least) * inverse + 0.5) | 0;
    codes[i - start] = Math.min(code, highest);
  }
  const zeroPoint = Math.max(0, Math.min(highest, Math.round(-least * inverse)));
  return { scale, zeroPoint, offset: least + zeroPoint * scale };
}

function writeCodes({ codes }: QuantizedMatrix, block: number, written: Uint8Array): void {
  const start = (block * blockSize) / 2;
  for (let i = 0; i < blockSize / 2; i++) {
    codes[start + i] = (written[2 * i] as number) | ((written[2 * i + 1] as number) << 4);
  }
}

interface BlockPlace {
  readonly row: number;
  readonly index: number;
  readonly blocks: number;
}

function writeZeroPoint({ zeroPoints }: QuantizedMatrix, place: BlockPlace, value: number): void {
  const { row, index, blocks } = place;
  const byte = row * Math.ceil(blocks / 2) + (index >> 1);
  zeroPoints[byte] = (zeroPoints[byte] as number) | (value << (4 * (index & 1)));
}

/** The weights that the codes stand for, (rows, columns). */
export function dequantizeMatrix(matrix: QuantizedMatrix): Float32Array {
  const { rows, columns, codes, scales, zeroPoints, offsets } = matrix;
  const blocks = blocksOf(columns);
  const nibble = (bytes: Uint8Array, index: number): number =>
    ((bytes[index >> 1] as number) >> (4 * (index & 1))) & 15;
  const zeroRow = 2 * Math.ceil(blocks / 2);
  const values = new Float32Array(rows * columns);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      const block = Math.floor(column / blockSize);
      const code = row * blocks * blockSize + column;
      const zero = row * zeroRow + block;
      const distance = nibble(codes, code) - nibble(zeroPoints, zero);
      const place = row * blocks + block;
      values[row * columns + column] = distance * (scales[place] as number) + (offsets[place] as number);
    }
  }
  return values;
}
