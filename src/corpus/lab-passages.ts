/**
 * The passages of the `lab` world: for each entity one with its facts, and distractors beside it. Shared words and distractors
 * set how hard they are to find.
 */
import { ConfigError } from "../errors.ts";
import { type LabFacts, labFacts } from "./lab-facts.ts";
import type { LabOptions } from "./lab-options.ts";
import type { Passage } from "./passage.ts";

/** The passages one by one, in bounded memory: for each entity its facts, then its distractors. */
export function* labPassages(options: LabOptions): Generator<Passage> {
  const facts = labFactsOf(options);
  for (let entity = 0; entity < options.entities; entity++) {
    const title = facts.nameOf(entity);
    yield { id: labPassageId(entity), title, text: factText(facts, entity) };
    for (let i = 0; i < options.distractors; i++)
      yield { id: `${labPassageId(entity)}-${i}`, ...distractor(facts, entity, i) };
  }
}

/**
 * A passage about meetings, which no question asks for. It names `entity` as often as the passage of facts does
 * and is somewhat longer, so that BM25 ranks it behind the facts but before passages that share one word.
 */
function distractor(facts: LabFacts, entity: number, number: number): Pick<Passage, "title" | "text"> {
  const name = facts.nameOf(entity);
  const met = facts.relations.map((_, i) =>
    facts.nameOf(facts.otherEntity(entity, `distractor ${number} ${i}`)),
  );
  return { title: `${name} and ${met[0]}`, text: `${name} met ${met.join(" and met ")} .` };
}

/** Throws `ConfigError` where `nameWords` cannot name all entities. */
export function labFactsOf(options: LabOptions): LabFacts {
  const needed = Math.ceil(Math.sqrt(options.entities));
  if (options.nameWords < needed)
    throw new ConfigError(
      `world options: ${options.nameWords} name words make ${options.nameWords ** 2} names of two words, but there are ` +
        `${options.entities} entities; set nameWords to at least ${needed}`,
      { path: "nameWords" },
    );
  // Between the two ends in equal ratios: the number of names that share a word is what makes retrieval hard.
  const wordsInUse = Math.round(
    needed ** options.sharedWords * options.nameWords ** (1 - options.sharedWords),
  );
  return labFacts({ ...options, wordsInUse: Math.max(needed, wordsInUse) });
}

/** The id of the passage with the facts of an entity. */
export function labPassageId(entity: number): string {
  return `entity-${entity}`;
}

function factText(facts: LabFacts, entity: number): string {
  const parts = facts.relations.map(
    (relation) => `${relation} ${facts.nameOf(facts.otherEntity(entity, relation))}`,
  );
  return `${facts.nameOf(entity)} has ${parts.join(" and ")} .`;
}
