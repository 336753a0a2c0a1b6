/**
 * A lane that goes layer by layer: through the trunk, then what is selected through a head in pieces, and with a loss the
 * way back.
 */
import { Activations } from "./activations.ts";
import { addRows, embeddingTable } from "./embeddings.ts";
import { HeadRunner } from "./head.ts";
import type { Lane, LaneWork } from "./lane.ts";
import type { AdaptedModel } from "./lora.ts";
import type { Sequences } from "./packing.ts";
import type { ParameterSet } from "./parameters.ts";
import { hiddenRows, type RowPlaces } from "./places.ts";
import { Trunk, type TrunkOptions } from "./trunk.ts";

export interface LayeredOptions extends TrunkOptions {
  /** Layers that keep what their way back needs; the others compute it again. Absent: all. */
  readonly keptLayers?: number;
}

export class LayeredLane implements Lane {
  readonly #width: number;
  readonly #keptLayers: number;
  readonly #trunk: Trunk;
  readonly #heads: HeadRunner;
  readonly #rows = new Activations();

  constructor(adapted: AdaptedModel, options: LayeredOptions) {
    this.#width = adapted.model.width;
    this.#keptLayers = options.keptLayers ?? adapted.model.layers;
    this.#trunk = new Trunk(adapted, options);
    this.#heads = new HeadRunner(adapted.model, options);
  }

  async values(parameters: ParameterSet, work: LaneWork): Promise<Float32Array> {
    const { sequences, places, head, inputs } = work;
    const hidden = this.#gather(await this.#trunk.infer(parameters, sequences), sequences, places);
    return await this.#heads.values(head, parameters, { hidden, inputs });
  }

  async train(
    parameters: ParameterSet,
    work: LaneWork,
    gradients: ParameterSet,
  ): Promise<{ readonly loss: number; readonly values: Float32Array }> {
    const { sequences, places, head, inputs } = work;
    const keptLayers = this.#keptLayers;
    const hasTrunk =
      [...gradients.keys()].some((name) => !head.parameters.has(name)) || gradients.has(embeddingTable);
    const last = hasTrunk
      ? await this.#trunk.forward(parameters, sequences, keptLayers)
      : await this.#trunk.infer(parameters, sequences);
    const hidden = this.#gather(last, sequences, places);
    const hiddenGradient = this.#rows.take("gradient", hidden.length);
    const training = { gradients, hiddenGradient };
    const report = await this.#heads.train(head, parameters, { rows: { hidden, inputs }, training });
    if (hasTrunk) {
      this.#spread(hiddenGradient, sequences, places);
      await this.#trunk.backward(parameters, sequences, { keptLayers, gradients });
    }
    return report;
  }

  async rest(): Promise<void> {
    await this.#trunk.close();
    await this.#heads.close();
    this.#rows.clear();
  }

  /** The hidden states of the selected places (M, width). */
  #gather(hidden: Float32Array, sequences: Sequences, places: RowPlaces): Float32Array {
    const width = this.#width;
    const gathered = this.#rows.take("hidden", places.rows.length * width);
    for (const [i, row] of hiddenRows(sequences, places).entries())
      gathered.set(hidden.subarray(row * width, (row + 1) * width), i * width);
    return gathered;
  }

  /** Brings the gradient of the selected places (M, width) to where the way back through the trunk starts. */
  #spread(gradient: Float32Array, sequences: Sequences, places: RowPlaces): void {
    const target = this.#trunk.zeroGradient(sequences);
    addRows(target, gradient, { rows: hiddenRows(sequences, places), width: this.#width });
  }
}
