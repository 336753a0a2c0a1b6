/**
 * Memory of a process that drives an engine elsewhere: what it computes with is small, what it throws away is not. V8 lets such
 * a heap grow to several times what is alive before it looks for garbage; here it looks when half as much has come on top.
 */
import { setFlagsFromString } from "node:v8";

/** From now on, for the whole process: less memory for a little more time. */
export function collectEarly(): void {
  setFlagsFromString("--heap-growing-percent=50");
}
