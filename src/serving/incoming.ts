/**
 * Which message of Node a request was made of, for who reads its body: a stream of the web around it costs a server more
 * than the rest of a small call, and giving one up cuts the connection. Requests that never were on a socket have none.
 */
import type { IncomingMessage } from "node:http";

const messages = new WeakMap<Request, IncomingMessage>();

export function rememberIncoming(request: Request, message: IncomingMessage): void {
  messages.set(request, message);
}

export function incomingOf(request: Request): IncomingMessage | undefined {
  return messages.get(request);
}
