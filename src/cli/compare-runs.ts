/** Parts of `forager compare`: several seeds a side, and what a comparison of so many questions can show at all. */
import { compareSeeds, metricMatrices, type SeedDifference } from "../evaluation/compare-seeds.ts";
import { detectableDifference, questionsToDetect, sampleDeviation } from "../evaluation/detectable.ts";
import type { MetricName } from "../evaluation/item.ts";
import type { EvaluationResult } from "../evaluation/result.ts";
import { exists } from "../shared/files.ts";
import type { CommandIo, CommandResult } from "./command.ts";
import { askedText } from "./result-text.ts";
import { readResult } from "./stored-result.ts";

/** The paths of an argument: itself where it exists, else what stands between its commas. */
export async function pathsOf(argument: string): Promise<readonly string[]> {
  if ((await exists(argument)) || !argument.includes(",")) return [argument];
  return argument.split(",").filter((path) => path !== "");
}

/** Compares two methods of several seeds each and prints it. Throws as `compareSeeds` and `readResult`. */
export async function compareRuns(
  {
    before,
    after,
    force,
    metric,
  }: {
    readonly before: readonly string[];
    readonly after: readonly string[];
    readonly force: boolean;
    readonly metric: MetricName;
  },
  io: CommandIo,
): Promise<CommandResult> {
  const read = async (paths: readonly string[]): Promise<EvaluationResult[]> =>
    await Promise.all(paths.map((path) => readResult(path)));
  const runs = { before: await read(before), after: await read(after) };
  const { contractDifferences, questions, overall } = compareSeeds(
    runs,
    [...new Set<MetricName>([metric, "em", "f1", "searches"])],
    { force, seed: 1 },
  );
  for (const { key, a, b } of contractDifferences)
    io.print(`not the same contract: ${key} is ${String(a)} and ${String(b)}`);
  io.print(askedText(runs.before[0] as EvaluationResult));
  for (const [name, difference] of Object.entries(overall)) io.print(sentence(name, difference));
  const decisive = overall[metric];
  if (decisive?.verdict === "not distinguishable" && decisive.detectable !== undefined)
    io.print(
      `so many seeds and questions would show a difference of ${decisive.detectable.toFixed(3)} or more, four times out of five`,
    );
  return {
    json: {
      n: decisive?.n ?? questions,
      metric,
      seeds: decisive?.seeds ?? [before.length, after.length],
      paired: decisive?.isPaired ?? false,
      difference: decisive?.mean ?? null,
      ci: decisive?.ci ?? null,
      p: decisive?.p ?? null,
      verdict: decisive?.verdict ?? null,
      detectable: decisive?.detectable ?? null,
      contractDifferences,
    },
  };
}

function sentence(
  metric: string,
  { mean, ci, p, verdict, seeds, isPaired, n, before, after }: SeedDifference,
): string {
  const numbers = `${before.toFixed(3)} and ${after.toFixed(3)}, difference ${mean > 0 ? "+" : ""}${mean.toFixed(3)} (95 % interval ${ci[0].toFixed(3)} to ${ci[1].toFixed(3)} over seeds and questions, p = ${p.toPrecision(2)})`;
  const comparative = metric === "searches" ? (mean > 0 ? "higher" : "lower") : verdict;
  const what =
    verdict === "not distinguishable" ? "A and B are not distinguishable" : `B is ${comparative} than A`;
  return `${metric}: ${what}: ${numbers}; ${seeds[0]} and ${seeds[1]} seeds${isPaired ? ", paired" : ""}, n = ${n}`;
}

/** What a comparison of two results could be expected to find in a metric. */
export interface Power {
  /** The least difference that so many questions would show. */
  readonly detectable: number;
  /** Questions that would show the difference that was seen; undefined where none was. */
  readonly needed: number | undefined;
}

/** The power of a comparison; undefined where no question is scored differently, or none in both. */
export function powerOf(a: EvaluationResult, b: EvaluationResult, metric: MetricName): Power | undefined {
  const [[before = []] = [], [after = []] = []] = metricMatrices([[a], [b]], metric);
  const differences = before.map((value, i) => (after[i] as number) - value);
  const deviation = sampleDeviation(differences);
  const detectable = detectableDifference(deviation, differences.length);
  if (detectable === undefined) return undefined;
  const seen = Math.abs(differences.reduce((sum, value) => sum + value, 0) / differences.length);
  return { detectable, needed: seen === 0 ? undefined : questionsToDetect(deviation, seen) };
}
