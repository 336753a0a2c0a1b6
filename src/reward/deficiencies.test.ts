import { expect, test } from "vitest";
import { environmentOptionsSchema } from "../environment/environment-options.ts";
import { scriptedRetriever } from "../retrieval/scripted-retriever.ts";
import { runRollout } from "../rollout/rollout.ts";
import { scriptedPolicy } from "../rollout/scripted-policy.ts";
import { type DeficiencyName, deficiencies, deficiencyNames, releasedFlagCount } from "./deficiencies.ts";

const emma = { id: "e", title: "Emma", text: "The novel Emma is by Jane Austen." };

/** Plays `turns`; a query with "Emma" finds the passage, any other finds nothing. */
function play(turns: readonly string[]) {
  return runRollout({
    question: {
      id: "1",
      dataset: "test",
      text: "Who wrote the book",
      goldAnswers: ["Jane Austen"],
      goldPassages: [],
    },
    group: "g",
    sample: 0,
    seed: 1,
    policy: scriptedPolicy(turns),
    retriever: scriptedRetriever((query) => (query.includes("Emma") ? [emma] : [])),
    environment: environmentOptionsSchema.parse({ maxSearches: 3 }),
    sampling: { temperature: 1, topP: 1, topK: 0 },
  });
}

const answer = "<answer>x</answer>";
const search = (query: string): string => `<search>${query}</search>`;

// Worked by hand: what is set, all else is 0. Without an `any` of its own definition a row has none of its flags.
test.each<[string, readonly string[], readonly DeficiencyName[]]>([
  ["a search that finds", [search("Emma"), answer], []],
  ["two different searches", [search("Emma"), search("Emma novel"), answer], []],
  ["a search that finds nothing", [search("Jane"), answer], []],
  ["no search", [answer], ["noSearch", "anyDeficiency", "releasedNoSearch", "releasedAnyDeficiency"]],
  ["a malformed turn", ["hm", search("Emma"), answer], ["malformedAction", "anyDeficiency"]],
  [
    "nothing but malformed turns",
    ["hm", "hm", "hm", "hm"],
    ["malformedAction", "noSearch", "anyDeficiency", "releasedNoSearch", "releasedAnyDeficiency"],
  ],
  ["an empty answer", [search("Emma"), "<answer></answer>", answer], ["malformedAction", "anyDeficiency"]],
  [
    "a query twice",
    [search("Emma"), search(" Emma "), answer],
    ["duplicateQuery", "anyDeficiency", "releasedDuplicateQuery", "releasedAnyDeficiency"],
  ],
  ["a query twice in other letters", [search("Emma"), search("emma Emma"), answer], []],
  [
    "an empty query",
    [search(" "), search("Emma"), answer],
    ["malformedAction", "anyDeficiency", "releasedInvalidQuery", "releasedAnyDeficiency"],
  ],
  [
    "the query and",
    [search("AND"), search("Emma"), answer],
    ["releasedInvalidQuery", "releasedAnyDeficiency"],
  ],
  [
    "a query of punctuation",
    [search("?!."), search("Emma"), answer],
    ["releasedInvalidQuery", "releasedAnyDeficiency"],
  ],
  [
    "a query of one letter",
    [search("x"), search("Emma"), answer],
    ["releasedInvalidQuery", "releasedAnyDeficiency"],
  ],
  ["a query of two letters", [search("xy"), search("Emma"), answer], []],
  [
    "the query of the prompt's example",
    [search("query"), answer],
    ["releasedNoSearch", "releasedAnyDeficiency"],
  ],
  [
    "the example's query twice",
    [search("query"), search("query"), search("Emma"), answer],
    ["duplicateQuery", "anyDeficiency"],
  ],
  [
    "the question as the query",
    [search("who wrote the BOOK?"), answer],
    ["releasedNoRewriting", "releasedAnyDeficiency"],
  ],
  [
    "the question as the query, but recalled later",
    [search("who wrote the book?"), search("Emma"), answer],
    [],
  ],
  ["the question without its article is rewritten", [search("who wrote book"), answer], []],
  ["a search in the last turn only", [search("Emma"), search("a1"), search("a2"), search("Emma")], []],
])("%s", async (_, turns, expected) => {
  const found = deficiencies(await play(turns));
  expect(deficiencyNames.filter((name) => found[name] === 1)).toEqual(expected);
});

test("the queries of a turn with several are counted like those of several turns", async () => {
  const trajectory = await play([search("Emma"), answer]);
  const [first, last] = trajectory.turns;
  const turns = [
    { ...first, action: { type: "searches", queries: ["Emma", "x"] } },
    { ...first, action: { type: "searches", queries: ["Emma"] } },
    last,
  ];
  const found = deficiencies({ ...trajectory, turns: turns as typeof trajectory.turns });
  expect(found).toMatchObject({
    duplicateQuery: 1,
    releasedDuplicateQuery: 1,
    releasedInvalidQuery: 1,
    noSearch: 0,
  });
});

test("flags of the released detector are counted one by one", async () => {
  expect(
    releasedFlagCount(await play([search("x"), search("x"), search("who wrote the book"), answer])),
  ).toBe(3);
  expect(releasedFlagCount(await play([answer]))).toBe(1);
  expect(releasedFlagCount(await play([search("Emma"), answer]))).toBe(0);
});
