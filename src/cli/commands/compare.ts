/** `forager compare`: two results on the same questions, paired, with an honest verdict. */
import { compareResults, IncomparableError } from "../../evaluation/compare-results.ts";
import type { MetricName } from "../../evaluation/item.ts";
import { describeDifference } from "../../evaluation/paired-test.ts";
import { type CommandIo, type CommandResult, defineCommand } from "../command.ts";
import { compareRuns, type Power, pathsOf, powerOf } from "../compare-runs.ts";
import { metricOf } from "../metric-option.ts";
import { askedText } from "../result-text.ts";
import { readResult } from "../stored-result.ts";

const labels: { readonly [name in MetricName]?: string } = { em: "exact match", f1: "F1" };

export const compareCommand = defineCommand({
  name: "compare",
  summary: "Compare two results on the same questions.",
  details:
    "Says whether B is better than A in exact match, or in another metric, with a paired randomisation test. A run folder\n" +
    "stands for its result after training. Results that differ in more than model and seed are refused.",
  args: [
    { name: "A", doc: "a file of RUN/evaluation/, or a run folder" },
    {
      name: "B",
      doc: "another one; the difference is B - A. Several seeds of one method: A1,A2,A3 B1,B2,B3",
    },
  ],
  options: {
    force: { type: "flag", doc: "Compare although the contracts differ, and say where they do." },
    metric: {
      type: "text",
      value: "METRIC",
      doc: "What decides, such as f1 or score of a judge; default: em.",
    },
  },
  examples: ["compare runs/a runs/b", "compare runs/a/evaluation/before.json runs/a/evaluation/after.json"],
  async run({ args, options: { force, metric: named } }, io) {
    const metric = metricOf(named ?? "em");
    const [pathA, pathB] = args as [string, string];
    return await compared({ pathA, pathB, force, metric }, io).catch((error: unknown) => refusal(error, io));
  },
});

/** For programs a refusal lists what differs; people read it in the message, with the flag that forces it. */
function refusal(error: unknown, io: CommandIo): CommandResult {
  if (!(error instanceof IncomparableError)) throw error;
  if (error.differences.length > 0) error.message = `${error.message} (--force)`;
  if (!io.json) throw error;
  io.note(`forager: ${error.message}`);
  const nothing = { n: 0, difference: null, ci: null, p: null, verdict: null };
  const { code, message, differences } = error;
  return { exitCode: 2, json: { ...nothing, contractDifferences: differences, error: { code, message } } };
}

interface Compared {
  readonly pathA: string;
  readonly pathB: string;
  readonly force: boolean;
  readonly metric: MetricName;
}

async function compared({ pathA, pathB, force, metric }: Compared, io: CommandIo): Promise<CommandResult> {
  const [before, after] = [await pathsOf(pathA), await pathsOf(pathB)];
  if (before.length > 1 || after.length > 1) return await compareRuns({ before, after, force, metric }, io);
  const [a, b] = [await readResult(pathA), await readResult(pathB)];
  const comparison = compareResults(a, b, { force, seed: 1 });
  const names = { before: pathA, after: pathB };
  const decisive = comparison.overall[metric];
  for (const { key, a: left, b: right } of comparison.contractDifferences)
    io.print(`not the same contract: ${key} is ${String(left)} and ${String(right)}`);
  io.print(askedText(a));
  for (const name of new Set<MetricName>([metric, "em", "f1", "searches"])) {
    const difference = comparison.overall[name];
    const words = { metric: labels[name] ?? name, isNeutral: name === "searches", ...names };
    if (difference) io.print(describeDifference(difference, words));
  }
  const power = powerOf(a, b, metric);
  if (decisive?.verdict === "not distinguishable") io.print(powerText(decisive.n, power));
  if (comparison.unpaired + comparison.failed > 0)
    io.print(`left out: ${comparison.unpaired} questions of one result only, ${comparison.failed} failed`);
  return {
    json: {
      n: decisive?.n ?? 0,
      metric,
      difference: decisive?.mean ?? null,
      ci: decisive?.ci ?? null,
      p: decisive?.p ?? null,
      verdict: decisive?.verdict ?? null,
      detectable: power?.detectable ?? null,
      questionsNeeded: power?.needed ?? null,
      contractDifferences: comparison.contractDifferences,
      unpaired: comparison.unpaired,
      failed: comparison.failed,
    },
  };
}

/** What a comparison that tells nothing apart could have shown, and what it would take. */
function powerText(n: number, power: Power | undefined): string {
  if (power === undefined)
    return `no question of ${n} was scored differently, which does not tell what more of them would show`;
  const shown = `${n} questions would show a difference of ${power.detectable.toFixed(3)} or more, four times out of five`;
  return power.needed === undefined ? shown : `${shown}; the one seen here would take about ${power.needed}`;
}
