/**
 * The adapters of LoRA as arrays (`lora-options.ts` says what they are): which there are and how they start. Names are PEFT's without its prefix: `…q_proj.lora_A.weight` (rank, in) and
 * `…q_proj.lora_B.weight` (out, rank).
 */
import { EngineError } from "../errors.ts";
import { random } from "../shared/random.ts";
import type { LoraOptions } from "./lora-options.ts";
import { type ModelOptions, parameterShapes } from "./model-options.ts";
import type { Parameter } from "./parameters.ts";

/** A model and what is trained of it: all of its weights or, with `lora`, adapters beside them. */
export interface AdaptedModel {
  readonly model: ModelOptions;
  readonly lora?: LoraOptions;
}

/** Of one adapted projection: the names of its weight and of its two adapters, and the weight's shape (out, in). */
export interface AdaptedProjection {
  readonly weight: string;
  readonly down: string;
  readonly up: string;
  readonly shape: readonly [number, number];
}

/** Names of the two adapters of the projection `name`, such as `model.layers.0.mlp.up_proj`. */
export function adapterNames(name: string): { readonly down: string; readonly up: string } {
  return { down: `${name}.lora_A.weight`, up: `${name}.lora_B.weight` };
}

/** What the product of the adapters is multiplied by. */
export function adapterScale({ alpha, rank }: LoraOptions): number {
  return alpha / rank;
}

/** Names and shapes of all adapters, in the order of the network. */
export function adapterShapes(model: ModelOptions, lora: LoraOptions): Map<string, readonly number[]> {
  return new Map(
    adaptedProjections(model, lora).flatMap(({ down, up, shape: [rows, columns] }) => [
      [down, [lora.rank, columns]],
      [up, [rows, lora.rank]],
    ]),
  );
}

/** Names of what is trained: the adapters, or all weights of the model. */
export function trainableNames({ model, lora }: AdaptedModel): ReadonlySet<string> {
  return new Set((lora ? adapterShapes(model, lora) : parameterShapes(model)).keys());
}

/**
 * Fresh adapters as PEFT starts them: A uniform within ±1/sqrt(in), which is Kaiming's rule with a = sqrt(5); B zero,
 * so that the model computes at first what it computed before. Throws `EngineError` for a rank that is too large.
 */
export function initializeAdapters(
  model: ModelOptions,
  lora: LoraOptions,
  seed: number,
): Map<string, Parameter> {
  requireRank(model, lora);
  return new Map(
    [...adapterShapes(model, lora)].map(([name, shape]) => {
      const [rows, columns] = shape as [number, number];
      const data = new Float32Array(rows * columns);
      if (name.includes(".lora_A.")) {
        const chance = random(seed, "adapter", name);
        const bound = 1 / Math.sqrt(columns);
        for (let i = 0; i < data.length; i++) data[i] = (2 * chance.next() - 1) * bound;
      }
      return [name, { shape, data }];
    }),
  );
}

/** Throws `EngineError` for a rank that is too large: two matrices of one beyond that of their product hold more numbers than the weight itself. */
export function requireRank(model: ModelOptions, lora: LoraOptions): void {
  const least = (shape: readonly number[]): number => Math.min(...shape);
  const [smallest] = adaptedProjections(model, lora).sort((a, b) => least(a.shape) - least(b.shape));
  if (smallest === undefined || lora.rank <= least(smallest.shape)) return;
  throw new EngineError(
    `adapters of rank ${lora.rank} are wanted, but ${smallest.weight} has only shape [${smallest.shape}]; lower the rank to at most ${least(smallest.shape)}, or leave that projection out of their targets`,
  );
}

const modules: Readonly<Record<string, string>> = {
  q_proj: "self_attn",
  k_proj: "self_attn",
  v_proj: "self_attn",
  o_proj: "self_attn",
  gate_proj: "mlp",
  up_proj: "mlp",
  down_proj: "mlp",
};

/** All projections that have adapters, in the order of the network. */
export function adaptedProjections(model: ModelOptions, { targets }: LoraOptions): AdaptedProjection[] {
  const names = new Set<string>(targets.map((target) => `${modules[target]}.${target}.weight`));
  const shapes = [...parameterShapes(model)].filter(([name]) =>
    names.has(name.replace(/^model\.layers\.\d+\./, "")),
  );
  return shapes.map(([weight, shape]) => ({
    weight,
    shape: shape as readonly [number, number],
    ...adapterNames(weight.slice(0, -".weight".length)),
  }));
}
