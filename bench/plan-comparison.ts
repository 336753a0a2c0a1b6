/** What `plan.ts` and `plan-recipes.ts` compare, and how fast the machine was meanwhile. */
import { performance } from "node:perf_hooks";
import type { ModelOptions } from "../src/engine/model-options.ts";
import { measureSpeed } from "../src/engine/product-probe.ts";
import type { MachineSpeed } from "../src/engine/time-estimate.ts";
import { processorClock } from "../src/training/processor-clock.ts";

export interface Cost {
  readonly bytes: number;
  readonly seconds: number;
  /** Of the processor, all cores together; absent where it was not measured. */
  readonly processorSeconds?: number;
}

export interface Comparison {
  readonly name: string;
  readonly planned: Cost;
  readonly measured: Cost;
}

/** Speeds by both clocks. */
export interface Speeds {
  readonly wall: MachineSpeed;
  readonly processor: MachineSpeed;
}

/** Does work, and probes the speed of products of the model's size right before and after. */
export async function probedAround<T>(
  setting: { readonly model: ModelOptions; readonly threads: number },
  work: () => Promise<T>,
): Promise<{ readonly result: T; readonly speeds: Speeds }> {
  const before = await probe(setting);
  const result = await work();
  const after = await probe(setting);
  const speeds = {
    wall: meanSpeed(before.wall, after.wall),
    processor: meanSpeed(before.processor, after.processor),
  };
  return { result, speeds };
}

async function probe(setting: { readonly model: ModelOptions; readonly threads: number }): Promise<Speeds> {
  const each = { ...setting, slots: 64, seconds: 1.5 };
  return {
    wall: await measureSpeed({ ...each, now: () => performance.now() }),
    processor: await measureSpeed({ ...each, now: processorClock }),
  };
}

function meanSpeed(a: MachineSpeed, b: MachineSpeed): MachineSpeed {
  return { training: (a.training + b.training) / 2, sampling: (a.sampling + b.sampling) / 2 };
}
