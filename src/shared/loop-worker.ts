/** A thread of `loop-threads.ts`: goes through pieces of arrays that belong to another thread. */
import { parentPort } from "node:worker_threads";
import koffi from "koffi";
import { assert } from "../errors.ts";
import { type LoopCall, type LoopWork, takePieces, whileAwaited } from "./loop-threads.ts";
import { type CompiledLoop, compileVectorLoop } from "./vector-loop.ts";

assert(parentPort !== null, "the file of a worker runs in a worker");
const port = parentPort;
const compiledLoops = new Map<string, CompiledLoop<string, string>>();
/** Of the call before, which may be over some of the same arrays. */
let views = new Map<string, Float32Array>();

port.on("message", (call: LoopCall) => {
  whileAwaited(call.shared, () => takePieces(compiled(call), worksOf(call), call.shared));
  port.postMessage("done");
});

function compiled({ loop }: LoopCall): CompiledLoop<string, string> {
  const key = JSON.stringify(loop);
  const known = compiledLoops.get(key) ?? compileVectorLoop(loop);
  compiledLoops.set(key, known);
  return known;
}

function worksOf({ loop, addresses, lengths, scalars }: LoopCall): LoopWork<string, string>[] {
  const before = views;
  views = new Map();
  return lengths.map((length, work) => ({
    arrays: Object.fromEntries(
      loop.arrays.map((name, index) => {
        const address = addresses[work * loop.arrays.length + index] as bigint;
        const key = `${address} ${length}`;
        const view = before.get(key) ?? new Float32Array(koffi.view(address, 4 * length));
        views.set(key, view);
        return [name, view];
      }),
    ),
    scalars: scalars[work] as Readonly<Record<string, number>>,
  }));
}
