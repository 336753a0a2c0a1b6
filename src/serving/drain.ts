/**
 * What is left of a request whose answer is written already, as that of a refusal: it is read on and discarded, since
 * clients such as Python's urllib look at no answer before they have written everything, and a connection that is closed
 * under them loses it. Bounded, so that nobody is read for ever.
 */
import type { IncomingMessage } from "node:http";

export interface DrainLimits {
  /** About how many bytes are discarded at most. */
  readonly bytes: number;
  /** For how long at most, in milliseconds. */
  readonly ms: number;
}

export const defaultDrain: DrainLimits = { bytes: 128 * 2 ** 20, ms: 10_000 };

const LOOK_MS = 20;

/** Reads `request` to its end; beyond the limits its connection is closed. */
export function drain(request: IncomingMessage, { bytes, ms }: DrainLimits): void {
  const { socket } = request;
  const most = socket.bytesRead + bytes;
  let looks = Math.ceil(ms / LOOK_MS);
  const timer = setInterval(() => {
    if (!request.complete && !socket.destroyed) {
      if (--looks > 0 && socket.bytesRead <= most) return;
      socket.destroySoon();
    }
    clearInterval(timer);
  }, LOOK_MS);
  timer.unref();
  request.resume();
}
