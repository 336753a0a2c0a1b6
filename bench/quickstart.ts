/**
 * The quickstart with several seeds, one process each, as a user starts it: time, memory, and held-out scores before
 * and after with a two-level bootstrap (seeds, then questions). A seed whose result lies in the folder is not run
 * again, so that a long measurement can be interrupted.
 */
import { execFile } from "node:child_process";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs, promisify } from "node:util";
import { z } from "zod";
import { bootstrapSeeds, type Estimate } from "../src/evaluation/bootstrap.ts";
import type { EvaluationResult } from "../src/evaluation/result.ts";
import { RunFolder } from "../src/reporting/run-folder.ts";
import { exists, writeFileAtomic } from "../src/shared/files.ts";
import type { Bench } from "./bench.ts";

const resultSchema = z.object({ run: z.string(), seconds: z.number(), peakBytes: z.number() });

export const quickstartBench: Bench = {
  name: "quickstart",
  about: "the quickstart with several seeds: time, memory, exact match before and after",
  options: "--seeds 1,2,3,4,5 --out FOLDER (results there are kept and not run again)",
  async run(argv) {
    const { values } = parseArgs({
      args: [...argv],
      options: {
        seeds: { type: "string", default: "1,2,3,4,5" },
        out: { type: "string", default: "runs/bench-quickstart" },
      },
    });
    await mkdir(values.out, { recursive: true });
    const seeds = values.seeds.split(",").map(Number);
    const rows: SeedResult[] = [];
    for (const seed of seeds) rows.push(await seedResult(seed, values.out));
    return { markdown: table(rows), data: { seeds: rows.map(summaryOf), ...estimates(rows) } };
  },
};

interface SeedResult {
  readonly seed: number;
  readonly seconds: number;
  readonly peakBytes: number;
  readonly before: EvaluationResult;
  readonly after: EvaluationResult;
}

async function seedResult(seed: number, out: string): Promise<SeedResult> {
  const file = join(out, `seed-${seed}.json`);
  const run = join(out, `seed-${seed}`);
  if (!(await exists(file))) {
    process.stderr.write(`seed ${seed} …\n`);
    const { stdout } = await promisify(execFile)("node", [
      "dist/cli/main.js",
      "quickstart",
      "--seed",
      String(seed),
      "--out",
      run,
      "--json",
    ]);
    await writeFileAtomic(file, `${stdout.trimEnd().split("\n").at(-1)}\n`);
  }
  const { seconds, peakBytes } = resultSchema.parse(JSON.parse(await readFile(file, "utf8")));
  const evaluations = await (await RunFolder.open(run)).readEvaluations();
  const named = (name: string): EvaluationResult => {
    const found = evaluations.find((evaluation) => evaluation.name === name);
    if (!found) throw new Error(`${run} has no evaluation named ${name}; remove it and run again`);
    return found.result;
  };
  return { seed, seconds, peakBytes, before: named("before"), after: named("after") };
}

type Score = "em" | "searches";

function scores({ items }: EvaluationResult, score: Score): number[] {
  return items.map((item) => (item.failed ? Number.NaN : item[score]));
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function gains({ before, after }: SeedResult): number[] {
  const start = scores(before, "em");
  return scores(after, "em").map((value, index) => value - (start[index] as number));
}

/** Mean searches over the questions of two hops. */
function twoHopSearches({ items }: EvaluationResult): number {
  return mean(items.flatMap((item) => (!item.failed && item.hops === 2 ? [item.searches] : [])));
}

function summaryOf(row: SeedResult): Record<string, number> {
  return {
    seed: row.seed,
    seconds: row.seconds,
    peakBytes: row.peakBytes,
    before: mean(scores(row.before, "em")),
    after: mean(scores(row.after, "em")),
    searchesBefore: twoHopSearches(row.before),
    searchesAfter: twoHopSearches(row.after),
  };
}

function estimates(rows: readonly SeedResult[]): Record<string, Estimate | undefined> {
  const over = (values: (row: SeedResult) => number[]): Estimate | undefined =>
    bootstrapSeeds(rows.map(values), { seed: 1 });
  return {
    before: over((row) => scores(row.before, "em")),
    after: over((row) => scores(row.after, "em")),
    gain: over(gains),
  };
}

function table(rows: readonly SeedResult[]): string {
  const lines = rows
    .map(summaryOf)
    .map((row) =>
      [
        row.seed,
        (row.seconds ?? 0).toFixed(0),
        ((row.peakBytes ?? 0) / 2 ** 20).toFixed(0),
        row.before?.toFixed(3),
        row.after?.toFixed(3),
        row.searchesBefore?.toFixed(2),
        row.searchesAfter?.toFixed(2),
      ].join(" | "),
    );
  const all = estimates(rows);
  const show = (estimate: Estimate | undefined): string =>
    estimate ? `${estimate.mean.toFixed(3)} (${estimate.ci.map((end) => end.toFixed(3)).join(" to ")})` : "-";
  return [
    "| seed | seconds | peak MiB | EM before | EM after | searches of 2-hop questions before | after |",
    "| --- | --- | --- | --- | --- | --- | --- |",
    ...lines.map((line) => `| ${line} |`),
    "",
    `Exact match over ${rows.length} seeds with 95 % intervals: before ${show(all.before)}, after ${show(all.after)}, gain ${show(all.gain)}; n = ${rows[0]?.after.items.length} questions a seed.`,
  ].join("\n");
}
