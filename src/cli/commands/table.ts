/**
 * `forager table`: evaluates every method that is named and makes one table of all of them on all sets. What was measured
 * stays in OUT/results and is not measured again, a method that was interrupted question by question; a method that fails is
 * a row with its reason, and a later call tries it again, as it does single questions that failed.
 */
import { readFile, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { resolvedYaml } from "../../config/load-recipe.ts";
import { ForagerError, InterruptedError, UsageError } from "../../errors.ts";
import { acrossSeeds } from "../../evaluation/across-seeds.ts";
import type { MetricName } from "../../evaluation/item.ts";
import { type MeasuredMethod, methodTable } from "../../evaluation/method-table.ts";
import type { EvaluationResult } from "../../evaluation/result.ts";
import { methodPage } from "../../reporting/method-table/page.ts";
import { account, methodCsv, methodMarkdown } from "../../reporting/method-table/texts.ts";
import { exists, makeFolder, writeFileAtomic } from "../../shared/files.ts";
import { sha256 } from "../../shared/hash.ts";
import { type CommandIo, defineCommand } from "../command.ts";
import { pathsOf } from "../compare-runs.ts";
import { writeResult } from "../eval-files.ts";
import { type DataHashes, dataHashes, score } from "../eval-scoring.ts";
import { episodesFile } from "../kept-episodes.ts";
import { metricOf } from "../metric-option.ts";
import { modelStamp } from "../model-stamps.ts";
import { findModel, type ModelSource } from "../open-model.ts";
import { packageVersion } from "../package.ts";
import { failureText } from "../result-text.ts";
import { readResult } from "../stored-result.ts";

export const tableCommand = defineCommand({
  name: "table",
  summary: "Measure several methods and make one table of them (Markdown, CSV, HTML).",
  details:
    "A recipe is evaluated with the model it starts from, a run with its newest checkpoint, and a result (.json) is taken as\n" +
    "it is; several seeds of a method have commas between them: a-1.json,a-2.json. Call it again to go on after an\n" +
    "interruption, question by question, or to ask again what failed. OUT gets table.md, .csv and .html.",
  args: [{ name: "TARGET", doc: "a recipe, a run, or the result of forager eval", isRepeated: true }],
  options: {
    out: {
      type: "text",
      value: "FOLDER",
      doc: "Where table and results go; may exist already.",
      isRequired: true,
    },
    set: {
      type: "list",
      value: "KEY=VALUE",
      doc: "Override of every recipe, such as evaluation.n=50; repeatable.",
    },
    reference: {
      type: "text",
      value: "NAME",
      doc: "Method the others are compared with; default: the first that is measured.",
    },
    metric: {
      type: "text",
      value: "METRIC",
      doc: "What methods are compared by, such as f1, or score of a judge; default: em.",
    },
  },
  examples: [
    "table recipes/baselines/direct.yaml recipes/baselines/rag.yaml runs/search-r1 --out tables/nq --reference rag",
    "table a.json b.json --out tables/ab",
  ],
  async run({ args, options: { out, set, reference, metric: named } }, io) {
    const folder = out as string;
    const metric = metricOf(named ?? "em");
    const names = args.map((_, index) => uniqueName(args, index));
    if (reference !== undefined && !names.includes(reference))
      throw new UsageError(`table: there is no method ${reference}; use one of ${names.join(", ")}`);
    await makeFolder(join(folder, "results"));
    const methods: MeasuredMethod[] = [];
    for (const [index, target] of args.entries()) {
      const name = names[index] as string;
      io.note(`${name} (${index + 1} of ${args.length})`);
      methods.push(await measured({ target, name, set, folder, metric }, io));
    }
    const table = methodTable(methods, { seed: 1, reference, metric });
    const whole = table.sets.at(-1) as string;
    await writeFileAtomic(join(folder, "table.csv"), methodCsv(table));
    await writeFileAtomic(join(folder, "table.html"), methodPage(table));
    await writeFileAtomic(join(folder, "table.md"), methodMarkdown(table));
    io.print(methodMarkdown(table));
    const failed = methods.filter(({ result }) => result === undefined);
    return {
      exitCode: failed.length > 0 ? 1 : 0,
      json: {
        methods: methods.length,
        measured: methods.length - failed.length,
        failed: failed.map(({ name, failure }) => ({ name, failure })),
        reference: table.reference ?? null,
        metric,
        rows: table.rows.map((row) => ({
          name: row.name,
          em: row.result?.summary.overall.em?.mean ?? null,
          [metric]: row.result?.summary.overall[metric]?.mean ?? null,
          n: row.result?.summary.overall.n ?? 0,
          cost: row.result?.cost ?? null,
          account: account(row),
          verdict: row.differences[whole]?.verdict ?? null,
        })),
        folder,
      },
    };
  },
});

/** The target's name without folder and ending, of several seeds that of the first; equal ones are counted. */
function uniqueName(targets: readonly string[], index: number): string {
  const short = (path: string): string =>
    basename((path.split(",")[0] as string).replace(/\/+$/, "")).replace(/\.(ya?ml|json)$/, "");
  const own = short(targets[index] as string);
  const before = targets.slice(0, index).filter((target) => short(target) === own).length;
  return before === 0 ? own : `${own}-${before + 1}`;
}

interface Task {
  readonly target: string;
  readonly name: string;
  readonly set: readonly string[];
  readonly folder: string;
  readonly metric: MetricName;
}

/** Measures a method, or says why not; one that is broken stops no other. Throws only when interrupted. */
async function measured(task: Task, io: CommandIo): Promise<MeasuredMethod> {
  const { name, target, metric } = task;
  try {
    const targets = await pathsOf(target);
    const seeds: EvaluationResult[] = [];
    for (const [index, each] of targets.entries()) {
      const own = { ...task, target: each, name: targets.length > 1 ? `${name}-seed-${index + 1}` : name };
      seeds.push(each.endsWith(".json") ? await readResult(each) : await evaluated(own, io));
    }
    const result = acrossSeeds(seeds, { seed: 1, metric });
    const failure = result.summary.overall.n === 0 ? failureText(result) : undefined;
    if (failure !== undefined) return { name, failure };
    return { name, result, ...(seeds.length > 1 && { seeds }) };
  } catch (error) {
    if (io.signal.aborted)
      throw new InterruptedError(
        `stopped at ${name}; what was measured is kept, call the same command to go on`,
        {
          cause: error,
        },
      );
    const message = error instanceof Error ? error.message : String(error);
    const failure =
      error instanceof ForagerError ? message : `a defect of forager, please report it: ${message}`;
    io.note(`${name} failed: ${failure}`);
    return { name, failure };
  }
}

/**
 * The stored result where it is current; else a new one, for which only those questions are asked that no earlier call of the
 * command has an episode of.
 */
async function evaluated({ target, name, set, folder }: Task, io: CommandIo): Promise<EvaluationResult> {
  const source = await findModel(target, { overrides: set });
  const { recipe, model, position } = source;
  const stamp = await modelStamp(source);
  const key = sha256(
    JSON.stringify([resolvedYaml(recipe), model, position ?? null, packageVersion(), stamp]),
  );
  const at = (ending: string): string => join(folder, "results", `${name}.${ending}`);
  const [path, keyPath, keptPath] = [at("json"), at("key"), at("kept.jsonl")];
  const stored = await currentResult({ name, source, path, keyPath, key }, io);
  if (stored !== undefined) return stored;
  const kept = episodesFile(keptPath, { stamp, note: io.note });
  try {
    const scored = await score(source, { questions: [] }, { io, finished: [], kept });
    // Until here an earlier result of another setting stays; a key never stands beside a result that is not its own.
    for (const old of [keyPath, path, at("trajectories.jsonl")]) await rm(old, { force: true });
    await writeResult({ path }, source, scored);
    await writeFileAtomic(keyPath, key);
    const failure = failureText(scored.result);
    if (failure === undefined) await rm(keptPath, { force: true });
    else io.note(failure);
    return scored.result;
  } finally {
    await kept.close();
  }
}

interface Stored {
  readonly name: string;
  readonly source: ModelSource;
  readonly path: string;
  readonly keyPath: string;
  readonly key: string;
}

/** The stored result where it is whole and of the same recipe, models, version and data; else says why it is none. */
async function currentResult(
  { name, source, path, keyPath, key }: Stored,
  io: CommandIo,
): Promise<EvaluationResult | undefined> {
  if (!(await exists(path)) || !(await exists(keyPath))) return undefined;
  if ((await readFile(keyPath, "utf8")) !== key) {
    io.note(`${name} is measured again: recipe, models or version are not those of its result`);
    return undefined;
  }
  const stored = await readResult(path);
  const changed = changedData(stored, await dataHashes(source, io));
  if (changed !== undefined) {
    io.note(`${name} is measured again: its ${changed} not those of its result`);
    return undefined;
  }
  const { n, failed } = stored.summary.overall;
  if (failed > 0) {
    io.note(`${name} is asked again what failed: ${failed} of ${n + failed} questions`);
    return undefined;
  }
  io.note(`${name} is measured already`);
  return stored;
}

function changedData(
  { contract }: EvaluationResult,
  { questionsHash, searched }: DataHashes,
): string | undefined {
  if (contract.questionsHash !== questionsHash) return "questions are";
  const { corpusHash, indexHash } = searched ?? { corpusHash: contract.corpusHash, ...contract.retriever };
  const isSame = contract.corpusHash === corpusHash && contract.retriever.indexHash === indexHash;
  return isSame ? undefined : "corpus and index are";
}
