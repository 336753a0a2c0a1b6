/**
 * A session on a Tinker server with the models that were made in it. A heartbeat on its own timer keeps it: SkyRL unloads
 * the models of a session that was silent for five minutes. What is left after a crash is unloaded at the next start, if a
 * note beside the run says what it was.
 */
import { randomUUID } from "node:crypto";
import { readFile, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { z } from "zod";
import { exists, writeFileAtomic } from "../../shared/files.ts";
import { readAnswer } from "./answers.ts";
import type { Connection } from "./connection.ts";
import { RemoteModel } from "./remote-model.ts";

const heartbeatMs = 10_000;
/** A server that is gone must not hold up the end of a run. */
const closingMs = 5_000;

export interface SessionOptions {
  /** Of fresh adapters. */
  readonly seed: number;
  /** File that names the models that must be unloaded after a crash; absent: none is written. */
  readonly note?: string | undefined;
}

export interface ModelWanted {
  readonly baseModel: string;
  readonly rank: number;
}

const noteSchema = z.strictObject({ url: z.string(), models: z.array(z.string()) });

export class Session {
  readonly id: string;
  readonly connection: Connection;
  readonly #options: SessionOptions;
  readonly #models = new Map<string, RemoteModel>();
  readonly #timer: NodeJS.Timeout;
  readonly #ending = new AbortController();
  #modelCount = 0;
  #samplerCount = 0;
  #missedBeats = 0;

  private constructor(connection: Connection, id: string, options: SessionOptions) {
    this.connection = connection;
    this.id = id;
    this.#options = options;
    this.#timer = setInterval(() => void this.#beat(), heartbeatMs);
    this.#timer.unref();
  }

  /** Opens a session, after what a crashed run left was unloaded. Throws `EngineError`, or the signal's reason. */
  static async open(connection: Connection, options: SessionOptions, signal?: AbortSignal): Promise<Session> {
    await unloadLeftovers(connection, options.note, signal);
    const body = { tags: ["forager"], user_metadata: null, sdk_version: "forager", type: "create_session" };
    const call = {
      path: "create_session",
      body,
      repeat: "always",
      idempotencyKey: randomUUID(),
      signal,
    } as const;
    const { session_id } = readAnswer(connection, "create_session", await connection.call(call));
    return new Session(connection, session_id, options);
  }

  /** Heartbeats in a row without an answer. */
  get missedBeats(): number {
    return this.#missedBeats;
  }

  /** Aborts when the session is closed. */
  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  /** A fresh model. Throws `EngineError`, such as for a rank that the server does not allow. */
  async createModel({ baseModel, rank }: ModelWanted): Promise<RemoteModel> {
    const { connection } = this;
    const number = this.#modelCount++;
    const body = {
      session_id: this.id,
      model_seq_id: number,
      base_model: baseModel,
      lora_config: {
        rank,
        seed: this.#options.seed,
        train_attn: true,
        train_mlp: true,
        train_unembed: rank === 0,
      },
      type: "create_model",
    };
    const made = await RemoteModel.create(connection, {
      body,
      key: `${this.id}-model-${number}`,
      signal: this.signal,
    });
    this.#models.set(made.id, made);
    await this.#writeNote();
    return made;
  }

  /** Takes a model out of the server's memory; one that is gone already is no error. */
  async unload(model: RemoteModel, signal: AbortSignal = this.signal): Promise<void> {
    await model.unload(signal);
    this.#models.delete(model.id);
    await this.#writeNote();
  }

  /** A number for the next sampling session. */
  nextSampler(): number {
    return this.#samplerCount++;
  }

  /** Unloads everything, as far as the server answers. */
  async close(): Promise<void> {
    if (this.#ending.signal.aborted) return;
    clearInterval(this.#timer);
    const limit = AbortSignal.timeout(closingMs);
    const models = [...this.#models.values()];
    const outcomes = await Promise.allSettled(models.map((model) => this.unload(model, limit)));
    this.#ending.abort(new Error("the engine was closed"));
    const { note } = this.#options;
    if (note !== undefined && outcomes.every(({ status }) => status === "fulfilled"))
      await rm(note, { force: true });
  }

  /** Names the models in the note, once its folder is there. */
  async #writeNote(): Promise<void> {
    const { note } = this.#options;
    if (note === undefined || !(await exists(dirname(note)))) return;
    const content: z.infer<typeof noteSchema> = {
      url: this.connection.url,
      models: [...this.#models.keys()],
    };
    await writeFileAtomic(note, `${JSON.stringify(content, null, 2)}\n`);
  }

  /** The note is written again when the run folder has appeared meanwhile. */
  async remember(): Promise<void> {
    const { note } = this.#options;
    if (note !== undefined && !(await exists(note))) await this.#writeNote();
  }

  async #beat(): Promise<void> {
    const body = { session_id: this.id, type: "session_heartbeat" };
    const call = {
      path: "session_heartbeat",
      body,
      repeat: "always",
      timeoutMs: heartbeatMs,
      signal: this.signal,
    } as const;
    const outcome = await this.connection.attempt(call).catch(() => ({ failure: "" }));
    this.#missedBeats = "status" in outcome && outcome.status < 300 ? 0 : this.#missedBeats + 1;
  }
}

/** Unloads the models that a note names, where they were on this server; what it does not know any more is no error. */
async function unloadLeftovers(
  connection: Connection,
  note: string | undefined,
  signal: AbortSignal | undefined,
): Promise<void> {
  if (note === undefined || !(await exists(note))) return;
  const parsed = noteSchema.safeParse(await readNote(note));
  if (parsed.success && parsed.data.url === connection.url)
    for (const id of parsed.data.models) {
      const model = new RemoteModel(connection, id, { mayHoldGradients: true });
      await model.unload(signal ?? AbortSignal.timeout(closingMs)).catch((error: unknown) => {
        signal?.throwIfAborted();
        if ((error as { readonly kind?: unknown }).kind === "unreachable") throw error;
      });
    }
  await rm(note, { force: true });
}

/** A note that is damaged names nothing; servers unload what is silent by themselves. */
async function readNote(path: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(path, "utf8"));
  } catch {
    return undefined;
  }
}
