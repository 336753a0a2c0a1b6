/**
 * Checkpoints of models on disk: `MODEL/weights/NAME` with the optimiser's state, `MODEL/sampler_weights/NAME` without. Each is
 * a folder that appears whole, with what it is of in `checkpoint.json`; its path for clients is `tinker://MODEL/weights/NAME`.
 */
import { readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { createFolderAtomic, exists, fileError, makeFolder, writeFileAtomic } from "../../shared/files.ts";
import { HttpError } from "../http-error.ts";

export const checkpointKinds = ["weights", "sampler_weights"] as const;
export type CheckpointKind = (typeof checkpointKinds)[number];

/** Which checkpoint it is. */
export interface CheckpointName {
  readonly model: string;
  readonly kind: CheckpointKind;
  readonly name: string;
}

const shapeSchema = z.object({
  rank: z.int(),
  alpha: z.number(),
  trainsAttention: z.boolean(),
  trainsFeedForward: z.boolean(),
  seed: z.number(),
});

const factsSchema = z.object({
  base_model: z.string(),
  shape: shapeSchema,
  /** ISO 8601. */
  time: z.string(),
  user_metadata: z.record(z.string(), z.unknown()).nullish(),
});
export type CheckpointFacts = z.infer<typeof factsSchema>;

export interface StoredCheckpoint extends CheckpointName {
  readonly facts: CheckpointFacts;
  readonly bytes: number;
}

const factsFile = "checkpoint.json";
const pathPattern = /^tinker:\/\/([A-Za-z0-9_-]+)\/(weights|sampler_weights)\/([A-Za-z0-9_-]+)$/;

export function tinkerPath({ model, kind, name }: CheckpointName): string {
  return `tinker://${model}/${kind}/${name}`;
}

/** Throws `HttpError` (400) for a path of another form. */
export function parseTinkerPath(path: string): CheckpointName {
  const match = pathPattern.exec(path);
  if (match) return { model: match[1] as string, kind: match[2] as CheckpointKind, name: match[3] as string };
  throw new HttpError(400, {
    expected: "a path such as tinker://MODEL/weights/NAME or tinker://MODEL/sampler_weights/NAME",
    got: JSON.stringify(path.slice(0, 120)),
    advice: "use a path that save_weights or save_weights_for_sampler gave",
  });
}

export class Checkpoints {
  readonly #folder: string;
  readonly #beingWritten = new Set<string>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Where its files lie. */
  folderOf({ model, kind, name }: CheckpointName): string {
    return join(this.#folder, model, kind, name);
  }

  /**
   * Keeps a name for who is about to write it, until the function that is returned is called. Throws `HttpError` (400) where
   * it is taken, unless it may be overwritten.
   */
  async reserve(checkpoint: CheckpointName, mayOverwrite: boolean): Promise<() => void> {
    const path = tinkerPath(checkpoint);
    const isThere = await exists(this.folderOf(checkpoint));
    if (this.#beingWritten.has(path) || (isThere && !mayOverwrite))
      // Not 409, which the official client sends again for five minutes.
      throw new HttpError(400, {
        expected: "a new name for a checkpoint",
        got: `${path}, which exists`,
        advice: "choose another name, or save_weights with overwrite",
      });
    this.#beingWritten.add(path);
    let isHeld = true;
    return () => {
      if (isHeld) this.#beingWritten.delete(path);
      isHeld = false;
    };
  }

  /** Writes a reserved checkpoint whole; one that was there is replaced. Throws `FileError`, or what `fill` throws. */
  async write(
    checkpoint: CheckpointName,
    facts: CheckpointFacts,
    fill: (folder: string) => Promise<void>,
  ): Promise<void> {
    const folder = this.folderOf(checkpoint);
    const old = `${folder}.replaced`;
    if (await exists(folder)) await rename(folder, old);
    await createFolderAtomic(folder, async (temporary) => {
      await fill(temporary);
      await writeFileAtomic(join(temporary, factsFile), `${JSON.stringify(facts, null, 2)}\n`);
    });
    await rm(old, { recursive: true, force: true });
  }

  /** Throws `HttpError`: 404 where it is not there, 425 while it is being written. */
  async find(checkpoint: CheckpointName): Promise<StoredCheckpoint> {
    const folder = this.folderOf(checkpoint);
    if (this.#beingWritten.has(tinkerPath(checkpoint)))
      throw new HttpError(
        425,
        {
          expected: "a checkpoint that is written",
          got: `${tinkerPath(checkpoint)}, which is being written`,
          advice: "wait for the answer of the call that saves it",
        },
        { "retry-after": "1" },
      );
    const facts = await readFacts(folder);
    if (facts === undefined) throw unknownCheckpoint(tinkerPath(checkpoint));
    return { ...checkpoint, facts, bytes: await bytesOf(folder) };
  }

  /** Throws as `find`. */
  async remove(checkpoint: CheckpointName): Promise<void> {
    await this.find(checkpoint);
    await rm(this.folderOf(checkpoint), { recursive: true });
  }

  /** All of one model, or of all models, oldest first. */
  async list(model?: string): Promise<StoredCheckpoint[]> {
    const models = model === undefined ? await namesIn(this.#folder) : [model];
    const found: StoredCheckpoint[] = [];
    for (const owner of models)
      for (const kind of checkpointKinds)
        for (const name of await namesIn(join(this.#folder, owner, kind))) {
          const folder = this.folderOf({ model: owner, kind, name });
          const facts = /^[\w-]+$/.test(name) ? await readFacts(folder) : undefined;
          if (facts !== undefined)
            found.push({ model: owner, kind, name, facts, bytes: await bytesOf(folder) });
        }
    return found.sort((a, b) => (a.facts.time < b.facts.time ? -1 : a.facts.time > b.facts.time ? 1 : 0));
  }

  async create(): Promise<void> {
    await makeFolder(this.#folder);
  }
}

export function unknownCheckpoint(path: string): HttpError {
  return new HttpError(404, {
    expected: "a checkpoint that this server has",
    got: path.slice(0, 200),
    advice: "see GET /api/v1/checkpoints",
  });
}

async function readFacts(folder: string): Promise<CheckpointFacts | undefined> {
  const path = join(folder, factsFile);
  if (!(await exists(path))) return undefined;
  try {
    return factsSchema.parse(JSON.parse(await readFile(path, "utf8")));
  } catch (cause) {
    if (cause instanceof SyntaxError || cause instanceof z.ZodError) return undefined;
    throw fileError(`cannot read ${path}`, cause);
  }
}

async function namesIn(folder: string): Promise<string[]> {
  return (await exists(folder)) ? (await readdir(folder)).sort() : [];
}

async function bytesOf(folder: string): Promise<number> {
  let bytes = 0;
  for (const name of await readdir(folder)) bytes += (await stat(join(folder, name))).size;
  return bytes;
}
