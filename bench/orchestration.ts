/**
 * What a large run costs in this process: thousands of episodes against a server whose model costs nothing
 * (`orchestration/server.ts`, another process), with everything a training does: rollouts ahead of updates, retrieval,
 * rewards, batches over HTTP. Three parts: turns a second and memory; a batch of some megabytes through an update; and a
 * run with faults of every kind. A fourth, for which it must be asked (`--cases curve`), trains a real model twice.
 */
import { type Bench, integerOptions } from "./bench.ts";
import { markdownTable } from "./measure.ts";
import { curveRows, measureCurve } from "./orchestration/curve.ts";
import { faultRows, measureFaults } from "./orchestration/faults.ts";
import { onServer } from "./orchestration/setting.ts";
import { measureTurns, turnRows } from "./orchestration/turns.ts";
import { measureUpdates, updateRows } from "./orchestration/updates.ts";

const defaults = {
  turns: 100_000,
  inFlight: 2000,
  samples: 128,
  megabytes: 10,
  updates: 5,
  faults: 1000,
  steps: 15,
  warmUp: 250,
};

export const orchestrationBench: Bench = {
  name: "orchestration",
  about:
    "a large run against a server that computes nothing: turns/s, memory, bytes of an update, injected faults",
  options:
    "[--cases turns,update,faults,curve] [--turns 100000] [--inFlight 2000] [--samples 128] [--megabytes 10] [--updates 5] [--faults 1000] [--steps 15] [--warmUp 250]",
  async run(args) {
    const { samples, faults, cases = "turns,update,faults", ...sizes } = integerOptions(args, defaults);
    const rows: string[][] = [];
    const data: Record<string, object> = {};
    const wanted = cases.split(",");
    if (wanted.includes("turns")) {
      const measured = await onServer(samples, (there) => measureTurns(there, sizes));
      data.rollouts = measured;
      rows.push(...turnRows(measured));
    }
    if (wanted.includes("update")) {
      const measured = await onServer(samples, (there) => measureUpdates(there, sizes));
      data.update = measured;
      rows.push(...updateRows(measured));
    }
    if (wanted.includes("faults")) {
      const measured = await onServer(samples, (there) => measureFaults(there, faults));
      data.failures = measured;
      rows.push(...faultRows(measured));
    }
    if (wanted.includes("curve")) {
      const measured = await measureCurve(sizes);
      data.curve = measured;
      rows.push(...curveRows(measured));
    }
    return { markdown: markdownTable(["orchestration", "measured"], rows), data };
  },
};
