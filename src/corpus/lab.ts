/**
 * The `lab` world: invented entities and relations for controlled experiments. Any number of entities (10^6 in
 * seconds), of relations and of hops; distractors and shared words set how hard retrieval is. Facts are not
 * stored: everything about an entity is computed from its number, so passages can be streamed in bounded memory.
 *
 * Each entity has every relation to one other entity, in one passage. A question names an entity and follows a
 * chain of relations that never visits an entity twice. Entities are split 80 / 10 / 10 %;
 * `familiar` questions are asked in every split.
 */
import type { LabOptions } from "./lab-options.ts";
import { labPassages } from "./lab-passages.ts";
import { type LabSplit, labQuestions } from "./lab-questions.ts";
import type { Question } from "./question.ts";
import type { World } from "./world-contract.ts";

/** Makes the world; throws `ConfigError` for options that do not go together. */
export function makeLab(options: LabOptions): World {
  const questions = (split: LabSplit, count: number): Question[] => labQuestions(options, { split, count });
  return {
    name: "lab",
    sources: [{ name: "invented by a seeded generator", licence: "CC0-1.0" }],
    passages: [...labPassages(options)],
    questions: {
      train: questions("train", options.trainQuestions),
      validation: questions("validation", options.validationQuestions),
      test: questions("test", options.testQuestions),
    },
  };
}
