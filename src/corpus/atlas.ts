/**
 * The `atlas` world: real countries, currencies, languages and airports, one short passage each, and questions
 * of one to three hops about them. Sentences and questions are plain lower-case words for models of about a
 * million parameters: every kind of question begins with a word of its own, and punctuation stands apart.
 *
 * Questions name airports, countries, currencies or languages; each entity is named in one split only (80 % of
 * the entities of each type train, 10 % validation, 10 % test). A country of the test split may still be the
 * answer to, or lie on the way of, a training question about one of its airports.
 */
import { z } from "zod";
import { ConfigError } from "../errors.ts";
import { random } from "../shared/random.ts";
import { type AtlasFacts, readAtlasFacts } from "./atlas-facts.ts";
import { ATLAS_KINDS, atlasPassageId, atlasQuestions } from "./atlas-questions.ts";
import type { Passage } from "./passage.ts";
import type { Question } from "./question.ts";
import { selectQuestions } from "./select-questions.ts";
import type { World } from "./world-contract.ts";

const count = z.int().min(1);

export const atlasOptionsSchema = z.strictObject({
  name: z.literal("atlas").describe("Real facts about countries and airports."),
  seed: z
    .int()
    .min(0)
    .default(1)
    .describe("Decides the split and the choice of questions; independent of the training's seed."),
  maxNameWords: z
    .int()
    .min(1)
    .max(9)
    .default(3)
    .describe("Airports whose name has more words are left out; 1 makes names much easier to copy."),
  maxNameLetters: z
    .int()
    .min(4)
    .max(100)
    .default(24)
    .describe("Airports whose name has more letters (spaces count) are left out."),
  hops: z
    .array(z.literal([1, 2, 3]))
    .min(1)
    .default([1, 2])
    .describe("Which numbers of hops are asked."),
  kinds: z
    .array(z.enum(ATLAS_KINDS))
    .min(1)
    .default([...ATLAS_KINDS])
    .describe("Which kinds of questions are asked, those with another number of hops aside."),
  trainQuestions: count.default(8000).describe("At most so many training questions."),
  validationQuestions: count.default(300).describe("At most so many validation questions."),
  testQuestions: count.default(900).describe("At most so many test questions."),
});
export type AtlasOptions = z.output<typeof atlasOptionsSchema>;

/** Makes the world; a pure function of the options and of the installed versions of the two packages. */
export async function makeAtlas(options: AtlasOptions): Promise<World> {
  const facts = await readAtlasFacts(options);
  const parts = {
    train: partOf(facts, options.seed, [0, 0.8]),
    validation: partOf(facts, options.seed, [0.8, 0.9]),
    test: partOf(facts, options.seed, [0.9, 1]),
  };
  const questions = (split: keyof typeof parts, size: number) =>
    questionsOf(parts[split], options, { dataset: "atlas", split, count: size });
  return {
    name: "atlas",
    sources: [
      { name: "countries-list", licence: "MIT", url: "https://github.com/annexare/Countries" },
      {
        name: "airport-data-js",
        licence: "CC-BY-4.0",
        url: "https://github.com/aashishvanand/airport-data-js",
      },
    ],
    passages: passagesOf(facts),
    questions: {
      train: questions("train", options.trainQuestions),
      validation: questions("validation", options.validationQuestions),
      test: questions("test", options.testQuestions),
    },
  };
}

function passagesOf(facts: AtlasFacts): Passage[] {
  const passage = (type: Parameters<typeof atlasPassageId>[0], name: string, text: string): Passage => ({
    id: atlasPassageId(type, name),
    title: name,
    text: `${name} is ${text} .`,
  });
  return [
    ...facts.countries.map((c) =>
      passage(
        "country",
        c.name,
        `a country in ${c.continent} . ${c.name} has capital ${c.capital} and currency ${c.currency.name} and language ${c.language.name}`,
      ),
    ),
    ...facts.currencies.map((c) => passage("currency", c.name, `a currency with code ${c.code}`)),
    ...facts.languages.map((l) => passage("language", l.name, `a language with code ${l.code}`)),
    ...facts.airports.map((a) => passage("airport", a.name, `an airport in ${a.country.name}`)),
  ];
}

/** The entities that the questions of one split may name: the same slice of a random order of each type. */
function partOf(facts: AtlasFacts, seed: number, [from, to]: readonly [number, number]): AtlasFacts {
  const slice = <T>(values: readonly T[], type: string): T[] =>
    random(seed, "atlas", type)
      .shuffle(values)
      .slice(Math.round(values.length * from), Math.round(values.length * to));
  return {
    countries: slice(facts.countries, "countries"),
    currencies: slice(facts.currencies, "currencies"),
    languages: slice(facts.languages, "languages"),
    airports: slice(facts.airports, "airports"),
  };
}

function questionsOf(
  part: AtlasFacts,
  options: AtlasOptions,
  target: Parameters<typeof selectQuestions>[1],
): Question[] {
  const kinds = [...atlasQuestions(part)].flatMap(([kind, drafts]) => {
    const hops = drafts[0]?.hops;
    const isAsked = options.kinds.includes(kind) && options.hops.some((hop) => hop === hops);
    if (!isAsked || hops === undefined) return [];
    return [{ hops, candidates: random(options.seed, "atlas", target.split, kind).shuffle(drafts) }];
  });
  if (kinds.length === 0)
    throw new ConfigError(
      `world options: none of the kinds ${options.kinds.join(", ")} has ${options.hops.join(" or ")} hops; add a kind or a number of hops`,
      { path: "kinds" },
    );
  return selectQuestions(kinds, target, random(options.seed, "atlas", target.split));
}
