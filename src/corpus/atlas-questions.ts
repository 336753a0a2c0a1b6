/**
 * The question templates of the `atlas` world. Each begins with a word of its own, so that the first word alone
 * says what is asked; "how many hops" is the number of passages that a perfect searcher reads.
 */
import type { Airport, AtlasFacts, Coded, Country } from "./atlas-facts.ts";
import type { QuestionDraft } from "./select-questions.ts";

/** An entity that has a passage, on the way from the question to its answer. */
interface Step {
  readonly type: EntityType;
  readonly name: string;
}
type EntityType = "airport" | "country" | "currency" | "language";

/** One kind of question about an entity of type `E`. */
interface Template<E> {
  readonly ask: (name: string) => string;
  /** The passages to read, in order; the first is that of the entity named. */
  readonly path: (entity: E) => readonly Step[];
  readonly answer: (entity: E) => string;
}

const country = (c: Country): Step => ({ type: "country", name: c.name });
const currency = (c: Country): Step => ({ type: "currency", name: c.currency.name });
const language = (c: Country): Step => ({ type: "language", name: c.language.name });
const airport = (a: Airport): Step => ({ type: "airport", name: a.name });

const COUNTRY_TEMPLATES = {
  "country-capital": {
    ask: (name) => `what is the capital of ${name} ?`,
    path: (c) => [country(c)],
    answer: (c) => c.capital,
  },
  "country-currency": {
    ask: (name) => `which currency is used in ${name} ?`,
    path: (c) => [country(c)],
    answer: (c) => c.currency.name,
  },
  "country-language": {
    ask: (name) => `name the language of ${name} ?`,
    path: (c) => [country(c)],
    answer: (c) => c.language.name,
  },
  "country-continent": {
    ask: (name) => `on which continent is ${name} ?`,
    path: (c) => [country(c)],
    answer: (c) => c.continent,
  },
  "country-currency-code": {
    ask: (name) => `banks in ${name} count in the currency with which code ?`,
    path: (c) => [country(c), currency(c)],
    answer: (c) => c.currency.code,
  },
  "country-language-code": {
    ask: (name) => `books from ${name} are in the language with which code ?`,
    path: (c) => [country(c), language(c)],
    answer: (c) => c.language.code,
  },
} satisfies Record<string, Template<Country>>;

const AIRPORT_TEMPLATES = {
  "airport-country": {
    ask: (name) => `in which country is ${name} ?`,
    path: (a) => [airport(a)],
    answer: (a) => a.country.name,
  },
  "airport-capital": {
    ask: (name) => `airport ${name} is in a country with which capital ?`,
    path: (a) => [airport(a), country(a.country)],
    answer: (a) => a.country.capital,
  },
  "airport-currency": {
    ask: (name) => `travellers at ${name} pay in which currency ?`,
    path: (a) => [airport(a), country(a.country)],
    answer: (a) => a.country.currency.name,
  },
  "airport-language": {
    ask: (name) => `people at ${name} speak which language ?`,
    path: (a) => [airport(a), country(a.country)],
    answer: (a) => a.country.language.name,
  },
  "airport-continent": {
    ask: (name) => `flights to ${name} land on which continent ?`,
    path: (a) => [airport(a), country(a.country)],
    answer: (a) => a.country.continent,
  },
  "airport-currency-code": {
    ask: (name) => `shops at ${name} take the currency with which code ?`,
    path: (a) => [airport(a), country(a.country), currency(a.country)],
    answer: (a) => a.country.currency.code,
  },
  "airport-language-code": {
    ask: (name) => `signs at ${name} are in the language with which code ?`,
    path: (a) => [airport(a), country(a.country), language(a.country)],
    answer: (a) => a.country.language.code,
  },
} satisfies Record<string, Template<Airport>>;

const codeOf = (type: EntityType, ask: Template<Coded>["ask"]): Template<Coded> => ({
  ask,
  path: ({ name }) => [{ type, name }],
  answer: ({ code }) => code,
});
const CURRENCY_TEMPLATES = {
  "currency-code": codeOf("currency", (name) => `find the code of money called ${name} ?`),
};
const LANGUAGE_TEMPLATES = {
  "language-code": codeOf("language", (name) => `write the code of speech called ${name} ?`),
};

export type AtlasKind =
  | keyof typeof COUNTRY_TEMPLATES
  | keyof typeof AIRPORT_TEMPLATES
  | keyof typeof CURRENCY_TEMPLATES
  | keyof typeof LANGUAGE_TEMPLATES;

/** Every kind: the type of the entity that is named, and what is asked about it. */
export const ATLAS_KINDS = [
  COUNTRY_TEMPLATES,
  AIRPORT_TEMPLATES,
  CURRENCY_TEMPLATES,
  LANGUAGE_TEMPLATES,
].flatMap((templates) => Object.keys(templates) as AtlasKind[]);

/** The questions of each kind about the entities of `facts`, in the order of the entities. */
export function atlasQuestions(facts: AtlasFacts): Map<AtlasKind, readonly QuestionDraft[]> {
  const result = new Map<AtlasKind, readonly QuestionDraft[]>();
  const add = <E extends { readonly name: string }>(
    templates: Readonly<Record<string, Template<E>>>,
    entities: readonly E[],
  ): void => {
    for (const [kind, template] of Object.entries(templates))
      result.set(
        kind as AtlasKind,
        entities.map((entity) => draftOf(kind, template, entity)),
      );
  };
  add<Country>(COUNTRY_TEMPLATES, facts.countries);
  add<Airport>(AIRPORT_TEMPLATES, facts.airports);
  add(CURRENCY_TEMPLATES, facts.currencies);
  add(LANGUAGE_TEMPLATES, facts.languages);
  return result;
}

/** The id of an entity's passage, such as `country-saint-lucia`. */
export function atlasPassageId(type: EntityType, name: string): string {
  return `${type}-${name.replaceAll(" ", "-")}`;
}

function draftOf<E extends { readonly name: string }>(
  kind: string,
  template: Template<E>,
  entity: E,
): QuestionDraft {
  const path = template.path(entity);
  return {
    text: template.ask(entity.name),
    goldAnswers: [template.answer(entity)],
    goldPassages: path.map(({ type, name }) => atlasPassageId(type, name)),
    hops: path.length,
    plan: path.map(({ name }) => name),
    kind,
  };
}
