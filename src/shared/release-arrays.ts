/**
 * Gives the memory of large arrays back within two turns of the event loop. The garbage collector, which counts only how
 * much was made since it last ran, leaves hundreds of megabytes lying beside their successors.
 */
import { MessageChannel } from "node:worker_threads";

/** The arrays, and all others on their buffers, have length 0 afterwards; nobody may be reading them. */
export function releaseArrays(arrays: Iterable<Float32Array>): void {
  const buffers = new Set<ArrayBuffer>();
  for (const { buffer } of arrays) if (buffer.byteLength > 0) buffers.add(buffer as ArrayBuffer);
  if (buffers.size === 0) return;
  // A message takes the buffers over; it dies unread with the port that it was sent to.
  const { port1, port2 } = new MessageChannel();
  port1.postMessage(undefined, [...buffers]);
  port2.close();
}
