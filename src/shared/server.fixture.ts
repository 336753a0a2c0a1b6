/**
 * For tests: a server on 127.0.0.1 that records what it was asked and answers as told, also badly, and a world whose
 * waiting takes no time and is recorded.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";
import type { NetworkWorld } from "./network-world.ts";
import { persistentFetch } from "./persistent-fetch.ts";

export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Parsed when it is JSON. */
  readonly body: unknown;
}

/** What the server does: a JSON value with a status, a raw text, or anything with the response itself. */
export type Answer =
  | { readonly status?: number; readonly json: unknown; readonly headers?: Record<string, string> }
  | { readonly status?: number; readonly text: string; readonly headers?: Record<string, string> }
  | ((response: ServerResponse) => void);

export interface TestServer {
  readonly url: string;
  readonly requests: SeenRequest[];
  /** Most requests that were open at once. */
  mostOpen(): number;
}

/** Listens until the test ends. */
export async function startServer(
  answer: (request: SeenRequest, count: number) => Answer | Promise<Answer>,
): Promise<TestServer> {
  const requests: SeenRequest[] = [];
  let open = 0;
  let most = 0;
  const server = createServer((request, response) => {
    open++;
    most = Math.max(most, open);
    response.on("close", () => open--);
    void readRequest(request)
      .then((seen) => answer(seen, requests.push(seen)))
      .then((answered) => send(response, answered));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, requests, mostOpen: () => most };
}

async function readRequest(request: IncomingMessage): Promise<SeenRequest> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString("utf8");
  const { method = "", url: path = "", headers } = request;
  return { method, path, headers, body: text === "" ? undefined : (JSON.parse(text) as unknown) };
}

function send(response: ServerResponse, answer: Answer): void {
  if (typeof answer === "function") {
    answer(response);
    return;
  }
  response.writeHead(answer.status ?? 200, { "content-type": "application/json", ...answer.headers });
  response.end("text" in answer ? answer.text : JSON.stringify(answer.json));
}

/** Promises a longer reply than it sends, then breaks the connection. */
export function cutOff(text: string): Answer {
  return (response) => {
    response.writeHead(200, { "content-type": "application/json", "content-length": text.length + 100 });
    response.write(text);
    setTimeout(() => response.destroy(), 20);
  };
}

/** A URL at which nothing listens. */
export async function deadUrl(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return `http://127.0.0.1:${port}`;
}

/** Never answers. */
export const silence: Answer = () => undefined;

export interface TestWorld extends NetworkWorld {
  /** What was slept, in milliseconds. */
  readonly waits: number[];
}

const ask = persistentFetch();

/** The real network; time goes on only by sleeping, at once. */
export function testWorld(keys: Readonly<Record<string, string>> = {}): TestWorld {
  const waits: number[] = [];
  let now = Date.UTC(2026, 10, 29);
  return {
    fetch: ask,
    now: () => now,
    sleep: async (ms, signal) => {
      signal?.throwIfAborted();
      waits.push(ms);
      now += ms;
      await new Promise((resolve) => setImmediate(resolve));
      signal?.throwIfAborted();
    },
    random: () => 0.5,
    keys,
    waits,
  };
}
