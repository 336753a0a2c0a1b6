/**
 * The `lab` world: invented entities and relations for controlled experiments. Any number of entities (10^6 in
 * seconds), of relations and of hops; distractors and shared words set how hard retrieval is. Facts are not
 * stored: everything about an entity is computed from its number, so passages can be streamed in bounded memory.
 *
 * Each entity has every relation to one other entity, in one passage. A question names an entity and follows a
 * chain of relations that never visits an entity twice. Entities are split 80 / 10 / 10 %;
 * `familiar` questions are asked in every split.
 */
import { z } from "zod";
import { ConfigError } from "../errors.ts";
import { random } from "../shared/random.ts";
import { hashInteger, type LabFacts, labFacts, MAX_NAME_WORDS, permutation, RELATIONS } from "./lab-facts.ts";
import type { Passage } from "./passage.ts";
import { FAMILIAR, type Question } from "./question.ts";
import { type QuestionDraft, type QuestionKind, selectQuestions } from "./select-questions.ts";
import type { World } from "./world-contract.ts";

const count = z.int().min(1);

export const labOptionsSchema = z.strictObject({
  name: z.literal("lab").describe("Invented names, any size."),
  seed: z
    .int()
    .min(0)
    .default(1)
    .describe("Decides names, facts, split and questions; independent of the training's seed."),
  entities: z
    .int()
    .min(20)
    .max(1_000_000)
    .default(1000)
    .describe("How many entities there are, each with one passage of facts."),
  nameWords: z
    .int()
    .min(5)
    .max(MAX_NAME_WORDS)
    .default(300)
    .describe("How many words names are made of; a name is two of them. At least the root of entities."),
  sharedWords: z
    .number()
    .min(0)
    .max(1)
    .default(0)
    .describe(
      "How hard names are to tell apart: with 0 all nameWords are in use, with 1 only as many as are needed to name every entity, so that each word is in as many names as possible.",
    ),
  relations: z.int().min(1).max(RELATIONS.length).default(3).describe("How many relations there are."),
  hops: z.array(z.int().min(1).max(6)).min(1).default([1, 2]).describe("Which numbers of hops are asked."),
  distractors: z
    .int()
    .min(0)
    .max(10)
    .default(0)
    .describe("Passages per entity that name it beside others but hold none of the facts asked."),
  familiar: z
    .int()
    .min(0)
    .default(0)
    .describe(
      "How many questions of one hop are the same in every split, so that a policy can know their answers by heart as a language model knows what it has often read. They ask the last relation, which the other questions then leave alone: in training a kind of their own, which takes its turn, in the held-out splits as many as the others, up to this number.",
    ),
  trainQuestions: count.default(4000).describe("At most so many training questions."),
  validationQuestions: count.default(300).describe("At most so many validation questions."),
  testQuestions: count.default(600).describe("At most so many test questions."),
});
export type LabOptions = z.output<typeof labOptionsSchema>;

