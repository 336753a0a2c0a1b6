/** A checkpoint of a model elsewhere: a small file that says where the server keeps its weights and moments. */
import { realpath, stat } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { CheckpointError, EngineError } from "../../errors.ts";
import { exists, fileError, writeFileAtomic } from "../../shared/files.ts";
import { sha256 } from "../../shared/hash.ts";
import { readJson } from "../read-json.ts";
import { readAnswer } from "./answers.ts";
import type { Connection } from "./connection.ts";
import { profileNames } from "./profiles.ts";

export const remoteCheckpointFile = "remote.json";

const schema = z.strictObject({
  /** As the server names the place; not taken apart here. */
  path: z.string().min(1),
  url: z.string(),
  profile: z.enum(profileNames),
  baseModel: z.string(),
  rank: z.int().nonnegative(),
  /** Whether a step was taken, so that the optimiser's moments are worth something. */
  hasMoments: z.boolean(),
  /** The `runIdentity` of the run that saved it; absent: it belongs to none, and nobody removes it from the server. */
  run: z.exactOptional(z.string()),
});
export type RemoteCheckpoint = z.infer<typeof schema>;

export async function isRemoteCheckpoint(folder: string): Promise<boolean> {
  return await exists(join(folder, remoteCheckpointFile));
}

/** Writes it into `folder`, which is made where it is not there. Throws `FileError`. */
export async function writeCheckpoint(folder: string, checkpoint: RemoteCheckpoint): Promise<void> {
  await writeFileAtomic(join(folder, remoteCheckpointFile), `${JSON.stringify(checkpoint, null, 2)}\n`);
}

/** Reads it, of whatever model it is. Throws `CheckpointError`, `FileError`. */
export async function readRemoteCheckpoint(folder: string): Promise<RemoteCheckpoint> {
  const path = join(folder, remoteCheckpointFile);
  if (!(await exists(path)))
    throw new CheckpointError(
      `${folder} has no ${remoteCheckpointFile}, so that it is no checkpoint of an engine elsewhere; use one of this run, or the embedded engine`,
    );
  const parsed = schema.safeParse(await readJson(path));
  if (parsed.success) return parsed.data;
  throw new CheckpointError(`${path} is damaged: ${z.prettifyError(parsed.error)}`);
}

/** Reads it; of another model it is refused. Throws `CheckpointError`, `FileError`. */
export async function readCheckpoint(
  folder: string,
  model: Pick<RemoteCheckpoint, "baseModel" | "rank">,
): Promise<RemoteCheckpoint> {
  const saved = await readRemoteCheckpoint(folder);
  for (const field of ["baseModel", "rank"] as const)
    if (saved[field] !== model[field])
      throw new CheckpointError(
        `${join(folder, remoteCheckpointFile)} is of another model: its ${field} is ${saved[field]}, the engine's ${model[field]}; use the recipe it was made with`,
      );
  return saved;
}

/**
 * Who a run folder is: its place, with its number and its birth on the disk. A copy, also one in the same place on another machine,
 * is somebody else, whatever files it holds. Throws `FileError`.
 */
export async function runIdentity(folder: string): Promise<string> {
  try {
    const { ino, birthtimeNs } = await stat(folder, { bigint: true });
    return sha256(`${await realpath(folder)} ${ino} ${birthtimeNs}`);
  } catch (cause) {
    throw fileError(`cannot read ${folder}`, cause);
  }
}

/**
 * Removes from the server what the checkpoint in `folder` keeps there, if it lies at this server and the run in the folder `run`
 * saved it: that of another run, such as the one this is a copy of, may be needed there. Throws `CheckpointError`, `FileError`.
 */
export async function discardOwn(
  connection: Connection,
  folder: string,
  run: string | undefined,
): Promise<void> {
  if (run === undefined || !(await isRemoteCheckpoint(folder))) return;
  const saved = await readRemoteCheckpoint(folder);
  if (saved.url === connection.url && saved.run === (await runIdentity(run)))
    await removeOnServer(connection, saved.path);
}

/**
 * Removes weights from the server, where it can: a disk that fills with checkpoints that were given up here ends a long run. That
 * some stay behind is no reason to end it.
 */
export async function removeOnServer(connection: Connection, path: string): Promise<void> {
  const place = /^tinker:\/\/([\w-]+)\/(weights|sampler_weights)\/([\w-]+)$/.exec(path);
  if (!connection.profile.removesCheckpoints || place === null) return;
  const [, model, kind, name] = place;
  const call = {
    method: "DELETE",
    path: `training_runs/${model}/checkpoints/${kind}/${name}`,
    repeat: "always",
  } as const;
  await connection.attempt(call).catch(() => undefined);
}

/** Asks the server whether it still has the weights, and of this model. Throws `CheckpointError`. */
export async function requireOnServer(
  connection: Connection,
  folder: string,
  { path, rank }: RemoteCheckpoint,
): Promise<void> {
  let answer: unknown;
  try {
    answer = await connection.call({ path: "weights_info", body: { tinker_path: path }, repeat: "always" });
  } catch (error) {
    if (!(error instanceof EngineError) || !["gone", "rejected"].includes(error.kind)) throw error;
    throw new CheckpointError(
      `${folder} holds ${path}, which ${connection.url} does not have: ${error.message}; start the server with the folder of checkpoints it had`,
      { cause: error },
    );
  }
  const info = readAnswer(connection, "weights_info", answer);
  const there = info.is_lora ? (info.lora_rank ?? rank) : 0;
  if (there !== rank)
    throw new CheckpointError(`${path} has adapters of rank ${there} on the server, ${rank} was expected`);
}
