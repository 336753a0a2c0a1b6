/**
 * An app on a socket, and its end: no new connections, running requests finish, and only then (or when the time of
 * grace is over) are connections closed. Connections are kept alive for 75 s, longer than the usual pools of clients
 * keep theirs, so that none is closed under a request that is on its way.
 */
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { HttpBindings } from "@hono/node-server";
import { UsageError } from "../errors.ts";
import { Connections } from "./connections.ts";
import { type DrainLimits, defaultDrain, drain } from "./drain.ts";
import { HttpError } from "./http-error.ts";
import { rememberIncoming } from "./incoming.ts";
import { errorResponse, ourFailure } from "./pipeline.ts";

export interface ServerOptions {
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  /** How long running requests may take after `close`; default 30 s. */
  readonly graceMs?: number;
  /** How long a client may take nothing of an answer that is ready, which is held for it; default 60 s. */
  readonly stalledMs?: number;
  /** How much is read of a request that was answered before its end; default 128 MiB and 10 s. */
  readonly drain?: DrainLimits;
}

export interface RunningServer {
  /** Where to call it from this machine. */
  readonly url: string;
  readonly port: number;
  /** Ends the server; resolves when the last connection is closed. Further calls wait for the same end. */
  close(): Promise<void>;
}

/** What an app is to a server, such as `fetch` of Hono. */
export type Fetch = (request: Request) => Response | Promise<Response>;

/** Listens. Throws `UsageError` when the address cannot be had. */
export async function startServer(fetch: Fetch, options: ServerOptions): Promise<RunningServer> {
  const { getRequestListener, RequestError } = await import("@hono/node-server");
  const drainLimits = options.drain ?? defaultDrain;
  const answer = (request: Request, { incoming }: HttpBindings): Response | Promise<Response> => {
    rememberIncoming(request, incoming);
    return fetch(request);
  };
  const listener = getRequestListener((request, env) => answer(request, env as HttpBindings), {
    hostname: "localhost", // of HTTP/1.0, which names none: load balancers ask for the health of a server that way
    errorHandler: (error) => (error instanceof RequestError ? badRequest() : ourFailure()),
    autoCleanupIncoming: false, // it closes the connection after half a second, whoever writes
  });
  const connections = new Connections();
  const server = createServer((request, response) => {
    connections.begin(response);
    giveUpStalled(response, options.stalledMs ?? 60_000);
    response.once("finish", () => {
      if (!request.complete) drain(request, drainLimits);
    });
    void listener(request, response);
  });
  server.on("connection", (socket) => connections.add(socket));
  server.keepAliveTimeout = 75_000;
  server.headersTimeout = 80_000;
  await listen(server, options);
  const { port } = server.address() as AddressInfo;
  let end: Promise<void> | undefined;
  return {
    port,
    url: `http://${hostOfUrl(options.host)}:${port}`,
    close: () => {
      end ??= closeGracefully(server, options.graceMs ?? 30_000);
      connections.end();
      return end;
    },
  };
}

/** Closes the connection of a client that stops reading; how long an answer is in the making does not count. */
function giveUpStalled(response: ServerResponse, stalledMs: number): void {
  const { socket } = response.req;
  response.setTimeout(stalledMs, () => {
    if (socket.writableLength > 0) socket.destroy();
    else socket.setTimeout(stalledMs);
  });
}

function listen(server: Server, { host, port }: ServerOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (cause: NodeJS.ErrnoException) => {
      const why = cause.code === "EADDRINUSE" ? "it is taken; choose another one" : cause.message;
      reject(new UsageError(`cannot listen on ${host}, port ${port}: ${why}`, { cause }));
    });
    server.listen({ host, port, backlog: 1024 }, resolve);
  });
}

function closeGracefully(server: Server, graceMs: number): Promise<void> {
  return new Promise((resolve) => {
    const force = setTimeout(() => server.closeAllConnections(), graceMs);
    server.close(() => {
      clearTimeout(force);
      resolve();
    });
  });
}

/** A wildcard address is no address to call; a request from this machine finds the server at its loopback address. */
function hostOfUrl(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  if (host === "::") return "[::1]";
  return host.includes(":") ? `[${host}]` : host;
}

/** For what is no request that an app can be given, such as one with a broken host or path. */
function badRequest(): Response {
  return errorResponse(
    new HttpError(400, {
      expected: "an HTTP/1.1 request with a valid host and path",
      got: "another one",
      advice: "correct its URL",
    }),
  );
}
