/** The thread of `SegmentThread`: analyses the passages it is sent. */
import { parentPort, workerData } from "node:worker_threads";
import { assert } from "../../errors.ts";
import { SegmentBuilder } from "./postings.ts";
import type { SegmentAnswer, SegmentRequest, SegmentThreadData } from "./segment-thread.ts";

const { options, first } = workerData as SegmentThreadData;
const builder = new SegmentBuilder(options);
builder.startAt(first);
assert(parentPort !== null, "the file of a worker runs in a worker");
const port = parentPort;

port.on("message", (request: SegmentRequest) => {
  if (request !== "take") {
    for (let i = 0; i < request.length; i += 2)
      builder.add({ title: request[i] as string, text: request[i + 1] as string });
    port.postMessage({ bytes: builder.bytes } satisfies SegmentAnswer);
    return;
  }
  const segment = builder.take();
  const { counts, passages, frequencies, lengths } = segment;
  port.postMessage(
    { segment } satisfies SegmentAnswer,
    [counts, passages, frequencies, lengths].map(({ buffer }) => buffer as ArrayBuffer),
  );
});
