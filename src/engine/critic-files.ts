/** The weights of a critic on disk, `critic.safetensors`; its optimiser's state lies beside them. */
import { join } from "node:path";
import { CheckpointError } from "../errors.ts";
import type { ParameterSet } from "./parameters.ts";
import { readSafetensors, writeSafetensors } from "./safetensors.ts";

const criticFile = "critic.safetensors";

/** Writes a critic's own weights into an existing folder. */
export async function writeCritic(folder: string, own: ParameterSet): Promise<void> {
  await writeSafetensors(join(folder, criticFile), own);
}

/** New arrays with what `writeCritic` wrote, of the names and shapes of `own`. Throws `CheckpointError`, `FileError`. */
export async function readCritic(folder: string, own: ParameterSet): Promise<ParameterSet> {
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
  return weights;
}

function describe(parameters: ParameterSet): ReadonlyMap<string, string> {
  return new Map([...parameters].map(([name, { shape }]) => [name, `[${shape}]`]));
}
