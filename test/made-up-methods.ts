/** A table of methods and a sweep of made-up numbers, with names that try to break out of the page; for tests of both pages. */
import { type MeasuredMethod, type MethodTable, methodTable } from "../src/evaluation/method-table.ts";
import { riskCoverage } from "../src/evaluation/risk-coverage.ts";
import { frontOf, type SweepPoint, sweepCosts } from "../src/evaluation/sweep.ts";
import type { Sweep } from "../src/reporting/sweep-report.ts";
import { random } from "../src/shared/random.ts";
import { makeContract, makeItem, makeResult } from "./make-result.ts";

export const hostileName = "<img src=x onerror=alert(1)> & co";

const sets = { nq: 60, hotpotqa: 40, "2wikimultihopqa": 20 };

/** A method that is right with probability `skill`. */
function method(name: string, skill: number, searches: number): MeasuredMethod {
  const chance = random(7, name);
  const sure = random(9, name);
  const items = Object.entries(sets).flatMap(([dataset, n]) =>
    Array.from({ length: n }, (_, id) => {
      const em = chance.next() < skill ? 1 : 0;
      return makeItem({
        dataset,
        id: String(id),
        em,
        coverEm: em,
        f1: Math.max(em, chance.next() / 2),
        score: chance.next() < 0.9 ? em : 1 - em,
        retrievalRecall: chance.next(),
        answerRetrieved: chance.next() < 0.6 ? 1 : 0,
        searches: searches === 0 ? 0 : searches + chance.below(2),
        redundantSearches: chance.next() * searches * 0.3,
        searchesAfterEvidence: chance.next() * searches * 0.2,
        policyTokens: 40 + 60 * searches,
        totalTokens: 60 + 300 * searches,
        timeMs: 800 + 900 * searches,
        retrievalMs: 30 * searches,
        totalDollars: 0.0004 + 0.0011 * searches,
        judgeTokens: 80,
        anyDeficiency: chance.next() < 0.1 ? 1 : 0,
        ...(searches > 1.5 && { answer: "x", confidence: 0.3 + 0.4 * em + 0.3 * sure.next() }),
      });
    }),
  );
  const selective = riskCoverage(items);
  const contract = makeContract({ n: items.length, split: "nq:test+hotpotqa:dev" });
  return { name, result: { ...makeResult(items, contract), ...(selective && { selective }) } };
}

/** Seven methods, one of them broken. */
export function madeUpTable(): MethodTable {
  const methods = [
    method("direct", 0.18, 0),
    method("rag", 0.3, 1),
    method("ircot", 0.27, 2),
    method("search-o1", 0.31, 1.6),
    method("rejection-sampling", 0.36, 1.7),
    method("search-r1", 0.45, 1.8),
    { name: hostileName, failure: `there is nothing at ${hostileName}; check the path` },
  ];
  return methodTable(methods, { seed: 1, reference: "rag" });
}

/** Six values, one of which failed. */
export function madeUpSweep(): Sweep {
  const at = (value: number, utility: number, searches: number): SweepPoint => ({
    value,
    utility,
    utilityInterval: [utility - 0.05, utility + 0.05],
    searches,
    tokens: 100 + 160 * searches,
    seconds: 0.4 + 0.3 * searches,
    dollars: 0.001 * searches,
    n: 256,
  });
  const points = [
    at(0, 0.6, 2.26),
    at(0.005, 0.606, 1.89),
    at(0.05, 0.599, 1.76),
    at(0.125, 0.51, 1),
    at(0.25, 0.49, 1),
  ];
  return {
    name: "lab-planner",
    key: "planner.alpha",
    utility: "score",
    points,
    fronts: sweepCosts.flatMap((cost) => frontOf(points, cost, cost === "searches" ? 4 : undefined) ?? []),
    failures: [{ value: 1, message: `the run ${hostileName} has no checkpoint` }],
  };
}
