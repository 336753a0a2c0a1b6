/** A hub and a storage host for tests, on this machine: they serve one file, as well or as badly as a test says. */
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export const content = Buffer.from(Array.from({ length: 300_000 }, (_, i) => (i * 7919) % 251));
export const sha256 = createHash("sha256").update(content).digest("hex");
export const gitHash = createHash("sha1").update(`blob ${content.length}\0`).update(content).digest("hex");
export const token = "hf_secret_token";

export interface Seen {
  readonly url: string;
  readonly authorization: string | undefined;
  readonly range: string | undefined;
}

export type Handler = (request: IncomingMessage, response: ServerResponse) => void;

export interface Host {
  readonly address: string;
  readonly seen: Seen[];
  handle: Handler;
  close(): Promise<void>;
}

/** Starts a host on a free port; it answers as `handle` says and notes what it was asked. */
export async function startHost(): Promise<Host> {
  const host: { handle: Handler; seen: Seen[] } = { handle: (_, response) => response.end(), seen: [] };
  const server: Server = createServer((request, response) => {
    const { authorization, range } = request.headers;
    host.seen.push({ url: request.url ?? "", authorization, range });
    host.handle(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  return Object.assign(host, { address, close });
}

/** Serves the content, whole or from where it is asked; `most` bytes, then the connection breaks. */
export function serve(response: ServerResponse, range: string | undefined, most = content.length): void {
  const start = Number(/^bytes=(\d+)-$/.exec(range ?? "")?.[1] ?? 0);
  const rest = content.subarray(start);
  response.setHeader("content-length", rest.length);
  if (range !== undefined) {
    response.statusCode = 206;
    response.setHeader("content-range", `bytes ${start}-${content.length - 1}/${content.length}`);
  }
  if (most >= rest.length) response.end(rest);
  else response.write(rest.subarray(0, most), () => response.destroy());
}

/** The hub points to the storage host and says what the file is. */
export function redirectTo(location: string, more: Readonly<Record<string, string>> = {}): Handler {
  return (_, response) => {
    response.writeHead(302, {
      location,
      "x-linked-etag": `"${sha256}"`,
      "x-linked-size": String(content.length),
      "x-repo-commit": "c0ffee",
      ...more,
    });
    response.end();
  };
}
