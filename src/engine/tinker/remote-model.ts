/**
 * One model on a Tinker server. Its training calls are posted one at a time and in order, each awaiting its acknowledgement,
 * since servers carry them out as they arrive; their results are waited for side by side. `seq_id` counts them, and the same
 * number goes with every attempt at one call, so that a server which looks at it runs none twice.
 */
import { EngineError } from "../../errors.ts";
import { readAnswer } from "./answers.ts";
import type { Connection } from "./connection.ts";
import { retrieve } from "./futures.ts";
import {
  type AnswerPath,
  pendingSchema,
  type RequestPath,
  type WireAnswer,
  type WireRequest,
} from "./wire.ts";

/** Training calls of a model. */
export type TrainingPath = Extract<
  RequestPath & AnswerPath,
  "forward" | "forward_backward" | "optim_step" | "save_weights" | "save_weights_for_sampler" | "load_weights"
>;
type Body<Path extends TrainingPath> = Omit<WireRequest<Path>, "model_id" | "seq_id" | "type">;

/** Carried out twice these change what is trained; the others only cost time. */
const changing: ReadonlySet<TrainingPath> = new Set(["forward_backward", "optim_step"]);

export class RemoteModel {
  readonly id: string;
  readonly #connection: Connection;
  #seq = 0;
  #tail: Promise<unknown> = Promise.resolve();
  /** Whether a gradient may lie in the model's slot. */
  #holdsGradients: boolean;

  constructor(connection: Connection, id: string, { mayHoldGradients = false } = {}) {
    this.#connection = connection;
    this.id = id;
    this.#holdsGradients = mayHoldGradients;
  }

  get connection(): Connection {
    return this.#connection;
  }

  /** Makes a model by `body`, that of create_model. */
  static async create(
    connection: Connection,
    { body, key, signal }: { readonly body: object; readonly key: string; readonly signal: AbortSignal },
  ): Promise<RemoteModel> {
    const path = "create_model";
    const answer = await connection.call({ path, body, repeat: "always", idempotencyKey: key, signal });
    const { request_id } = readPending(connection, path, answer);
    const result = await retrieve(connection, { path, requestId: request_id, signal });
    return new RemoteModel(connection, readAnswer(connection, path, result).model_id);
  }

  /** Posts a call and waits for its result. Throws `EngineError`, or the signal's reason. */
  async run<Path extends TrainingPath>(
    path: Path,
    body: Body<Path>,
    signal?: AbortSignal,
  ): Promise<WireAnswer<Path>> {
    const connection = this.#connection;
    const posted = await this.post(path, body, signal);
    try {
      return readAnswer(
        connection,
        path,
        await retrieve(connection, { path, requestId: posted.requestId, signal }),
      );
    } catch (error) {
      if (!(error instanceof EngineError) || error.kind !== "gone" || !posted.canRepeat) throw error;
      // The result has expired; the server looks its number up, or carries out what does no harm.
      connection.count("retries");
      const requestId = await posted.again();
      return readAnswer(connection, path, await retrieve(connection, { path, requestId, signal }));
    }
  }

  /** Posts a call after those before it; resolves when it was acknowledged. */
  async post<Path extends TrainingPath>(path: Path, body: Body<Path>, signal?: AbortSignal): Promise<Posted> {
    const seqId = ++this.#seq;
    if (path === "forward_backward") this.#holdsGradients = true;
    const connection = this.#connection;
    const canRepeat = !changing.has(path) || connection.profile.runsDuplicatesOnce;
    const call = {
      path,
      body: { model_id: this.id, seq_id: seqId, ...body },
      repeat: canRepeat ? "always" : "unserved",
      idempotencyKey: `${this.id}-${seqId}`,
      signal,
    } as const;
    const send = async (): Promise<string> =>
      readPending(connection, path, await connection.call(call)).request_id;
    const sent = this.#tail.then(send, send);
    this.#tail = sent;
    const requestId = await sent;
    if (path === "optim_step") this.#holdsGradients = false;
    return { requestId, canRepeat, again: send };
  }

  /** Takes it out of the server's memory; a model that is gone already is no error. */
  async unload(signal: AbortSignal): Promise<void> {
    const connection = this.#connection;
    if (this.#holdsGradients && connection.profile.leavesGradients) await this.#forgetGradients(signal);
    const path = "unload_model";
    const body = { model_id: this.id, type: path };
    try {
      const answer = await connection.call({ path, body, repeat: "always", signal });
      await retrieve(connection, {
        path,
        requestId: readPending(connection, path, answer).request_id,
        signal,
      });
    } catch (error) {
      if (!(error instanceof EngineError) || !["gone", "rejected"].includes(error.kind)) throw error;
    }
  }

  /** A step of length 0, after which the slot holds no gradient that the next model in it would get. */
  async #forgetGradients(signal: AbortSignal): Promise<void> {
    await this.run("optim_step", { adam_params: { learning_rate: 0 } }, signal).catch((error: unknown) => {
      if (!(error instanceof EngineError)) throw error;
    });
  }
}

interface Posted {
  readonly requestId: string;
  /** Whether the call may be posted again when its result is gone. */
  readonly canRepeat: boolean;
  /** Posts it again, with the same number. */
  readonly again: () => Promise<string>;
}

function readPending(connection: Connection, path: string, answer: unknown): { readonly request_id: string } {
  const parsed = pendingSchema.safeParse(answer);
  if (parsed.success) return parsed.data;
  throw connection.error(
    { path },
    "expected an acknowledgement with a request_id; check engine.profile",
    "malformed",
  );
}
