/**
 * The part of `fetch` that calls of servers need, over Node's HTTP client with persistent connections (RFC 9112, 9.3): a small
 * call costs a third of the processor time that the global `fetch` takes, which counts where thousands are made a second.
 * Redirects are never followed, and there are no cookies, caches or forbidden ports. Nothing compressed is asked for; what proxies
 * compress all the same is decoded.
 */
import { Agent, type ClientRequest, type IncomingMessage, request as plainRequest } from "node:http";
import { Agent as SecureAgent, request as secureRequest } from "node:https";
import type { Socket } from "node:net";
import type { Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import {
  type BodyPart,
  connectTimeout,
  type Fetch,
  type FetchInit,
  type FetchReply,
  UnusableReplyError,
} from "./network-world.ts";

/** An idle connection is closed here before servers close theirs (uvicorn after 5 s), which could break a request on its way. */
const idleMs = 4_000;
const connectMs = 10_000;
const mostTargets = 1_000;

/**
 * A `fetch` with connections of its own, which close when they were idle for some seconds. Of a compressed reply, whose few bytes
 * may unpack to many, it reads `mostUnpackedBytes`. Rejects with the signal's reason, or an error, mostly with a `code`.
 */
export function persistentFetch({ mostUnpackedBytes = 2 ** 30 } = {}): Fetch {
  const options = { keepAlive: true, maxFreeSockets: 4096, timeout: idleMs };
  const plain = { agent: new Agent(options), send: plainRequest };
  const secure = { agent: new SecureAgent(options), send: secureRequest };
  const targets = new Map<string, Target>();
  const targetOf = (address: string): Target => {
    const known = targets.get(address);
    if (known !== undefined) return known;
    const url = new URL(address);
    const target = { ...partsOf(url), ...(url.protocol === "https:" ? secure : plain) };
    if (targets.size < mostTargets) targets.set(address, target);
    return target;
  };
  return (url, init) => ask(targetOf(String(url)), init, mostUnpackedBytes);
}

interface Target {
  readonly host: string;
  readonly port: string | undefined;
  readonly path: string;
  readonly agent: Agent;
  readonly send: typeof plainRequest;
}

function partsOf({ hostname, port, pathname, search }: URL): Pick<Target, "host" | "port" | "path"> {
  const host = hostname.startsWith("[") ? hostname.slice(1, -1) : hostname;
  return { host, port: port === "" ? undefined : port, path: pathname + search };
}

function ask(
  { send, ...target }: Target,
  { method, headers, body, signal }: FetchInit,
  mostUnpackedBytes: number,
): Promise<FetchReply> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    // Some services refuse who does not say what it is.
    const request = send({
      ...target,
      method: method ?? "GET",
      headers: { "user-agent": "forager", "accept-encoding": "identity", ...headers },
    });
    const abort = (): void => {
      request.destroy(signal?.reason);
    };
    signal?.addEventListener("abort", abort, { once: true });
    // Listens to the end: an abort may come while the reply is read.
    request.once("close", () => signal?.removeEventListener("abort", abort));
    request.on("error", (error) => reject(signal?.aborted ? signal.reason : error));
    request.once("response", (message) => {
      try {
        resolve(new Reply(message, decoded(message, { mostUnpackedBytes, signal }), signal));
      } catch (error) {
        reject(error);
        request.destroy();
      }
    });
    limitConnecting(request);
    request.end(body);
  });
}

function limitConnecting(request: ClientRequest): void {
  request.once("socket", (socket: Socket) => {
    if (!socket.connecting) return;
    const late = (): void => {
      const error = new Error(`no connection within ${connectMs / 1000} s`);
      request.destroy(Object.assign(error, { code: connectTimeout }));
    };
    const timer = setTimeout(late, connectMs);
    const stop = (): void => clearTimeout(timer);
    socket.once("connect", stop);
    request.once("close", stop);
  });
}

