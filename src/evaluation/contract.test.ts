import { expect, test } from "vitest";
import { makeContract } from "../../test/make-result.ts";
import { makeQuestion } from "../../test/make-trajectory.ts";
import { contractDifferences, type EvaluationContract, hashQuestions } from "./contract.ts";

test("equal contracts, another model and another seed may be compared", () => {
  const other = makeContract({ seed: 2, model: { type: "scripted", model: "m1" } });
  expect(contractDifferences(makeContract(), other)).toEqual([]);
});

test.each<{ change: Partial<EvaluationContract>; key: string; a: unknown; b: unknown }>([
  { change: { k: 5 }, key: "k", a: 3, b: 5 },
  { change: { corpusHash: "c1" }, key: "corpusHash", a: "c0", b: "c1" },
  { change: { sampling: { temperature: 1, topP: 1, topK: 0 } }, key: "sampling.temperature", a: 0, b: 1 },
  { change: { limits: { maxSearches: 4, tellBudget: true } }, key: "limits.tellBudget", a: false, b: true },
  { change: { limits: { maxSearches: 4 } }, key: "limits.tellBudget", a: false, b: undefined },
  { change: { codeVersion: "0.2.0" }, key: "codeVersion", a: "0.1.0", b: "0.2.0" },
  {
    change: { retriever: { method: "bm25", indexHash: "i0", parameters: { k1: 0.9, b: 0.75 } } },
    key: "retriever.parameters.k1",
    a: 1.2,
    b: 0.9,
  },
])("$key must be equal", ({ change, key, a, b }) => {
  expect(contractDifferences(makeContract(), makeContract(change))).toEqual([{ key, a, b }]);
  expect(contractDifferences(makeContract(change), makeContract())).toEqual([{ key, a: b, b: a }]);
});

test("the hash of questions depends on what is asked and accepted, not on the order", () => {
  const [first, second] = [makeQuestion({ id: "1" }), makeQuestion({ id: "2", text: "And of Spain?" })];
  expect(hashQuestions([first, second])).toBe(hashQuestions([second, first]));
  expect(hashQuestions([first, second])).not.toBe(hashQuestions([first]));
  expect(hashQuestions([first])).not.toBe(hashQuestions([{ ...first, goldAnswers: ["Paris", "paris"] }]));
  expect(hashQuestions([first])).not.toBe(hashQuestions([{ ...first, dataset: "nq" }]));
});
