/** Where one micro-batch at a time is computed. A lane has arrays of its own, so that several run side by side. */
import { runLoop } from "../shared/loop-threads.ts";
import { releaseArrays } from "../shared/release-arrays.ts";
import type { VectorLoop } from "../shared/vector-loop.ts";
import type { Head } from "./head.ts";
import type { Sequences } from "./packing.ts";
import type { Parameter, ParameterSet } from "./parameters.ts";
import type { RowPlaces } from "./places.ts";
import type { Values } from "./session.ts";

/** A micro-batch, and what of it a head reads. */
export interface LaneWork {
  readonly sequences: Sequences;
  readonly places: RowPlaces;
  readonly head: Head;
  /** What the head is fed for the places. */
  readonly inputs: ReadonlyMap<string, Values>;
}

export interface Lane {
  /** The head's value at each place. */
  values(parameters: ParameterSet, work: LaneWork): Promise<Float32Array>;
  /** As `values` with a head that has a loss, whose gradient is added to `gradients`; of what is not in them none is made. */
  train(
    parameters: ParameterSet,
    work: LaneWork,
    gradients: ParameterSet,
  ): Promise<{ readonly loss: number; readonly values: Float32Array }>;
  /** Gives back sessions and arrays, which the next call makes anew. */
  rest(): Promise<void>;
}

/** Gradients of a lane's own, for others to be added up with: 0 except while they are added to. */
export class LaneGradients {
  readonly #arrays = new Map<string, Parameter>();

  /** Of the same names and shapes. */
  like(gradients: ParameterSet): ParameterSet {
    return new Map(
      [...gradients].map(([name, { shape, data }]) => {
        const own = this.#arrays.get(name) ?? { shape, data: new Float32Array(data.length) };
        this.#arrays.set(name, own);
        return [name, own];
      }),
    );
  }

  /** Adds them to others of the same names and leaves zeros, with so many threads at most. Throws `EngineError` where one fails. */
  async moveInto(target: ParameterSet, threads: number): Promise<void> {
    const works = [...target].flatMap(([name, { data: sum }]) => {
      const own = this.#arrays.get(name);
      return own ? [{ arrays: { sum, summand: own.data }, scalars: { zero: 0 } }] : [];
    });
    await runLoop(moveLoop, works, threads);
  }

  /** Gives the memory back, and whatever half a sum is in it. */
  clear(): void {
    releaseArrays([...this.#arrays.values()].map(({ data }) => data));
    this.#arrays.clear();
  }
}

const moveLoop: VectorLoop<"sum" | "summand", "zero"> = {
  arrays: ["sum", "summand"],
  scalars: ["zero"],
  assignments: [
    ["sum", ["sum", "+", "summand"]],
    ["summand", "zero"],
  ],
  results: ["sum", "summand"],
};
