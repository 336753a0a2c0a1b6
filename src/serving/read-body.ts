/**
 * A request body as JSON, within limits: of a body that is too large nothing more is kept once that is known, by its
 * announced length or by counting, but what is somewhat too large is read to its end and discarded, since clients such
 * as Python's urllib see no answer while they write. All bodies that are held at one time share one budget; what is
 * announced and does not come takes nothing of it. The content type is not looked at, since `curl -d` and some clients
 * send a wrong one.
 */
import type { Body } from "./fields.ts";
import { describe, HttpError } from "./http-error.ts";

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
}

export interface ReadBodyOptions {
  readonly most: number;
  readonly budget: ByteBudget;
  readonly signal: AbortSignal;
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
    return { body: parseObject(bytes), bytes: bytes.byteLength };
  } catch (error) {
    options.budget.giveBack(bytes.byteLength);
    throw error;
  }
}

async function readBytes(request: Request, options: ReadBodyOptions): Promise<Uint8Array> {
  const { most, budget, signal } = options;
  const announced = Number(request.headers.get("content-length") ?? 0);
  const chunks: Uint8Array[] = [];
  let held = 0;
  const reader = request.body?.getReader();
  try {
    if (announced > most) {
      if (announced <= DISCARDED * most) await discard(reader, DISCARDED * most, signal);
      throw tooLarge(most, `${announced} bytes`);
    }
    while (reader !== undefined) {
      const { done, value } = await orAborted(reader.read(), signal);
      if (done) break;
      if (held + value.byteLength > most) {
        const counted = held + value.byteLength;
        budget.giveBack(held);
        chunks.length = held = 0;
        await discard(reader, DISCARDED * most - counted, signal);
        throw tooLarge(most, `at least ${counted} bytes`);
      }
      budget.take(value.byteLength);
      held += value.byteLength;
      chunks.push(value);
    }
    return Buffer.concat(chunks);
  } catch (error) {
    budget.giveBack(held);
    reader?.cancel().catch(() => undefined); // the rest is of no use, and neither is a failure to stop it
    throw error;
  }
}

/** How many times the limit a body may have to be read to its end all the same. */
const DISCARDED = 8;
/** How long that may take. */
const DISCARD_MS = 10_000;

/** Reads on until the end, `most` bytes, some seconds or the signal, and keeps nothing. Does not throw. */
async function discard(
  reader: ReadableStreamDefaultReader<Uint8Array> | undefined,
  most: number,
  signal: AbortSignal,
): Promise<void> {
  if (reader === undefined) return;
  const patience = new AbortController();
  const timer = setTimeout(() => patience.abort(), DISCARD_MS);
  const either = AbortSignal.any([signal, patience.signal]);
  try {
    for (let count = 0; count <= most; ) {
      const { done, value } = await orAborted(reader.read(), either);
      if (done) return;
      count += value.byteLength;
    }
  } catch {
    // What follows is the refusal, however the body ended.
  } finally {
    clearTimeout(timer);
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