/** Makes the world; throws `ConfigError` where `nameWords` cannot name all entities. */
export function makeLab(options: LabOptions): World {
  const questions = (split: "train" | "validation" | "test", size: number): Question[] =>
    options.familiar === 0
      ? labQuestions(options, { split, count: size })
      : withFamiliar(options, { split, count: size });
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

/** The passages one by one, in bounded memory: for each entity its facts, then its distractors. */
export function* labPassages(options: LabOptions): Generator<Passage> {
  const facts = factsOf(options);
  for (let entity = 0; entity < options.entities; entity++) {
    const title = facts.nameOf(entity);
    yield { id: passageId(entity), title, text: factText(facts, entity) };
    for (let i = 0; i < options.distractors; i++)
      yield { id: `${passageId(entity)}-${i}`, ...distractor(facts, entity, i) };
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

function factsOf(options: LabOptions): LabFacts {
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

function passageId(entity: number): string {
  return `entity-${entity}`;
}

function factText(facts: LabFacts, entity: number): string {
  const parts = facts.relations.map(
    (relation) => `${relation} ${facts.nameOf(facts.otherEntity(entity, relation))}`,
  );
  return `${facts.nameOf(entity)} has ${parts.join(" and ")} .`;
}

const SPLITS = { train: [0, 0.8], validation: [0.8, 0.9], test: [0.9, 1] } as const;

interface Target {
  readonly split: keyof typeof SPLITS;
  readonly count: number;
  /** What is asked; absent: all relations. */
  readonly relations?: readonly string[];
}

function labQuestions(options: LabOptions, { relations, ...target }: Target): Question[] {
  const all = factsOf(options);
  const facts = { ...all, relations: relations ?? all.relations };
  const entityAt = permutation(options.entities, random(options.seed, "lab", "split"));
  const [from, to] = SPLITS[target.split].map((share) => Math.round(share * options.entities)) as [
    number,
    number,
  ];
  const kinds: QuestionKind[] = [...new Set(options.hops)].map((hops) => {
    const order = permutation(to - from, random(options.seed, "lab", target.split, hops));
    const entities = { count: to - from, at: (index: number) => entityAt(from + order(index)) };
    return { hops, candidates: labCandidates(facts, entities, hops) };
  });
  return selectQuestions(kinds, { dataset: "lab", ...target }, random(options.seed, "lab", target.split));
}

/** Familiar questions, the same in all splits, ask the last relation of the training split's entities; the others never do. */
function withFamiliar(options: LabOptions, { split, count }: Target): Question[] {
  const relations = RELATIONS.slice(0, options.relations - 1);
  if (relations.length === 0)
    throw new ConfigError(
      `world options: familiar questions ask the last of the relations, which leaves none of ${options.relations} for the others; set relations to at least 2`,
      { path: "relations" },
    );
  const familiar = labQuestions(
    { ...options, hops: [1] },
    {
      split: "train",
      count: options.familiar,
      relations: RELATIONS.slice(options.relations - 1, options.relations),
    },
  ).map((question) => ({ ...question, kind: FAMILIAR }));
  const places = split === "train" ? count - familiar.length : Math.ceil(count / 2);
  const others = labQuestions(options, { split, count: Math.max(0, places), relations });
  const asked = split === "train" ? familiar : familiar.slice(0, others.length);
  return random(options.seed, "lab", split, "familiar")
    .shuffle([...others, ...asked])
    .map((question, index) => ({ ...question, id: `${split}-${index}` }));
}

/** All questions of `hops` hops without repeats: each round asks every entity along another chain of relations. */
function* labCandidates(
  facts: LabFacts,
  entities: { readonly count: number; readonly at: (index: number) => number },
  hops: number,
): Generator<QuestionDraft> {
  const chains = facts.relations.length ** hops;
  for (let round = 0; round < chains; round++)
    for (let index = 0; index < entities.count; index++) {
      const entity = entities.at(index);
      const draft = labQuestion(facts, entity, chainOf(facts, (hashInteger(entity) + round) % chains, hops));
      if (draft !== undefined) yield draft;
    }
}

/** The digits of `number` in base (number of relations), as relations. */
function chainOf(facts: LabFacts, number: number, hops: number): string[] {
  const base = facts.relations.length;
  return Array.from(
    { length: hops },
    (_, hop) => facts.relations[Math.floor(number / base ** hop) % base] as string,
  );
}

/** Follows `chain` from `entity`; undefined where it comes back to an entity that was visited. */
function labQuestion(facts: LabFacts, entity: number, chain: readonly string[]): QuestionDraft | undefined {
  const visited = [entity];
  for (const relation of chain) {
    const next = facts.otherEntity(visited.at(-1) as number, relation);
    if (visited.includes(next)) return undefined;
    visited.push(next);
  }
  const read = visited.slice(0, -1);
  const path = [...chain].reverse().map((relation) => `the ${relation} of`);
  return {
    text: `who is ${path.join(" ")} ${facts.nameOf(entity)} ?`,
    goldAnswers: [facts.nameOf(visited.at(-1) as number)],
    goldPassages: read.map(passageId),
    hops: chain.length,
    plan: read.map((visitedEntity) => facts.nameOf(visitedEntity)),
    kind: chain.join("-"),
  };
}
