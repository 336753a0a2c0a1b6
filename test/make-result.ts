/** Items and results of evaluations for tests, from as little as a test cares about. */
import { summarize } from "../src/evaluation/aggregate.ts";
import type { EvaluationContract } from "../src/evaluation/contract.ts";
import type { Item, ScoredItem } from "../src/evaluation/item.ts";
import type { EvaluationResult } from "../src/evaluation/result.ts";

export function makeItem(changes: Partial<ScoredItem> = {}): ScoredItem {
  return {
    dataset: "nq",
    id: "1",
    stopReason: "answer",
    failed: false,
    em: 0,
    coverEm: 0,
    f1: 0,
    answerRetrieved: 0,
    searches: 1,
    policyTokens: 10,
    contextTokens: 50,
    timeMs: 5,
    ...changes,
  };
}

export function makeContract(changes: Partial<EvaluationContract> = {}): EvaluationContract {
  return {
    corpusHash: "c0",
    retriever: { method: "bm25", indexHash: "i0", parameters: { k1: 1.2, b: 0.75 } },
    k: 3,
    split: "test",
    n: 2,
    questionsHash: "q0",
    promptHash: "p0",
    templateHash: "t0",
    codec: "search-r1",
    limits: { maxSearches: 4, tellBudget: false },
    normaliser: "squad",
    judge: "exactMatch",
    sampling: { temperature: 0, topP: 1, topK: 0 },
    model: { type: "embedded", model: "m0" },
    codeVersion: "0.1.0",
    seed: 1,
    ...changes,
  };
}

export function makeResult(items: readonly Item[], contract = makeContract()): EvaluationResult {
  return { contract, summary: summarize(items, { seed: 1 }), items: [...items] };
}
