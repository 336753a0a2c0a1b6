import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ConfigError } from "../errors.ts";
import { random } from "../shared/random.ts";
import { corpusHash } from "./corpus-hash.ts";
import { labFacts, permutation } from "./lab-facts.ts";
import { labOptionsSchema } from "./lab-options.ts";
import { labPassages } from "./lab-passages.ts";
import type { Passage } from "./passage.ts";
import type { Question } from "./question.ts";
import { makeWorld, type World } from "./world.ts";

const world = await makeWorld({ name: "lab" });
const titles = (of: World) => new Map(of.passages.map(({ id, title }) => [id, title]));

describe("lab", () => {
  test("is the same each time, and the same as in earlier versions", async () => {
    expect(await makeWorld({ name: "lab" })).toEqual(world);
    expect(corpusHash(world.passages)).toBe(
      "3ec4d03c206c6a9c527ed4b116af4367799e90a05fdb3aa2fde502ae6e661a77",
    );
  });

  test("gives each entity a name of two words and its facts", () => {
    expect(world.passages).toHaveLength(1000);
    expect(new Set(world.passages.map(({ title }) => title)).size).toBe(1000);
    const isFact = ({ title, text }: Passage): boolean =>
      /^[a-z]{4,5} [a-z]{4,5}$/.test(title) &&
      new RegExp(`^${title} has mentor \\w+ \\w+ and rival \\w+ \\w+ and partner \\w+ \\w+ \\.$`).test(text);
    expect(world.passages.filter((passage) => !isFact(passage))).toEqual([]);
  });

  test("asks questions whose chain of passages leads to the answer", () => {
    const byId = new Map(world.passages.map((passage) => [passage.id, passage]));
    const isChain = ({ text, goldAnswers, goldPassages, plan = [], hops, kind = "" }: Question): boolean => {
      const chain = kind.split("-");
      const names = [...plan, goldAnswers[0]];
      return (
        chain.length === hops &&
        text ===
          `who is ${[...chain]
            .reverse()
            .map((relation) => `the ${relation} of`)
            .join(" ")} ${plan[0]} ?` &&
        goldPassages.every((id, step) => byId.get(id)?.title === plan[step]) &&
        chain.every((relation, step) =>
          byId.get(goldPassages[step] as string)?.text.includes(` ${relation} ${names[step + 1]} `),
        ) &&
        new Set(names).size === names.length
      );
    };
    expect(
      Object.values(world.questions)
        .flat()
        .filter((question) => !isChain(question)),
    ).toEqual([]);
  });

  test("names an entity in the questions of one split only, without repeats", () => {
    const [train, validation, held] = Object.values(world.questions).map(
      (questions) => new Set(questions.map(({ goldPassages }) => goldPassages[0])),
    ) as [Set<string>, Set<string>, Set<string>];
    expect([...held].filter((id) => train.has(id) || validation.has(id))).toEqual([]);
    expect([...validation].filter((id) => train.has(id))).toEqual([]);
    for (const questions of Object.values(world.questions))
      expect(new Set(questions.map(({ text }) => text)).size).toBe(questions.length);
  });

  test("asks familiar questions in every split, in training as a kind and elsewhere half the time", async () => {
    const options = { name: "lab" as const, relations: 2, hops: [1], familiar: 20 };
    const {
      train,
      validation,
      test: held,
    } = (await makeWorld({ ...options, trainQuestions: 100, testQuestions: 50 })).questions;
    const textsOf = (questions: readonly Question[], kind: string): string[] =>
      questions.filter((question) => question.kind === kind).map(({ text }) => text);
    const known = textsOf(train, "familiar");
    expect(known).toHaveLength(20);
    for (const questions of [validation, held]) {
      expect(textsOf(questions, "familiar").sort()).toEqual([...known].sort());
      expect(textsOf(questions, "mentor").filter((text) => known.includes(text))).toEqual([]);
      expect(new Set(questions.map(({ id }) => id)).size).toBe(questions.length);
    }
    expect(textsOf(held, "mentor")).toHaveLength(25);
    expect(textsOf(train, "mentor").filter((text) => known.includes(text))).toEqual([]);
  });

  test("refuses familiar questions without a relation of their own, and more than are trained on", async () => {
    const options = { name: "lab" as const, relations: 2, hops: [1], familiar: 20 };
    await expect(makeWorld({ ...options, relations: 1 })).rejects.toThrow(/set relations to at least 2/);
    await expect(makeWorld({ ...options, trainQuestions: 10 })).rejects.toThrow(
      "20 familiar questions are more than 10 training questions",
    );
  });

  test("balances the hops, up to what there is to ask", () => {
    const counts = (questions: World["questions"]["test"]) =>
      [1, 2].map((hops) => questions.filter((question) => question.hops === hops).length);
    expect(counts(world.questions.train)).toEqual([2000, 2000]);
    expect(counts(world.questions.test)).toEqual([300, 300]);
  });

  test("asks as many hops as it is told to", async () => {
    const deep = await makeWorld({ name: "lab", hops: [4, 6], relations: 12, trainQuestions: 100 });
    expect(new Set(deep.questions.train.map(({ plan }) => plan?.length))).toEqual(new Set([4, 6]));
  });

  test("uses fewer words the more of them are shared", async () => {
    const wordsAt = async (sharedWords: number) => {
      const { passages } = await makeWorld({ name: "lab", sharedWords });
      return new Set(passages.flatMap(({ title }) => title.split(" "))).size;
    };
    const [all, some, few] = [await wordsAt(0), await wordsAt(0.5), await wordsAt(1)];
    // 32 words are the least that can name 1000 entities.
    expect(few).toBe(32);
    expect(some).toBeGreaterThan(few);
    expect(all).toBeGreaterThan(some);
    expect(all).toBeLessThanOrEqual(300);
  });

  test("distractors name their entity and hold none of the facts", async () => {
    const noisy = await makeWorld({ name: "lab", distractors: 2 });
    expect(noisy.passages).toHaveLength(3000);
    expect(noisy.questions).toEqual(world.questions);
    const added = noisy.passages.filter(({ id }) => /-\d+-\d+$/.test(id));
    expect(added).toHaveLength(2000);
    const names = titles(world);
    const isNoise = ({ id, title, text }: Passage): boolean =>
      title.startsWith(`${names.get(id.replace(/-\d+$/, ""))} and `) && !/mentor|rival|partner/.test(text);
    expect(added.filter((passage) => !isNoise(passage))).toEqual([]);
  });

  test("streams passages one by one, however many entities there are", () => {
    const options = labOptionsSchema.parse({ name: "lab", entities: 1_000_000, nameWords: 3000 });
    let count = 0;
    for (const { title } of labPassages(options)) {
      if (title === "") break;
      if (++count === 20_000) break;
    }
    expect(count).toBe(20_000);
  });

  test("refuses more entities than its words can name", async () => {
    const making = makeWorld({ name: "lab", entities: 1000, nameWords: 31 });
    await expect(making).rejects.toThrow(ConfigError);
    await expect(making).rejects.toThrow(/31 name words make 961 names .* set nameWords to at least 32/);
  });
});

test("a permutation reaches every number once", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 500 }), fc.nat(), (size, seed) => {
      const at = permutation(size, random(seed));
      expect(new Set(Array.from({ length: size }, (_, index) => at(index))).size).toBe(size);
      expect(Math.max(...Array.from({ length: size }, (_, index) => at(index)))).toBe(size - 1);
    }),
  );
});

test("no entity is related to itself", () => {
  const facts = labFacts({ seed: 3, entities: 20, wordsInUse: 5, relations: 12 });
  for (const relation of facts.relations)
    for (let entity = 0; entity < 20; entity++) {
      const other = facts.otherEntity(entity, relation);
      expect(other).not.toBe(entity);
      expect(other).toBeGreaterThanOrEqual(0);
      expect(other).toBeLessThan(20);
    }
});
