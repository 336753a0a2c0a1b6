/** The places of a micro-batch that matter: picked before a head sees them, and brought back to their data afterwards. */
import type { MicroBatch } from "./micro-batch.ts";
import type { Sequences } from "./packing.ts";

/** Where rows come from: for each, the index of its datum and its position t. */
export interface RowPlaces {
  readonly rows: Int32Array;
  readonly times: Int32Array;
}

/** The places that matter in the sequences of a micro-batch. */
export function select<T extends { readonly inputs: Int32Array }>(
  data: readonly T[],
  isSelected: (datum: T, t: number) => boolean,
): RowPlaces {
  const rows: number[] = [];
  const times: number[] = [];
  for (const [row, datum] of data.entries()) {
    for (let t = 0; t < datum.inputs.length; t++) {
      if (!isSelected(datum, t)) continue;
      rows.push(row);
      times.push(t);
    }
  }
  return { rows: Int32Array.from(rows), times: Int32Array.from(times) };
}

/** Which row of the hidden states (N, width) each place is. */
export function hiddenRows({ time, packing }: Sequences, { rows, times }: RowPlaces): Int32Array {
  return rows.map((row, index) => {
    const place = row * time + (times[index] as number);
    return packing ? (packing.rowOfPlace[place] as number) : place;
  });
}

/** Brings the values of the selected places of a micro-batch to their data. */
export function scatter(
  values: Float32Array,
  selection: RowPlaces,
  target: { readonly microBatch: MicroBatch; readonly rows: readonly Float32Array[] },
): void {
  for (const [index, value] of values.entries()) {
    const datum = target.microBatch.members[selection.rows[index] as number] as number;
    (target.rows[datum] as Float32Array)[selection.times[index] as number] = value;
  }
}
