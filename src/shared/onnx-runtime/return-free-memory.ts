/**
 * Free memory of this process goes back to the system. glibc's allocator keeps it for whoever asks next: hundreds of megabytes
 * in pieces of all sizes after a session that packed a model's weights. Other C libraries keep little and have no such function.
 */
import { loadLibrary } from "../native-library.ts";
import { RuntimeLibrary } from "./library.ts";

let trim: ((keptBytes: number) => number) | undefined;
let isBound = false;

/** Takes some milliseconds; does nothing where the C library is another. */
export function returnFreeMemory(): void {
  if (!isBound) {
    isBound = true;
    trim = bindTrim();
  }
  trim?.(0);
}

function bindTrim(): typeof trim {
  if (process.platform !== "linux") return undefined;
  // koffi takes settings, which the runtime needs, only before the first library.
  RuntimeLibrary.get();
  try {
    return loadLibrary("libc.so.6").func("int malloc_trim(size_t)");
  } catch {
    // musl has neither this library nor this function.
    return undefined;
  }
}
