/**
 * Shared libraries of the system, loaded for good: koffi unloads a library that nobody refers to, whatever was bound
 * from it, and takes settings only before the first one.
 */
import koffi from "koffi";

/** Deep graphs recurse while ONNX Runtime optimises them; koffi's own stacks are too small for that. */
const stackBytes = 4 * 1024 * 1024;

type Library = ReturnType<typeof koffi.load>;
/** Kept by the process, not by this module, of which a process may hold several copies. */
const kept = Symbol.for("forager.native-libraries");
const holder = globalThis as { [kept]?: Library[] };

/** Loads a library by path or by the name the system knows it by. Throws `Error` when there is none. */
export function loadLibrary(path: string): Library {
  if (holder[kept] === undefined) {
    koffi.config({ sync_stack_size: stackBytes, async_stack_size: stackBytes });
    holder[kept] = [];
  }
  const library = koffi.load(path);
  holder[kept].push(library);
  return library;
}
