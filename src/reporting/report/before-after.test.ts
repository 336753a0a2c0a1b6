import { describe, expect, it } from "vitest";
import { summarize } from "../../evaluation/aggregate.ts";
import type { EvaluationContract } from "../../evaluation/contract.ts";
import type { Item, ScoredItem } from "../../evaluation/item.ts";
import type { StoredEvaluation } from "../run-folder.ts";
import { beforeAfter, headline, verdict } from "./before-after.ts";
import { evaluationTable } from "./tables.ts";

const contract: EvaluationContract = {
  corpusHash: "c",
  retriever: { method: "bm25", indexHash: "i", parameters: {} },
  k: 3,
  split: "test",
  n: 20,
  questionsHash: "q",
  promptHash: "p",
  templateHash: "t",
  codec: "search-r1",
  limits: {},
  normaliser: "squad",
  judge: "exactMatch",
  sampling: { temperature: 0, topP: 1, topK: 0 },
  model: { type: "scripted", model: "m" },
  codeVersion: "0",
  seed: 1,
};

function item(index: number, em: number): ScoredItem {
  return {
    dataset: "lab",
    id: String(index),
    hops: 1 + (index % 2),
    stopReason: "answer",
    failed: false,
    em,
    coverEm: em,
    f1: em,
    answerRetrieved: em,
    searches: 1 + em,
    policyTokens: 20,
    contextTokens: 100,
    timeMs: 5,
  };
}

/** `right` of 20 questions answered exactly. */
function evaluation(
  name: string,
  right: number,
  changes: Partial<EvaluationContract> = {},
): StoredEvaluation {
  const items: Item[] = Array.from({ length: 20 }, (_, index) => item(index, index < right ? 1 : 0));
  const result = { contract: { ...contract, ...changes }, items, summary: summarize(items, { seed: 1 }) };
  return { name, stage: "grpo", step: 0, result };
}

const compare = (...evaluations: readonly StoredEvaluation[]) => {
  const compared = beforeAfter(evaluations);
  if (!compared) throw new Error("nothing to compare");
  return compared;
};

describe("the headline", () => {
  it("says in words what changed, with intervals and n", () => {
    const title = headline(compare(evaluation("after", 16), evaluation("before", 2)));
    expect(title).toMatch(
      /^Exact match rose from 0\.10 \(0\.\d\d–0\.\d\d\) to 0\.80 \(0\.\d\d–0\.\d\d\) on 20 held-out questions$/,
    );
    expect(headline(compare(evaluation("after", 2), evaluation("before", 10)))).toMatch(
      /^Exact match fell from 0\.50/,
    );
    expect(headline(compare(evaluation("after", 10), evaluation("before", 10)))).toMatch(
      /^Exact match stayed at 0\.50/,
    );
  });

  it("says what there is when there is one evaluation, and nothing without any", () => {
    expect(headline(compare(evaluation("before", 10)))).toMatch(/^Exact match is 0\.50 .* on 20 held-out/);
    expect(beforeAfter([])).toBeUndefined();
  });
});

describe("the verdict", () => {
  it("follows the paired test", () => {
    expect(verdict(compare(evaluation("after", 16), evaluation("before", 2)))[0]).toMatch(
      /^After is better than before: the difference is \+0\.70 \(95 % interval .* on 20 questions, p < 0\.001\)\.$/,
    );
    expect(verdict(compare(evaluation("after", 2), evaluation("before", 10)))[0]).toMatch(/^After is worse/);
    expect(verdict(compare(evaluation("after", 11), evaluation("before", 10)))[0]).toMatch(
      /not distinguishable/,
    );
  });

  it("refuses a comparison of results that measure different things, and says why", () => {
    const compared = compare(evaluation("after", 16, { k: 5 }), evaluation("before", 2));
    expect(verdict(compared)).toEqual([expect.stringContaining("k is 3 and 5")]);
    expect(evaluationTable(compared).markup).not.toContain("p &lt; 0.001");
  });

  it("counts the questions that failed", () => {
    const { result, ...rest } = evaluation("after", 16);
    const lost: Item = {
      dataset: "lab",
      id: "lost",
      stopReason: "retrieverFailure",
      failed: true,
      failure: "down",
    };
    const items = [...result.items, lost];
    const after = { ...rest, result: { ...result, items, summary: summarize(items, { seed: 1 }) } };
    expect(verdict(compare(after, evaluation("before", 2))).at(-1)).toMatch(/^1 question was lost/);
  });
});

describe("the table", () => {
  const { markup } = evaluationTable(compare(evaluation("after", 16), evaluation("before", 2)));
  const cells = markup
    .replaceAll(/<svg.*?<\/svg>/g, "")
    .replaceAll(/<[^>]+>/g, "|")
    .replaceAll(/\|+/g, "|");

  it("shows every measure that was taken, with n, both intervals and the difference", () => {
    expect(cells).toMatch(
      /\|Exact match\|20\|0\.10 \|\(0\.\d\d–0\.\d\d\)\|0\.80 \|\(0\.\d\d–0\.\d\d\)\|\+0\.70\| \|/,
    );
    expect(cells).not.toContain("Gold passages found");
  });

  it("breaks exact match and searches down by hops", () => {
    expect(cells).toMatch(/Exact match by hops\|1 hop\|10\|.*\|2 hops\|10\|.*Searches by hops\|1 hop\|/);
    expect(cells).not.toContain("by data set");
  });

  it("folds how searches were used below what was gained", () => {
    const used = (name: string, right: number): StoredEvaluation => {
      const { result, ...rest } = evaluation(name, right);
      const items = result.items.map((one) => ({ ...one, redundantSearches: 0, retrievalMs: 1 }));
      return { ...rest, result: { ...result, items, summary: summarize(items, { seed: 1 }) } };
    };
    const parts = evaluationTable(compare(used("after", 16), used("before", 2))).markup.split("<details");
    expect(parts[0]).toContain("Searches by hops");
    expect(parts[1]).toMatch(/Use of searches.*Redundant searches.*What an answer took/);
    expect(markup).not.toContain("<details");
  });

  it("judges scores by colour, never costs", () => {
    expect(markup).toMatch(/Exact match<.*?class="good"/);
    expect(markup).toMatch(/Searches a question<(?:(?!<\/tr>).)*<strong>\+/);
  });
});
