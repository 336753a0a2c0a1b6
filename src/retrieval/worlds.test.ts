/** The built-in worlds are made to be found: what a perfect searcher asks for is among the first three passages. */
import { expect, test } from "vitest";
import { labFacts, MAX_NAME_WORDS } from "../corpus/lab-facts.ts";
import { makeWorld, type World } from "../corpus/world.ts";
import { buildBm25Index } from "./lexical/bm25.ts";
import { porter2 } from "./lexical/porter2.ts";

/** The share of the gold passages that are among the first `k` for their query of the plan. */
async function planRecall({ passages, questions }: World, k: number): Promise<number> {
  const index = await buildBm25Index(passages);
  const wanted = new Map(
    Object.values(questions)
      .flat()
      .flatMap(({ plan = [], goldPassages }) => plan.map((query, step) => [query, goldPassages[step]])),
  );
  const answers = await index.retrieve([...wanted.keys()] as string[], k);
  const found = [...wanted.values()].filter((id, at) =>
    answers[at]?.some(({ passage }) => passage.id === id),
  );
  return found.length / wanted.size;
}

test("every step of a plan in atlas finds its passage", async () => {
  const world = await makeWorld({ name: "atlas", hops: [1, 2, 3] });
  expect(await planRecall(world, 3)).toBeGreaterThanOrEqual(0.99);
  expect(await planRecall(world, 1)).toBeGreaterThanOrEqual(0.95);
});

test("every step of a plan in lab finds its passage, until words are shared and distractors added", async () => {
  expect(await planRecall(await makeWorld({ name: "lab" }), 3)).toBe(1);
  expect(await planRecall(await makeWorld({ name: "lab", distractors: 3 }), 3)).toBeGreaterThan(0.99);
  expect(await planRecall(await makeWorld({ name: "lab", distractors: 3, sharedWords: 1 }), 3)).toBeLessThan(
    0.9,
  );
});

test("a stemmer takes no two name words for one", () => {
  const facts = labFacts({ seed: 1, entities: MAX_NAME_WORDS, wordsInUse: MAX_NAME_WORDS, relations: 1 });
  const words = new Set(Array.from({ length: 50_000 }, (_, i) => facts.nameOf(i).split(" ")).flat());
  expect(words.size).toBeGreaterThan(MAX_NAME_WORDS * 0.99);
  expect(new Set([...words].map(porter2)).size).toBe(words.size);
});
