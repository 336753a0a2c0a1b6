/** What the way there keeps for the way back. */
import type { Tensor } from "./graph.ts";

/**
 * Marks a value inside a layer that the way back needs and that is dear to compute again; returns the value to go on
 * with. A graph of the way there notes it as an output, one of the way back reads it as an input instead.
 */
export type Keep = (value: Tensor, name: string) => Tensor;
