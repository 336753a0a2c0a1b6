/**
 * An app on a socket, and its end: no new connections, running requests finish, and only then (or when the time of
 * grace is over) are connections closed. Connections are kept alive for 75 s, longer than the usual pools of clients
 * keep theirs, so that none is closed under a request that is on its way.
 */
import { createServer, type Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { HttpBindings } from "@hono/node-server";
import { UsageError } from "../errors.ts";
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
  let isClosing = false;
  const answer = (request: Request, { incoming }: HttpBindings): Response | Promise<Response> => {
    rememberIncoming(request, incoming);
    return fetch(request);
  };
  const listener = getRequestListener((request, env) => answer(request, env as HttpBindings), {
    errorHandler: (error) => (error instanceof RequestError ? badRequest() : ourFailure()),
    autoCleanupIncoming: false, // it closes the connection after half a second, whoever writes
  });
  /** How many requests each connection has open. */
  const connections = new Map<Socket, number>();
  const server = createServer((request, response) => {
    const { socket } = request;
    connections.set(socket, (connections.get(socket) ?? 0) + 1);
    response.once("close", () => {
      const open = (connections.get(socket) ?? 1) - 1;
      if (connections.has(socket)) connections.set(socket, open);
      if (isClosing && open === 0) socket.destroySoon();
    });
    response.once("finish", () => {
      if (!request.complete) drain(request, drainLimits);
    });
    if (isClosing) response.shouldKeepAlive = false;
    void listener(request, response);
  });
  server.on("connection", (socket) => {
    connections.set(socket, 0);
    socket.once("close", () => connections.delete(socket));
  });
  server.keepAliveTimeout = 75_000;
  server.headersTimeout = 80_000;
  await listen(server, options);
  const { port } = server.address() as AddressInfo;
  let end: Promise<void> | undefined;
  return {
    port,
    url: `http://${hostOfUrl(options.host)}:${port}`,
    close: () => {
      isClosing = true;
      end ??= closeGracefully(server, options.graceMs ?? 30_000);
      for (const [socket, open] of connections) if (open === 0) socket.destroySoon();
      return end;
    },
  };
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
