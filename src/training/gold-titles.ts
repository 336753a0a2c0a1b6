/** Titles of the gold passages of the questions that are trained on, by id; the teacher of real questions searches by them. */
import type { TrainingData } from "./setup.ts";

/** Looking for them reads every passage, which is done once for the same data. */
const known = new WeakMap<object, ReadonlyMap<string, string>>();

/** Empty where the retriever does not show its passages. */
export function goldTitles(data: Pick<TrainingData, "train" | "passages">): ReadonlyMap<string, string> {
  const found = known.get(data);
  if (found !== undefined) return found;
  const wanted = new Set(data.train.flatMap(({ goldPassages }) => goldPassages));
  const titles = new Map<string, string>();
  const count = data.passages?.count ?? 0;
  for (let position = 0; position < count && titles.size < wanted.size; position++) {
    const passage = data.passages?.get(position);
    if (passage !== undefined && wanted.has(passage.id)) titles.set(passage.id, passage.title);
  }
  known.set(data, titles);
  return titles;
}
