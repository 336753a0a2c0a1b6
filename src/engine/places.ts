/** The places of a micro-batch that matter: picked before a head sees them, and brought back to their data afterwards. */
import type { MicroBatch } from "./micro-batch.ts";
import type { Sequences } from "./trunk.ts";

/** Where rows come from: for each, the index of its datum and its position t. */
export interface RowPlaces {
  readonly rows: Int32Array;
  readonly times: Int32Array;
}

/** The sequences of a micro-batch and the places in them that matter. */
export function select<T extends { readonly inputs: Int32Array }>(
  batch: readonly T[],
  { time, members }: MicroBatch,
  isSelected: (datum: T, t: number) => boolean,
): { readonly data: T[]; readonly sequences: Sequences; readonly places: RowPlaces } {
  const data = members.map((index) => batch[index] as T);
  const tokens = new Int32Array(data.length * time);
  const rows: number[] = [];
  const times: number[] = [];
  for (const [row, datum] of data.entries()) {
    tokens.set(datum.inputs, row * time);
    for (let t = 0; t < datum.inputs.length; t++) {
      if (!isSelected(datum, t)) continue;
      rows.push(row);
      times.push(t);
    }
  }
  const places = { rows: Int32Array.from(rows), times: Int32Array.from(times) };
  return { data, sequences: { tokens, batch: data.length, time }, places };
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
