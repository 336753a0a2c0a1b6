/**
 * Serving until told to stop: listens, says so with one JSON line on standard output, with and without `--json`, since
 * scripts wait for it, and ends in good order. Ends with 130 after an interrupt (SIGINT) and with 0 after SIGTERM, the
 * ordinary way to stop a service.
 */
import { ForagerError, InterruptedError, UsageError } from "../../errors.ts";
import type { CommandIo, OptionValues } from "../command.ts";

/** What the command needs of the process beyond `CommandIo`: a key, a line while it runs, and which signal came. */
export type ServeHost = Pick<NodeJS.Process, "env" | "once" | "off"> & {
  readonly stdout: { write(text: string): unknown };
};

/** Options of everything that is served. */
export const serverFlags = {
  port: { type: "integer", value: "N", doc: "Port; 0 takes a free one; default 8000." },
  host: {
    type: "text",
    value: "ADDRESS",
    doc: "Address to listen on; default 127.0.0.1, this machine only.",
  },
  name: {
    type: "text",
    value: "NAME",
    doc: "Name of the index in /v1/NAME/search, or of the base model; default: the folder's.",
  },
  "api-key-env": { type: "text", value: "NAME", doc: "Ask for the key in this environment variable." },
  "max-body-bytes": {
    type: "integer",
    value: "N",
    least: 1,
    doc: "Most bytes of a request; default 16777216 for an index, 67108864 for an engine.",
  },
  timeout: { type: "integer", value: "SECONDS", least: 1, doc: "Most time for a request; default 60." },
} as const;
export type ServerFlags = OptionValues<typeof serverFlags>;

export interface Serving {
  readonly host: ServeHost;
  readonly io: CommandIo;
  readonly options: ServerFlags;
  /** Said when the server is ready. */
  readonly ready: Readonly<Record<string, unknown>>;
  /** When the command began, by `performance.now()`. */
  readonly start: number;
  /** Called when the last request was answered, before the command ends. */
  readonly afterwards?: () => Promise<void>;
}

/** Listens, says so, waits for a signal, and ends in good order. Throws `InterruptedError` after SIGINT. */
export async function serveUntilStopped(
  fetch: (request: Request) => Response | Promise<Response>,
  { host, io, options, ready, start, afterwards }: Serving,
): Promise<{ readonly json: Readonly<Record<string, unknown>> }> {
  const { startServer } = await import("../../serving/start-server.ts");
  const address = options.host ?? "127.0.0.1";
  const stop = waitForStop(host, io.signal);
  const server = await startServer(fetch, { host: address, port: options.port ?? 8000 });
  if (options["api-key-env"] === undefined && !/^(127\.|localhost$|::1$)/.test(address))
    io.note(
      `serving to every machine that reaches ${address}, without a key; --api-key-env NAME asks for one`,
    );
  const seconds = (performance.now() - start) / 1000;
  const line = { url: server.url, port: server.port, ...ready, seconds };
  host.stdout.write(`${JSON.stringify(line)}\n`);
  const signal = await stop;
  await server.close();
  await afterwards?.();
  if (signal === "SIGINT") throw new InterruptedError("stopped; every running request was answered");
  return { json: { url: server.url, stopped: true } };
}

/** Which signal ended the wait; an abort that no signal explains counts as an interrupt. */
function waitForStop(host: ServeHost, signal: AbortSignal): Promise<"SIGINT" | "SIGTERM"> {
  return new Promise((resolve) => {
    const terminate = (): void => resolve("SIGTERM");
    host.once("SIGTERM", terminate);
    const interrupt = (): void => {
      setImmediate(() => {
        host.off("SIGTERM", terminate);
        resolve("SIGINT"); // unless a SIGTERM, which aborts too, was named in the meantime
      });
    };
    if (signal.aborted) interrupt();
    signal.addEventListener("abort", interrupt, { once: true });
  });
}

/** The key that clients must send, from the environment. Throws `UsageError` where the variable is not set. */
export function keyFrom(env: NodeJS.ProcessEnv, name: string | undefined): string | undefined {
  if (name === undefined) return undefined;
  const key = env[name];
  if (key !== undefined && key.trim() !== "") return key.trim();
  throw new UsageError(`serve: expected the API key in the environment variable ${name}, which is not set`);
}

/** Of a failure that is not a client's, for the log: a line for a broken world, the stack of a bug. */
export function failureText(error: unknown): string {
  if (error instanceof ForagerError) return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
