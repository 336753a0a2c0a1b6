/**
 * A request body as JSON, within limits: of a body that is too large nothing more is kept once that is known, by its
 * announced length or by counting; whoever has the socket discards the rest (`drain.ts`). All bodies that are held at
 * one time share one budget; what is announced and does not come takes nothing of it. The content type is not looked
 * at, since `curl -d` and some clients send a wrong one.
 */
import type { IncomingMessage } from "node:http";
import { sha256 } from "../shared/hash.ts";
import type { Body } from "./fields.ts";
import { clientGone, describe, HttpError } from "./http-error.ts";
import { incomingOf } from "./incoming.ts";

/** Bytes of bodies that are held at one time. */
export class ByteBudget {
  readonly #most: number;
  #taken = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** Throws `HttpError` (429) when the bytes are not there. */
  take(bytes: number): void {
    if (this.#taken + bytes > this.#most)
      throw new HttpError(
        429,
        {
          expected: `request bodies of at most ${this.#most} bytes at one time`,
          got: `${this.#taken + bytes}`,
          advice: "send fewer calls at one time, or again a little later",
        },
        { "retry-after": "1" },
      );
    this.#taken += bytes;
  }

  giveBack(bytes: number): void {
    this.#taken -= bytes;
  }
}

/** A body and how many bytes of the budget it holds until it is given back. */
export interface HeldBody {
  readonly body: Body;
  readonly bytes: number;
  /** SHA-256 of the bytes, where it was asked for. */
  readonly hash?: string;
}

export interface ReadBodyOptions {
  readonly most: number;
  readonly budget: ByteBudget;
  readonly signal: AbortSignal;
  readonly wantsHash?: boolean;
}

/** Reads an object. Throws `HttpError` (400, 413, 415, 422, 429), and the signal's reason when it aborts. */
export async function readBody(request: Request, options: ReadBodyOptions): Promise<HeldBody> {
  const encoding = request.headers.get("content-encoding") ?? "identity";
  if (encoding !== "identity")
    throw new HttpError(415, {
      expected: "a body without content encoding",
      got: encoding.slice(0, 40),
      advice: "send the JSON as it is",
    });
  const bytes = await readBytes(request, options);
  try {
    const body = parseObject(bytes);
    return { body, bytes: bytes.byteLength, ...(options.wantsHash && { hash: sha256(bytes) }) };
  } catch (error) {
    options.budget.giveBack(bytes.byteLength);
    throw error;
  }
}

async function readBytes(request: Request, { most, budget, signal }: ReadBodyOptions): Promise<Uint8Array> {
  const announced = Number(request.headers.get("content-length") ?? 0);
  if (announced > most) throw tooLarge(most, `${announced} bytes`);
  const pieces: Uint8Array[] = [];
  let held = 0;
  const take = (piece: Uint8Array): void => {
    const counted = held + piece.byteLength;
    if (counted > most) throw tooLarge(most, `at least ${counted} bytes`);
    budget.take(piece.byteLength);
    held = counted;
    pieces.push(piece);
  };
  try {
    const message = incomingOf(request);
    await (message === undefined ? readStream(request, take, signal) : readMessage(message, take, signal));
    return pieces.length === 1 ? (pieces[0] as Uint8Array) : Buffer.concat(pieces);
  } catch (error) {
    budget.giveBack(held);
    throw error;
  }
}

type Take = (piece: Uint8Array) => void;

/** Reads to the end or until `take` throws; the message is then left as it is, for others to discard the rest. */
function readMessage(message: IncomingMessage, take: Take, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (settle: () => void): void => {
      message.off("data", onData).off("end", onEnd).off("error", onClose).off("close", onClose);
      signal.removeEventListener("abort", onAbort);
      settle();
    };
    const give = (error: unknown): void => {
      message.pause();
      stop(() => reject(error));
    };
    const onData = (piece: Uint8Array): void => {
      try {
        take(piece);
      } catch (error) {
        give(error);
      }
    };
    const onEnd = (): void => stop(resolve);
    const onClose = (): void => give(clientGone());
    const onAbort = (): void => give(signal.reason);
    if (signal.aborted) return reject(signal.reason);
    if (message.destroyed && !message.readableEnded) return reject(clientGone());
    message.on("data", onData).on("end", onEnd).on("error", onClose).on("close", onClose);
    signal.addEventListener("abort", onAbort, { once: true });
  });
}

async function readStream(request: Request, take: Take, signal: AbortSignal): Promise<void> {
  const reader = request.body?.getReader();
  if (reader === undefined) return;
  try {
    for (;;) {
      const { done, value } = await orAborted(reader.read(), signal);
      if (done) return;
      take(value);
    }
  } catch (error) {
    reader.cancel().catch(() => undefined); // the rest is of no use, and neither is a failure to stop it
    throw error;
  }
}

/** `promise`, or the signal's reason as soon as it aborts; what the promise brings later is dropped. */
export function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}

const decoder = new TextDecoder("utf-8", { fatal: true });

function parseObject(bytes: Uint8Array): Body {
  let value: unknown;
  try {
    value = JSON.parse(decoder.decode(bytes));
  } catch (error) {
    const problem = error instanceof SyntaxError ? error.message : "bytes that are not UTF-8";
    const got = bytes.byteLength === 0 ? "an empty body" : problem.slice(0, 200);
    throw new HttpError(400, { expected: "a JSON object", got, advice: "send JSON in UTF-8" });
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Body;
  throw new HttpError(422, {
    expected: "a JSON object",
    got: describe(value),
    advice: 'send an object such as {"queries": ["…"], "topk": 3}',
  });
}

function tooLarge(most: number, got: string): HttpError {
  return new HttpError(413, {
    expected: `a body of at most ${most} bytes`,
    got,
    advice: "send several calls, or raise the server's limit",
  });
}
