/**
 * The connections of a server and the answers in the making on each. At its end each closes when its last answer is written, and
 * answers say so, so that no client sends another request over a connection that is about to close.
 */
import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";

export class Connections {
  readonly #open = new Map<Socket, Set<ServerResponse>>();
  #isEnding = false;

  add(socket: Socket): void {
    this.#open.set(socket, new Set());
    socket.once("close", () => this.#open.delete(socket));
  }

  /** Takes an answer that is to be written. */
  begin(response: ServerResponse): void {
    const { socket } = response.req;
    const pending = this.#open.get(socket);
    pending?.add(response);
    if (this.#isEnding) response.shouldKeepAlive = false;
    response.once("close", () => {
      pending?.delete(response);
      if (this.#isEnding && pending?.size === 0) socket.destroySoon();
    });
  }

  end(): void {
    this.#isEnding = true;
    for (const [socket, pending] of this.#open) {
      for (const response of pending) response.shouldKeepAlive = false;
      if (pending.size === 0) socket.destroySoon();
    }
  }
}
