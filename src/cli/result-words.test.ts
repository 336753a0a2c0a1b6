/** What people read of a result: of judges that do not keep to their task, and of citations. */
import { expect, test } from "vitest";
import { makeContract, makeItem, makeResult } from "../../test/make-result.ts";
import { plannerText } from "./planner-text.ts";
import { searchUseText } from "./result-text.ts";

test("a judge that never says yes or no is named as one", () => {
  const judged = (unreadable: 0 | 1) =>
    makeResult(
      [makeItem({ score: 0, judgeAgreement: 1 - unreadable, judgeUnreadable: unreadable })],
      makeContract({ answerJudge: { judge: "model x", judgeRule: "exactMatch" } }),
    );
  expect(plannerText(judged(1))).toBe(
    "judged by model x: 0.000; judge and rule agree on 0 %; the judge said neither yes nor no to 100 %, which count as wrong",
  );
  expect(plannerText(judged(0))).toBe("judged by model x: 0.000; judge and rule agree on 100 %");
});

test("citations are told with precision and recall", () => {
  const use = { redundantSearches: 0, searchesAfterEvidence: 0 };
  const cited = makeResult([makeItem({ ...use, citationPrecision: 0.5, citationRecall: 1 })]);
  expect(searchUseText(cited)).toContain("citations: precision 0.500, recall 1.000");
  expect(searchUseText(makeResult([makeItem(use)]))).not.toContain("citations");
});
