/** What the tables of `declareTables` are fed: positions, rotary tables and the ends of sequences depend on the shape alone. */
import { headSize, type ModelOptions } from "./model-options.ts";
import { rotaryTables } from "./rotary-tables.ts";
import type { Feed } from "./session.ts";

export function tableFeeds(
  model: ModelOptions,
  { batch, time }: { readonly batch: number; readonly time: number },
): [string, Feed][] {
  const half = headSize(model) / 2;
  const { cosine, sine } = rotaryTables(model, time);
  const table = (data: Float32Array): Feed => ({ data: data.subarray(0, time * half), shape: [time, half] });
  const positions = BigInt64Array.from({ length: batch * time }, (_, index) => BigInt(index % time));
  return [
    ["positions", { data: positions, shape: [batch, time] }],
    ["cosine", table(cosine)],
    ["sine", table(sine)],
    ["negatedSine", { data: sine.subarray(0, time * half).map((value) => -value), shape: [time, half] }],
    ["lastPositions", { data: new Int32Array(batch).fill(time - 1), shape: [batch] }],
    ["tokens", { data: Int32Array.of(time), shape: [1] }],
  ];
}
