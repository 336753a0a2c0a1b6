/**
 * The questions of the `lab` world: chains of relations from an entity, of any number of hops, in three splits of the entities;
 * `familiar` ones are the same in every split.
 */
import { ConfigError } from "../errors.ts";
import { random } from "../shared/random.ts";
import { hashInteger, type LabFacts, permutation, RELATIONS } from "./lab-facts.ts";
import type { LabOptions } from "./lab-options.ts";
import { labFactsOf, labPassageId } from "./lab-passages.ts";
import { FAMILIAR, type Question } from "./question.ts";
import { type QuestionDraft, type QuestionKind, selectQuestions } from "./select-questions.ts";

const SPLITS = { train: [0, 0.8], validation: [0.8, 0.9], test: [0.9, 1] } as const;
export type LabSplit = keyof typeof SPLITS;

interface Target {
  readonly split: LabSplit;
  /** At most so many questions. */
  readonly count: number;
}

/** The questions of a split. Throws `ConfigError` where familiar ones leave no relation for the others, or are too many. */
export function labQuestions(options: LabOptions, target: Target): Question[] {
  return options.familiar === 0 ? questionsOf(options, target) : withFamiliar(options, target);
}

interface TargetOfRelations extends Target {
  /** What is asked; absent: all relations. */
  readonly relations?: readonly string[];
}

function questionsOf(options: LabOptions, { relations, ...target }: TargetOfRelations): Question[] {
  const all = labFactsOf(options);
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
  if (options.familiar > options.trainQuestions)
    throw new ConfigError(
      `world options: ${options.familiar} familiar questions are more than ${options.trainQuestions} training questions; lower familiar or raise trainQuestions`,
      { path: "familiar" },
    );
  const familiar = questionsOf(
    { ...options, hops: [1] },
    {
      split: "train",
      count: options.familiar,
      relations: RELATIONS.slice(options.relations - 1, options.relations),
    },
  ).map((question) => ({ ...question, kind: FAMILIAR }));
  const places = split === "train" ? count - familiar.length : Math.ceil(count / 2);
  const others = questionsOf(options, { split, count: Math.max(0, places), relations });
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
    goldPassages: read.map(labPassageId),
    hops: chain.length,
    plan: read.map((visitedEntity) => facts.nameOf(visitedEntity)),
    kind: chain.join("-"),
  };
}
