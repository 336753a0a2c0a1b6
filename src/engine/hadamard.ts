/**
 * Rotation by a Hadamard matrix in pieces, as in QuaRot (Ashkboos et al., 2024): a matrix product stays what it is when both
 * sides are rotated along the dimension that is summed, but a number far larger than its neighbours is spread over its
 * piece, so that rounding the piece to a few bits costs the others less.
 */

/** Larger pieces gained nothing on SmolLM2-135M (docs/LOG.md). */
const mostNumbers = 64;

/** The largest power of two, at most 64, that divides a length. */
export function pieceSize(length: number): number {
  let size = 1;
  while (size < mostNumbers && length % (2 * size) === 0) size *= 2;
  return size;
}

/** Each piece of `size` numbers, a power of two, times the symmetric, orthogonal Hadamard matrix of that size; applied twice it changes nothing. */
export function rotatePieces(values: Float32Array, size: number): Float32Array {
  const rotated = Float32Array.from(values);
  const norm = 1 / Math.sqrt(size);
  for (let start = 0; start < rotated.length; start += size) {
    for (let half = 1; half < size; half *= 2) addAndSubtract(rotated, { start, end: start + size, half });
    for (let i = start; i < start + size; i++) rotated[i] = (rotated[i] as number) * norm;
  }
  return rotated;
}

/** One pass of the fast transform: numbers `half` apart become their sum and their difference. */
function addAndSubtract(
  values: Float32Array,
  { start, end, half }: { readonly start: number; readonly end: number; readonly half: number },
): void {
  for (let i = start; i < end; i += 2 * half) {
    for (let j = i; j < i + half; j++) {
      const a = values[j] as number;
      const b = values[j + half] as number;
      values[j] = a + b;
      values[j + half] = a - b;
    }
  }
}

/** The matrix itself (size, size). */
export function hadamardMatrix(size: number): Float32Array {
  const identity = Float32Array.from({ length: size * size }, (_, i) => (i % (size + 1) === 0 ? 1 : 0));
  return rotatePieces(identity, size);
}
