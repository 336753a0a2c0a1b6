/** `forager compare`: two results on the same questions, paired, with an honest verdict. */
import { compareResults } from "../../evaluation/compare-results.ts";
import { describeDifference } from "../../evaluation/paired-test.ts";
import { defineCommand } from "../command.ts";
import { compareRuns, detectableIn, pathsOf } from "../compare-runs.ts";
import { readResult } from "../stored-result.ts";

export const compareCommand = defineCommand({
  name: "compare",
  summary: "Compare two results on the same questions.",
  details:
    "Says whether B is better than A in exact match, with a paired randomisation test. A run folder stands for its\n" +
    "result after training. Results that differ in more than model and seed are refused.",
  args: [
    { name: "A", doc: "a file of RUN/evaluation/, or a run folder" },
    { name: "B", doc: "the same; the difference is B - A. Several seeds of one method: A1,A2,A3 B1,B2,B3" },
  ],
  options: {
    force: { type: "flag", doc: "Compare although the contracts differ, and say where they do." },
  },
  examples: ["compare runs/a runs/b", "compare runs/a/evaluation/before.json runs/a/evaluation/after.json"],
  async run({ args, options: { force } }, io) {
    const [pathA, pathB] = args as [string, string];
    const [before, after] = [await pathsOf(pathA), await pathsOf(pathB)];
    if (before.length > 1 || after.length > 1) return await compareRuns({ before, after, force }, io);
    const [a, b] = [await readResult(pathA), await readResult(pathB)];
    const comparison = compareResults(a, b, { force, seed: 1 });
    const names = { before: pathA, after: pathB };
    const { em, f1, searches } = comparison.overall;
    for (const { key, a: left, b: right } of comparison.contractDifferences)
      io.print(`not the same contract: ${key} is ${String(left)} and ${String(right)}`);
    if (em) io.print(describeDifference(em, { metric: "exact match", ...names }));
    if (f1) io.print(describeDifference(f1, { metric: "F1", ...names }));
    if (searches) io.print(describeDifference(searches, { metric: "searches", ...names }));
    const detectable = detectableIn(a, b);
    if (em?.verdict === "not distinguishable" && detectable !== undefined)
      io.print(
        `${em.n} questions would show a difference of ${detectable.toFixed(3)} or more, four times out of five`,
      );
    if (comparison.unpaired + comparison.failed > 0)
      io.print(`left out: ${comparison.unpaired} questions of one result only, ${comparison.failed} failed`);
    return {
      json: {
        n: comparison.pairs,
        difference: em?.mean ?? null,
        ci: em?.ci ?? null,
        p: em?.p ?? null,
        verdict: em?.verdict ?? null,
        detectable: detectable ?? null,
        contractDifferences: comparison.contractDifferences,
        unpaired: comparison.unpaired,
        failed: comparison.failed,
      },
    };
  },
});
