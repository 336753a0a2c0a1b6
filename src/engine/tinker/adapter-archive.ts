/**
 * Adapters that a server hands out as an archive: a tar.gz with `adapter_model.safetensors` and `adapter_config.json` in PEFT's
 * layout. SkyRL on JAX trains one A for q, k and v, and one for gate and up; in the archive each projection has a copy of it, so
 * that PEFT computes the same. (PEFT trains the copies apart, and so goes another way from there.) What SkyRL's configuration
 * leaves out, the projections, is filled in from the tensors.
 */

import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { z } from "zod";
import { CheckpointError, EngineError } from "../../errors.ts";
import { writeFileAtomic } from "../../shared/files.ts";
import type { BaseLocation } from "../lora-base.ts";
import { adapterConfigFile, adapterWeightsFile, writeAdapters } from "../lora-files.ts";
import { type LoraTarget, loraTargets } from "../lora-options.ts";
import type { Parameter } from "../parameters.ts";
import { readSafetensors } from "../safetensors.ts";
import type { Connection } from "./connection.ts";

export interface ArchiveWanted {
  readonly modelId: string;
  /** Name of the snapshot for sampling. */
  readonly checkpoint: string;
  /** Where the files go; made where it is not there. */
  readonly folder: string;
  /** The model that the adapters belong to. */
  readonly location: BaseLocation;
}

const configSchema = z.looseObject({ r: z.int().min(1), lora_alpha: z.number().positive() });
const prefix = "base_model.model.";

/** The files of a snapshot by their names. Throws `EngineError`. */
export async function fetchArchive(
  connection: Connection,
  { modelId, checkpoint }: Pick<ArchiveWanted, "modelId" | "checkpoint">,
): Promise<Map<string, Buffer>> {
  const kind = connection.profile.archive === "byKind" ? "sampler_weights/" : "";
  const path = `training_runs/${modelId}/checkpoints/${kind}${checkpoint}/archive`;
  return untar(gunzip(await connection.download(path), path));
}

/** Writes the adapters of a snapshot into a folder as PEFT reads them. Throws `EngineError`, `CheckpointError`, `FileError`. */
export async function fetchAdapters(connection: Connection, wanted: ArchiveWanted): Promise<void> {
  const { folder, location, checkpoint } = wanted;
  const files = await fetchArchive(connection, wanted);
  const weights = files.get(adapterWeightsFile);
  const config = configSchema.safeParse(parseJson(files.get(adapterConfigFile)));
  if (weights === undefined || !config.success)
    throw new EngineError(
      `${connection.url}: the archive of ${checkpoint} should hold ${adapterWeightsFile} and ${adapterConfigFile} with r and lora_alpha, it holds ${[...files.keys()].join(", ") || "nothing"}; set engine.downloadAdapters to false`,
      { kind: "malformed" },
    );
  const file = join(folder, adapterWeightsFile);
  await writeFileAtomic(file, weights);
  const adapters = new Map<string, Parameter>();
  for (const [name, parameter] of await readSafetensors(file))
    adapters.set(name.slice(prefix.length), parameter);
  const lora = { rank: config.data.r, alpha: config.data.lora_alpha, targets: targetsOf(adapters.keys()) };
  await writeAdapters(folder, { lora, location }, adapters);
}

/** The projections that have adapters. Throws `CheckpointError` for a tensor of another kind, which would be left out. */
function targetsOf(names: Iterable<string>): LoraTarget[] {
  const found = new Set<string>();
  for (const name of names) {
    const target = /\.(\w+)\.lora_[AB]\.weight$/.exec(name)?.[1];
    if (target === undefined || !loraTargets.some((known) => known === target))
      throw new CheckpointError(
        `the server's adapters hold ${name}; only adapters of ${loraTargets.join(", ")} are supported (engine.downloadAdapters: false leaves them on the server)`,
      );
    found.add(target);
  }
  return loraTargets.filter((target) => found.has(target));
}

function gunzip(bytes: Uint8Array, path: string): Buffer {
  try {
    return gunzipSync(bytes);
  } catch (cause) {
    throw new EngineError(`${path}: expected a gzip archive, got ${bytes.length} other bytes`, {
      cause,
      kind: "malformed",
    });
  }
}

function parseJson(bytes: Uint8Array | undefined): unknown {
  try {
    return JSON.parse(Buffer.from(bytes ?? []).toString("utf8"));
  } catch {
    return undefined;
  }
}

const block = 512;

/** The plain files of a tar archive (POSIX ustar) by their last name; further headers, as for long names, are passed over. */
export function untar(archive: Buffer): Map<string, Buffer> {
  const files = new Map<string, Buffer>();
  for (let at = 0; at + block <= archive.length; ) {
    const header = archive.subarray(at, at + block);
    const name = text(header.subarray(0, 100));
    if (name === "") break;
    const size = Number.parseInt(text(header.subarray(124, 136)).trim() || "0", 8);
    const type = String.fromCharCode(header[156] ?? 0);
    const start = at + block;
    if (!Number.isSafeInteger(size) || size < 0 || start + size > archive.length)
      throw new EngineError(`an archive of adapters ends in the middle of ${name}`, { kind: "malformed" });
    if (type === "0" || type === "\0")
      files.set(name.slice(name.lastIndexOf("/") + 1), archive.subarray(start, start + size));
    at = start + Math.ceil(size / block) * block;
  }
  return files;
}

/** Text up to the first zero byte. */
function text(bytes: Uint8Array): string {
  const end = bytes.indexOf(0);
  return Buffer.from(end === -1 ? bytes : bytes.subarray(0, end)).toString("utf8");
}
