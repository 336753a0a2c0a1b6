/** What the tables of `declareTables` are fed: all but what is packed depends on the shape alone. */
import { headSize, type ModelOptions } from "./model-options.ts";
import type { Packing } from "./packing.ts";
import { packingFeeds } from "./packing-graph.ts";
import { rotaryTables } from "./rotary-tables.ts";
import type { Feed } from "./session.ts";

export function tableFeeds(
  model: ModelOptions,
  {
    batch,
    time,
    packing,
  }: { readonly batch: number; readonly time: number; readonly packing?: Packing | undefined },
): [string, Feed][] {
  const half = headSize(model) / 2;
  const { cosine, sine } = rotaryTables(model, time);
  const table = (data: Float32Array): Feed => ({ data: data.subarray(0, time * half), shape: [time, half] });
  const positions: Feed = packing
    ? { data: BigInt64Array.from(packing.positions, BigInt), shape: [packing.positions.length, 1] }
    : {
        data: BigInt64Array.from({ length: batch * time }, (_, index) => BigInt(index % time)),
        shape: [batch, time],
      };
  return [
    ["positions", positions],
    ["cosine", table(cosine)],
    ["sine", table(sine)],
    ["negatedSine", { data: sine.subarray(0, time * half).map((value) => -value), shape: [time, half] }],
    ["lastPositions", { data: new Int32Array(batch).fill(time - 1), shape: [batch] }],
    ["tokens", { data: Int32Array.of(time), shape: [1] }],
    ...(packing ? packingFeeds(packing, { batch, time }) : []),
  ];
}
