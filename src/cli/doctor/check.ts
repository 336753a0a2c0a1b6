/** What the doctor finds out, and what its examinations look at. */

import type { Recipe } from "../../config/recipe.ts";
import type { Passage } from "../../corpus/passage.ts";
import type { EmbeddedEngine } from "../../engine/embedded-engine.ts";
import type { Engine } from "../../engine/engine.ts";
import type { TrainingData } from "../../training/setup.ts";

export interface Check {
  readonly name: string;
  readonly ok: boolean;
  /** What was measured, with numbers. */
  readonly detail: string;
  /** What to do, where something is wrong or could be better. */
  readonly fix?: string;
}

/** A recipe with its data read and its index built. */
export interface DataPatient {
  readonly recipe: Recipe;
  readonly data: TrainingData;
}

/** The same with its model. */
export interface Patient extends DataPatient {
  readonly engine: Engine;
}

/** The same with a model of this process, whose memory and speed are this machine's. */
export interface LocalPatient extends Patient {
  readonly engine: EmbeddedEngine;
}

/** Examinations that need not see everything look at this many questions or passages, spread evenly. */
export const sampleSize = 200;

/** Fewer where the passages are elsewhere, since each query may cost time and money there. */
export const remoteSampleSize = 50;

/** Episodes that are played where each search may cost time and money; each of them asks several queries. */
export const costlyEpisodes = 8;

/** At most `size` of `values`, evenly spread over all of them. */
export function spread<T>(values: readonly T[], size: number = sampleSize): readonly T[] {
  if (values.length <= size) return values;
  return Array.from({ length: size }, (_, i) => values[Math.floor((i * values.length) / size)] as T);
}

export function percent(part: number, whole: number): string {
  return whole === 0 ? "0 %" : `${((100 * part) / whole).toFixed(1)} %`;
}

/** Every passage that can be found, in the order of the corpus; none where the retriever does not show them. */
export function* passagesOf({ passages: store }: TrainingData): Generator<Passage> {
  for (let position = 0; position < (store?.count ?? 0); position++) yield store?.get(position) as Passage;
}

/** The passages with these ids; an id that the corpus lacks has no entry. */
export function passagesById(data: TrainingData, ids: Iterable<string>): ReadonlyMap<string, Passage> {
  const wanted = new Set(ids);
  const found = new Map<string, Passage>();
  for (const passage of passagesOf(data)) if (wanted.has(passage.id)) found.set(passage.id, passage);
  return found;
}