const decoders = new Map<string, () => Transform>([
  ["gzip", createGunzip],
  ["x-gzip", createGunzip],
  ["deflate", createInflate],
  ["br", createBrotliDecompress],
]);

/** The body of `message` without its content coding (RFC 9110, 8.4). Throws for one that is not known. */
function decoded(
  message: IncomingMessage,
  {
    mostUnpackedBytes,
    signal,
  }: { readonly mostUnpackedBytes: number; readonly signal: AbortSignal | undefined },
): Readable {
  const coding = (message.headers["content-encoding"] ?? "identity").trim().toLowerCase();
  const hasNoBody = message.statusCode === 204 || message.headers["content-length"] === "0";
  if (coding === "identity" || coding === "" || hasNoBody) return message;
  const decoder = decoders.get(coding);
  if (decoder === undefined)
    throw new UnusableReplyError(
      `the reply is compressed with ${coding}, expected none, gzip, deflate or br; switch that off at the server or the proxy before it`,
    );
  const unpacking = decoder();
  let bytes = 0;
  unpacking.on("data", (part: Uint8Array) => {
    bytes += part.byteLength;
    if (bytes > mostUnpackedBytes)
      unpacking.destroy(new Error(`the reply has more than ${mostUnpackedBytes} bytes when it is unpacked`));
  });
  // Told by the stream that is returned. The signal: all may have come, and the request be over, long before all is unpacked.
  pipeline(message, unpacking, { ...(signal && { signal }) }).catch(() => undefined);
  return unpacking;
}

interface Waiter {
  readonly resolve: (part: BodyPart) => void;
  readonly reject: (error: unknown) => void;
}

const ended: BodyPart = { done: true };

/** A reply whose body is read once. */
class Reply implements FetchReply {
  readonly status: number;
  readonly ok: boolean;
  readonly headers: { get(name: string): string | null };
  readonly body = { getReader: () => ({ read: () => this.#read() }) };
  readonly #parts: Uint8Array[] = [];
  #waiter: Waiter | undefined;
  #isEnded = false;
  #error: unknown;

  constructor({ statusCode = 0, headers }: IncomingMessage, body: Readable, signal: AbortSignal | undefined) {
    this.status = statusCode;
    this.ok = statusCode >= 200 && statusCode <= 299;
    this.headers = {
      get: (name) => {
        const value = headers[name.toLowerCase()];
        return value === undefined ? null : String(value);
      },
    };
    body.on("data", (part: Uint8Array) => {
      this.#parts.push(part);
      this.#tell();
    });
    body.once("end", () => {
      this.#isEnded = true;
      this.#tell();
    });
    body.on("error", (error) => this.#fail(signal?.aborted ? signal.reason : error));
    body.once("close", () => {
      if (!this.#isEnded) this.#fail(signal?.aborted ? signal.reason : new Error("the reply broke off"));
    });
  }

  async arrayBuffer(): Promise<ArrayBuffer> {
    const parts: Uint8Array[] = [];
    for (let part = await this.#read(); part.value !== undefined; part = await this.#read())
      parts.push(part.value);
    const all = new Uint8Array(parts.reduce((sum, { byteLength }) => sum + byteLength, 0));
    let offset = 0;
    for (const part of parts) {
      all.set(part, offset);
      offset += part.byteLength;
    }
    return all.buffer;
  }

  #read(): Promise<BodyPart> {
    return new Promise((resolve, reject) => {
      this.#waiter = { resolve, reject };
      this.#tell();
    });
  }

  #fail(error: unknown): void {
    this.#error ??= error;
    this.#tell();
  }

  #tell(): void {
    const waiter = this.#waiter;
    if (waiter === undefined) return;
    const value = this.#parts.shift();
    if (value === undefined && this.#error === undefined && !this.#isEnded) return;
    this.#waiter = undefined;
    if (value !== undefined) waiter.resolve({ done: false, value });
    else if (this.#isEnded) waiter.resolve(ended);
    else waiter.reject(this.#error);
  }
}
