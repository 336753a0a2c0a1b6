/** From the token vectors of a batch to one vector a text: mean, first or last token, then length 1 where wanted. */
import { assert } from "../../errors.ts";
import type { Pooling } from "./encoder-models.ts";
import type { BatchOutput } from "./onnx-model.ts";

/** Writes the vector of each text of the batch to its row of `vectors` (texts × dimensions). */
export function poolBatch(batch: BatchOutput, pooling: Pooling, vectors: Float32Array): void {
  const width = batch.shape.at(-1) as number;
  const tokens = batch.shape.length === 3 ? (batch.shape[1] as number) : 1;
  assert((pooling === "given") === (batch.shape.length === 2), `pooling ${pooling} of shape ${batch.shape}`);
  for (const [row, position] of batch.positions.entries()) {
    const first = row * tokens * width;
    const length = batch.lengths[row] as number;
    const target = vectors.subarray(position * width, (position + 1) * width);
    if (pooling === "mean") meanOf(batch.data, first, length, target);
    else {
      const at = first + (pooling === "last" ? (length - 1) * width : 0);
      target.set(batch.data.subarray(at, at + width));
    }
  }
}

function meanOf(data: Float32Array, first: number, length: number, target: Float32Array): void {
  const width = target.length;
  for (let i = 0; i < width; i++) {
    let sum = 0;
    for (let token = 0; token < length; token++) sum += data[first + token * width + i] as number;
    target[i] = sum / length;
  }
}

/** Scales each row to length 1; a row of zeros stays. */
export function normalizeRows(vectors: Float32Array, width: number): void {
  for (let from = 0; from < vectors.length; from += width) {
    let sum = 0;
    for (let i = from; i < from + width; i++) sum += (vectors[i] as number) ** 2;
    if (sum === 0) continue;
    const scale = 1 / Math.sqrt(sum);
    for (let i = from; i < from + width; i++) vectors[i] = (vectors[i] as number) * scale;
  }
}
