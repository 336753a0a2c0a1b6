import { describe, expect, test } from "vitest";
import { ConfigError } from "../errors.ts";
import { foldName } from "./atlas-facts.ts";
import { ATLAS_KINDS } from "./atlas-questions.ts";
import { corpusHash } from "./corpus-hash.ts";
import type { Passage } from "./passage.ts";
import { type Question, questionKey } from "./question.ts";
import { makeWorld, type World } from "./world.ts";

const world = await makeWorld({ name: "atlas", hops: [1, 2, 3] });
const passages = new Map(world.passages.map((passage) => [passage.id, passage]));
const all = Object.values(world.questions).flat();
const find = (id: string) => passages.get(id) ?? expect.fail(`no passage ${id}`);

describe("atlas", () => {
  test("is the same each time, and the same facts as in earlier versions", async () => {
    expect(await makeWorld({ name: "atlas", hops: [1, 2, 3] })).toEqual(world);
    expect(corpusHash(world.passages)).toBe(
      "de8e944c49cf732acfea031e079af0871b32bc66e7c7dec5b3b5a8967182eb9f",
    );
  });

  test("has thousands of real facts with sources and licences", () => {
    expect(world.passages.length).toBeGreaterThan(8000);
    expect(world.sources.map(({ licence }) => licence)).toEqual(["MIT", "CC-BY-4.0"]);
    expect(find("country-france").text).toBe(
      "france is a country in europe . france has capital paris and currency euro and language french .",
    );
    expect(find("airport-london-heathrow").text).toBe("london heathrow is an airport in united kingdom .");
    expect(find("currency-swiss-franc").text).toBe("swiss franc is a currency with code chf .");
    expect(find("language-kinyarwanda").text).toBe("kinyarwanda is a language with code rw .");
  });

  test("gives every entity a passage, an id and a name of its own, in plain words", () => {
    expect(passages.size).toBe(world.passages.length);
    expect(new Set(world.passages.map(({ title }) => title)).size).toBe(world.passages.length);
    const isPlain = ({ title, text }: Passage): boolean =>
      /^[a-z0-9]+( [a-z0-9]+)*$/.test(title) &&
      /^[a-z0-9 .]+ \.$/.test(text) &&
      text.startsWith(`${title} is `);
    expect(world.passages.filter((passage) => !isPlain(passage))).toEqual([]);
  });

  test("keeps airports to short names", async () => {
    const short = await makeWorld({ name: "atlas", maxNameWords: 1, maxNameLetters: 8 });
    const airports = short.passages.filter(({ id }) => id.startsWith("airport-"));
    expect(airports.length).toBeGreaterThan(1000);
    expect(airports.filter(({ title }) => !/^[a-z0-9]{1,8}$/.test(title))).toEqual([]);
  });

  test("names an entity in the questions of one split only", () => {
    const named = (questions: readonly Question[]) =>
      new Set(questions.map(({ goldPassages }) => goldPassages[0]));
    const [train, validation, held] = Object.values(world.questions).map(named);
    expect([...(held ?? [])].filter((id) => train?.has(id) || validation?.has(id))).toEqual([]);
    expect([...(validation ?? [])].filter((id) => train?.has(id))).toEqual([]);
    // Every type of entity is held out, not airports alone.
    const types = new Set([...(held ?? [])].map((id) => id?.split("-")[0]));
    expect(types).toEqual(new Set(["airport", "country", "currency", "language"]));
  });

  test("asks thousands of different questions in training and balances the hops of the others", () => {
    expect(world.questions.train.length).toBe(8000);
    expect(new Set(all.map(questionKey)).size).toBe(all.length);
    expect(new Set(all.map(({ text }) => text)).size).toBe(all.length);
    expect(hopCounts(world.questions.validation)).toEqual({ 1: 100, 2: 100, 3: 100 });
    expect(hopCounts(world.questions.test)).toEqual({ 1: 300, 2: 300, 3: 300 });
  });

  test("asks every kind in every split", () => {
    for (const questions of Object.values(world.questions))
      expect(new Set(questions.map(({ kind }) => kind))).toEqual(new Set(ATLAS_KINDS));
  });

  test("begins each kind of question with a word of its own", () => {
    const firstWords = new Map(all.map(({ kind, text }) => [kind, text.split(" ")[0]]));
    expect(new Set(firstWords.values()).size).toBe(ATLAS_KINDS.length);
    expect(all.filter(({ kind, text }) => text.split(" ")[0] !== firstWords.get(kind))).toEqual([]);
  });

  test("has the answer in the last gold passage, and the name of each in the one before or in the question", () => {
    const isChain = ({ text, goldAnswers, goldPassages, plan = [], hops }: Question): boolean => {
      const read = goldPassages.map(find);
      const sources = [text, ...read.map((passage) => passage.text)];
      const names = [...plan, goldAnswers[0]];
      return (
        read.length === hops &&
        read.every(({ title }, step) => title === plan[step]) &&
        names.every((name, step) => sources[step]?.includes(` ${name} `))
      );
    };
    expect(all.filter((question) => !isChain(question))).toEqual([]);
  });

  test("asks only the hops and kinds it is told to", async () => {
    const some = await makeWorld({ name: "atlas", hops: [2], kinds: ["airport-capital", "airport-country"] });
    expect(new Set(some.questions.train.map(({ kind }) => kind))).toEqual(new Set(["airport-capital"]));
    expect(some.passages).toEqual(world.passages);
  });

  test("splits otherwise with another seed", async () => {
    const other = await makeWorld({ name: "atlas", hops: [1, 2, 3], seed: 2 });
    expect(other.passages).toEqual(world.passages);
    expect(texts(other)).not.toEqual(texts(world));
  });

  test("refuses kinds that none of the hops has", async () => {
    await expect(makeWorld({ name: "atlas", hops: [3], kinds: ["airport-country"] })).rejects.toThrow(
      ConfigError,
    );
  });

  test("refuses unknown keys", async () => {
    const options = { name: "atlas", hop: 1 } as unknown as { name: "atlas" };
    await expect(makeWorld(options)).rejects.toThrow(/world options: .*hop/s);
  });
});

test.each([
  ["São Tomé & Príncipe", "sao tome and principe"],
  ["N'Djamena", "ndjamena"],
  ["Tongan Paʻanga", "tongan paanga"],
  ["Washington D.C.", "washington dc"],
  ["Port-au-Prince", "port au prince"],
  ["Łódź — Ørsta/Þórshöfn", "lodz orsta thorshofn"],
  ["", ""],
])("the name %j is folded to %j", (name, folded) => {
  expect(foldName(name)).toBe(folded);
});

function hopCounts(questions: readonly Question[]): Record<number, number> {
  const counts: Record<number, number> = {};
  for (const { hops = 0 } of questions) counts[hops] = (counts[hops] ?? 0) + 1;
  return counts;
}

function texts({ questions }: World): string[] {
  return questions.test.map(({ text }) => text).sort();
}
