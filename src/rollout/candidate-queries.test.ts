import { expect, test } from "vitest";
import { candidateQueries } from "./candidate-queries.ts";
import { mentions } from "./mentions.ts";

const question = 'Which river flows through the city where "Emma Bovary" was written by Gustave Flaubert?';
const seen = "Doc 1(Title: Croisset) Flaubert lived at Croisset, near Rouen (Normandy).";

test("the question comes first, then what it names", () => {
  expect(candidateQueries({ question: ` ${question} `, seen: "", missingTitles: [] })).toEqual([
    question,
    "Emma Bovary",
    "Gustave Flaubert",
  ]);
});

test("a missing title is asked for once a passage mentions it, alone and with words of the question", () => {
  expect(candidateQueries({ question, seen: "", missingTitles: ["Rouen"] })).not.toContain("Rouen");
  const [, ...rest] = candidateQueries({ question, seen, missingTitles: ["Rouen"] });
  expect(rest.slice(0, 3)).toEqual([
    "Rouen",
    "Rouen Bovary written Gustave Flaubert",
    "Rouen river flows through city Emma Bovary written Gustave Flaubert",
  ]);
});

test("a title is asked for in the form that was read", () => {
  expect(candidateQueries({ question, seen, missingTitles: ["Rouen (city)"] })).toContain("Rouen");
  expect(candidateQueries({ question, seen, missingTitles: ["Rouen (Normandy)"] })).toContain(
    "Rouen (Normandy)",
  );
});

test("names keep their joining words and lose the question word", () => {
  const names = candidateQueries({
    question: "Did Lord of the Rings or Toy Story 3 win?",
    seen: "",
    missingTitles: [],
  });
  expect(names.slice(1)).toEqual(["Lord of the Rings", "Toy Story 3"]);
});

test.each([
  ["He met René Descartes.", "rene descartes", true],
  ["Emma's house", "Emma", true],
  ["Emmanuel", "Emma", false],
  ["anything", "...", false],
])("%j mentions %j: %s", (text, name, expected) => {
  expect(mentions(text, name)).toBe(expected);
});
