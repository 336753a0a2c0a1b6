/** A critic on disk: its own weights, `critic.safetensors`, with the optimiser's state beside them. */
import { join } from "node:path";
import { CheckpointError } from "../errors.ts";
import { allWritten } from "../shared/files.ts";
import type { OptimizerState } from "./adam.ts";
import { readOptimizer, writeOptimizer } from "./checkpoint.ts";
import type { ParameterSet } from "./parameters.ts";
import { readSafetensors, writeSafetensors } from "./safetensors.ts";

const criticFile = "critic.safetensors";

/** Writes a critic into an existing folder. */
export async function writeCritic(
  folder: string,
  own: ParameterSet,
  optimizer: OptimizerState | undefined,
): Promise<void> {
  await allWritten([
    writeSafetensors(join(folder, criticFile), own),
    ...(optimizer ? [writeOptimizer(folder, optimizer)] : []),
  ]);
}

/** New arrays with what `writeCritic` wrote, of the names and shapes of `own`. Throws `CheckpointError`, `FileError`. */
export async function readCritic(
  folder: string,
  own: ParameterSet,
): Promise<{ readonly weights: ParameterSet; readonly optimizer: OptimizerState | undefined }> {
  const path = join(folder, criticFile);
  const weights = await readSafetensors(path);
  const expected = describe(own);
  const found = describe(weights);
  const odd = [...new Set([...expected.keys(), ...found.keys()])].find(
    (name) => expected.get(name) !== found.get(name),
  );
  if (odd !== undefined)
    throw new CheckpointError(
      `${path}: ${odd} was expected with shape ${expected.get(odd) ?? "none"}, it has ${found.get(odd) ?? "none"}; use a critic of the same model and the same algorithm.critic.trunk`,
    );
  return { weights, optimizer: await readOptimizer(folder, own) };
}

function describe(parameters: ParameterSet): ReadonlyMap<string, string> {
  return new Map([...parameters].map(([name, { shape }]) => [name, `[${shape}]`]));
}
