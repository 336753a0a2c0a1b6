/**
 * The facts of the `atlas` world, read from two npm packages: `countries-list` (countries, currencies,
 * languages; MIT) and `airport-data-js` (airports; CC BY 4.0). Names are folded to lower-case ASCII words so
 * that a very small model can read and copy them; an airport's name loses its trailing generic words ("aalborg
 * airport" becomes "aalborg") where what is left names nothing else. Nothing else about the facts is changed.
 *
 * A country has one currency and one language here: the first that the package lists.
 */
import type { Airport as AirportRecord } from "airport-data-js";
import { continents, countries, languages } from "countries-list";
import { currencies } from "countries-list/currencies";

export interface Country {
  readonly name: string;
  readonly continent: string;
  readonly capital: string;
  readonly currency: Coded;
  readonly language: Coded;
}

/** A currency with its ISO 4217 code, or a language with its ISO 639-1 code. */
export interface Coded {
  readonly name: string;
  readonly code: string;
}

export interface Airport {
  readonly name: string;
  readonly country: Country;
}

export interface AtlasFacts {
  readonly countries: readonly Country[];
  readonly currencies: readonly Coded[];
  readonly languages: readonly Coded[];
  readonly airports: readonly Airport[];
}

/** Reads the facts, leaving out airports whose name has more than `maxNameWords` words or `maxNameLetters` letters. */
export async function readAtlasFacts(limits: {
  readonly maxNameWords: number;
  readonly maxNameLetters: number;
}): Promise<AtlasFacts> {
  const byCode = readCountries();
  const all = [...byCode.values()];
  const facts = {
    countries: all,
    currencies: distinct(all.map((country) => country.currency)),
    languages: distinct(all.map((country) => country.language)),
  };
  const taken = [...facts.countries, ...facts.currencies, ...facts.languages].map(({ name }) => name);
  // Loaded when asked for: it unpacks megabytes, which would slow down the start of every command.
  const module = await import("airport-data-js");
  // The package is CommonJS: Node gives its functions as `default`, other loaders (tsx) one by one.
  const airports = module.default ?? module;
  const records = [
    ...(await airports.getAirportsByType("large_airport")),
    ...(await airports.getAirportsByType("medium_airport")),
  ].filter((record) => byCode.has(record.country_code));
  const named = nameAirports(records, taken).filter(
    ({ name }) => name.split(" ").length <= limits.maxNameWords && name.length <= limits.maxNameLetters,
  );
  return {
    ...facts,
    airports: named.map(({ name, record }) => ({
      name,
      country: byCode.get(record.country_code) as Country,
    })),
  };
}

/** Lower-case ASCII words: "Sao Tome & Principe" for "São Tomé & Príncipe", "ndjamena" for "N'Djamena". */
export function foldName(name: string): string {
  return name
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .toLowerCase()
    .replace(/[\u0131øłđßæœðþħə]/g, (letter) => FOLDED[letter] ?? letter)
    .replace(/['’‘ʻʼ`.]/g, "")
    .replace(/&/g, " and ")
    .replace(/[^a-z0-9]+/g, " ")
    .trim();
}

/** Letters that Unicode does not take apart. */
const FOLDED: Readonly<Record<string, string>> = {
  ı: "i",
  ø: "o",
  ł: "l",
  đ: "d",
  ß: "ss",
  æ: "ae",
  œ: "oe",
  ð: "d",
  þ: "th",
  ħ: "h",
  ə: "e",
};

/** Names that the package gives wrongly: "Somalia" for the language of Somalia, "Rwandi" for Kinyarwanda. */
const LANGUAGE_NAMES: Readonly<Record<string, string>> = { so: "Somali", rw: "Kinyarwanda" };

/** Countries by ISO 3166 code; those without capital, currency or language are left out. */
function readCountries(): Map<string, Country> {
  const result = new Map<string, Country>();
  for (const [code, country] of Object.entries(countries)) {
    const [currency] = country.currency;
    const [language] = country.languages;
    if (!country.capital || currency === undefined || language === undefined) continue;
    result.set(code, {
      name: foldName(country.name),
      continent: foldName(continents[country.continent]),
      capital: foldName(country.capital),
      currency: { name: foldName(currencies[currency].name), code: currency.toLowerCase() },
      language: { name: languageName(language), code: language },
    });
  }
  return result;
}

/** The first of the names that the package gives, such as "tagalog" of "Tagalog / Filipino". */
function languageName(code: keyof typeof languages): string {
  return foldName(LANGUAGE_NAMES[code] ?? (languages[code].name.split("/")[0] as string));
}

function distinct(values: readonly Coded[]): Coded[] {
  return [...new Map(values.map((value) => [value.name, value])).values()];
}

/** Generic words that end an airport's name and that every reader may leave out. */
const GENERIC = new Set([
  "airport",
  "international",
  "intl",
  "regional",
  "municipal",
  "domestic",
  "national",
]);

interface NamedAirport {
  readonly name: string;
  readonly record: AirportRecord;
}

/**
 * Airports with names that nothing else has. An airport that has no such name is left out, and so is one whose
 * name contains a name of `taken` ("chile chico"): a search for that name would find the airport first.
 */
function nameAirports(records: readonly AirportRecord[], taken: readonly string[]): NamedAirport[] {
  const full = records.map((record) => foldName(record.airport));
  const short = full.map(withoutGenericWords);
  const fullCount = countOf(full);
  const shortCount = countOf(short);
  const takenWords = new RegExp(`\\b(?:${taken.join("|")})\\b`);
  return records.flatMap((record, index) => {
    const [name, long] = [short[index] as string, full[index] as string];
    if (long === "" || takenWords.test(long)) return [];
    if (name !== "" && shortCount.get(name) === 1) return [{ name, record }];
    return fullCount.get(long) === 1 && !shortCount.has(long) ? [{ name: long, record }] : [];
  });
}

function withoutGenericWords(name: string): string {
  const words = name.split(" ");
  while (words.length > 0 && GENERIC.has(words.at(-1) as string)) words.pop();
  return words.join(" ");
}

function countOf(values: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return counts;
}
