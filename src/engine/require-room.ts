/**
 * Refuses a model that a machine cannot hold, before any of its weights is read: the system would end the process half way,
 * without a word. What training takes beside is planned from the whole recipe (`training/plan-training.ts`).
 */
import { EngineError } from "../errors.ts";
import { runtimeBytes, samplerBytes } from "./memory-estimate.ts";
import { type ModelOptions, parameterCount } from "./model-options.ts";
import type { SamplingWeights } from "./weight-quantization.ts";

export interface Room {
  /** Bytes of the machine, or of what the process may have. */
  readonly machineMemory: number;
  /** Absent: f32, and there is no choice. */
  readonly samplingWeights?: SamplingWeights;
}

/** Throws `EngineError` with the numbers and what to change where the model cannot be sampled, one sequence at a time. */
export function requireRoom(source: string, model: ModelOptions, room: Room): void {
  const { machineMemory, samplingWeights = "f32" } = room;
  const weights = 4 * parameterCount(model);
  const copy = (kind: SamplingWeights): number => samplerBytes(model, { slots: 1, tokens: 1, weights: kind });
  const needed = runtimeBytes + weights + copy(samplingWeights);
  if (needed <= machineMemory) return;
  const isEnough = runtimeBytes + weights + copy("int4") <= machineMemory;
  const fewerBits =
    isEnough && room.samplingWeights !== undefined ? "sample it with fewer bits (int4), or " : "";
  throw new EngineError(
    `${source} needs at least ${gigabytes(needed)} (weights ${gigabytes(weights)}, their copy to sample with ${gigabytes(copy(samplingWeights))}), this machine has ${gigabytes(machineMemory)}; ${fewerBits}use a smaller model`,
  );
}

function gigabytes(bytes: number): string {
  return `${(bytes / 1e9).toFixed(2)} GB`;
}
