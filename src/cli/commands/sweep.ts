/** `forager sweep`: one setting at several values, each trained and evaluated, and which values are worth having. */
import { join, resolve } from "node:path";
import { loadRecipe, resolvedYaml } from "../../config/load-recipe.ts";
import type { Recipe } from "../../config/recipe.ts";
import { parseYamlValue } from "../../config/yaml-source.ts";
import { FileError, InterruptedError, UsageError } from "../../errors.ts";
import type { EvaluationResult } from "../../evaluation/result.ts";
import { frontOf, type SweepPoint, sweepCosts, sweepPoint, utilityMetric } from "../../evaluation/sweep.ts";
import { RunFolder } from "../../reporting/run-folder.ts";
import { type Sweep, sweepHtml, sweepMarkdown } from "../../reporting/sweep-report.ts";
import { exists, makeFolder, writeFileAtomic } from "../../shared/files.ts";
import { sha256 } from "../../shared/hash.ts";
import { type WarmStart, warmStartOf } from "../../training/warm-start.ts";
import { type CommandIo, defineCommand } from "../command.ts";
import { metricOf } from "../metric-option.ts";
import { trainWithView } from "../new-run.ts";
import { askedText } from "../result-text.ts";

export const sweepCommand = defineCommand({
  name: "sweep",
  summary: "Train a recipe with several values of one setting, and find the Pareto front.",
  details:
    "Each value has its run in the folder; the same command goes on with what is unfinished and takes what is finished.\n" +
    "Values whose supervised stages agree share them: they are trained once, in FOLDER/warm-start-HASH.\n" +
    "A run that fails is listed, and the others go on. sweep.html and sweep.md show utility against searches, tokens,\n" +
    "seconds and, where there are prices, dollars.",
  args: [{ name: "RECIPE", doc: "a recipe file" }],
  options: {
    over: {
      type: "text",
      value: "KEY=A,B,C",
      isRequired: true,
      doc: "The setting and its values, such as planner.alpha=0,0.05,0.25.",
    },
    set: { type: "list", value: "KEY=VALUE", doc: "Override of the recipe for every value; repeatable." },
    utility: {
      type: "text",
      value: "METRIC",
      doc: "What counts as utility; default: score where a judge gives one, else em.",
    },
    out: { type: "text", value: "FOLDER", doc: "Folder of the runs; default: runs/NAME-sweep-KEY." },
  },
  examples: [
    "sweep recipes/lab-planner.yaml --over planner.alpha=0,0.05,0.25 --json",
    "sweep recipes/lab.yaml --over environment.k=1,3,5 --utility f1",
  ],
  async run({ args, options: { over, set, utility, out } }, io) {
    const path = args[0] as string;
    const metric = utility === undefined ? undefined : metricOf(utility);
    const { key, values } = parseOver(over as string);
    const recipes = await Promise.all(
      values.map((value) => loadRecipe(path, { overrides: [...set, `${key}=${JSON.stringify(value)}`] })),
    );
    const [first] = recipes as [Recipe, ...Recipe[]];
    const folder = out ?? join("runs", `${first.name}-sweep-${slug(key)}`);
    const plans = values.map((value, index) => ({
      value,
      recipe: recipes[index] as Recipe,
      run: join(folder, slug(`${lastKey(key)}-${text(value)}`)),
    }));
    if (new Set(plans.map(({ run }) => run)).size < plans.length)
      throw new UsageError(
        `sweep: two values of --over ${over as string} would share a folder; name each once`,
      );
    await makeFolder(folder);
    const { results, failures } = await runAll(plans, folder, io);
    const chosen = metric ?? utilityMetric(results.map(({ result }) => result));
    const points = results.flatMap(({ value, result }) => sweepPoint(value, result, chosen) ?? []);
    const sweep: Sweep = {
      name: first.name,
      key,
      utility: chosen,
      asked: results[0] && askedText(results[0].result),
      points,
      failures,
      fronts: fronts(points, first),
    };
    await writeFileAtomic(join(folder, "sweep.md"), sweepMarkdown(sweep));
    await writeFileAtomic(join(folder, "sweep.html"), sweepHtml(sweep));
    io.print(sweepMarkdown(sweep).trimEnd());
    io.print(`report: ${join(folder, "sweep.html")}`);
    return { json: sweepJson(sweep), exitCode: failures.length > 0 ? 1 : 0 };
  },
});

/** `key=a,b` as a key and YAML values, of which there are at least one. */
function parseOver(over: string): { readonly key: string; readonly values: readonly unknown[] } {
  const equals = over.indexOf("=");
  const values = equals < 1 ? [] : parseYamlValue(`[${over.slice(equals + 1)}]`, `--over ${over}`);
  if (!Array.isArray(values) || values.length === 0)
    throw new UsageError(`sweep: --over ${over}: expected key.key=value,value, such as planner.alpha=0,0.05`);
  return { key: over.slice(0, equals), values };
}

function lastKey(key: string): string {
  return key.split(".").at(-1) as string;
}

function text(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** As a part of a file name. */
function slug(name: string): string {
  return name.replaceAll(/[^A-Za-z0-9.]+/g, "-").replace(/^[-.]+|-+$/g, "");
}

interface PlannedRun {
  readonly value: unknown;
  readonly recipe: Recipe;
  /** Its folder. */
  readonly run: string;
}

async function runAll(plans: readonly PlannedRun[], folder: string, io: CommandIo) {
  const results: { readonly value: unknown; readonly result: EvaluationResult }[] = [];
  const failures: { readonly value: unknown; readonly message: string }[] = [];
  const shared = sharedStarts(plans, folder);
  for (const [index, plan] of plans.entries()) {
    io.note(`value ${index + 1} of ${plans.length}: ${text(plan.value)}`);
    try {
      results.push({ value: plan.value, result: await finished(await afterStart(plan, shared, io), io) });
    } catch (error) {
      if (io.signal.aborted || error instanceof InterruptedError || error instanceof UsageError) throw error;
      const message = error instanceof Error ? error.message : String(error);
      failures.push({ value: plan.value, message });
      io.note(`${text(plan.value)} failed: ${message}`);
    }
  }
  return { results, failures };
}

interface SharedStart extends WarmStart {
  readonly run: string;
}

/** The warm starts of the plans that share theirs with another. */
function sharedStarts(plans: readonly PlannedRun[], folder: string): ReadonlyMap<PlannedRun, SharedStart> {
  const starts = plans.flatMap((plan) => {
    const start = warmStartOf(plan.recipe);
    return start === undefined ? [] : [{ plan, start, hash: sha256(resolvedYaml(start.recipe)).slice(0, 8) }];
  });
  const isShared = (hash: string): boolean => starts.filter((other) => other.hash === hash).length > 1;
  return new Map(
    starts
      .filter(({ hash }) => isShared(hash))
      .map(({ plan, start, hash }) => [plan, { ...start, run: join(folder, `warm-start-${hash}`) }]),
  );
}

/** The plan from its warm start on, which is trained now unless it is there; a plan that shares none as it is. */
async function afterStart(
  plan: PlannedRun,
  shared: ReadonlyMap<PlannedRun, SharedStart>,
  io: CommandIo,
): Promise<PlannedRun> {
  const start = shared.get(plan);
  if (start === undefined) return plan;
  await finished({ value: "the warm start", recipe: start.recipe, run: start.run }, io);
  const checkpoint = await (await RunFolder.open(start.run)).latestCheckpoint();
  if (checkpoint === undefined)
    throw new FileError(`${start.run} has no checkpoint; remove it and run again`);
  return { ...plan, recipe: start.rest(resolve(checkpoint.path)) };
}

/** The final result of a run: taken from its folder, or trained, or gone on with. */
async function finished({ recipe, run }: PlannedRun, io: CommandIo): Promise<EvaluationResult> {
  const isThere = await exists(run);
  if (isThere) {
    const stored = await (await RunFolder.open(run)).readRecipe();
    if (stored !== resolvedYaml(recipe))
      throw new UsageError(
        `${run} is a run of another recipe; choose another folder with --out, or remove it`,
      );
    const done = await finalResult(run);
    if (done !== undefined) return done;
  }
  await trainWithView({ recipe, folder: run, resume: isThere }, io);
  const result = await finalResult(run);
  if (result === undefined) throw new FileError(`${run} has no final evaluation; remove it and run again`);
  return result;
}

async function finalResult(path: string): Promise<EvaluationResult | undefined> {
  const run = await RunFolder.open(path);
  return (await run.readEvaluations()).find(({ name }) => name === "after")?.result;
}

/** By searches against the most that are allowed; by what has no limit, against the largest. */
function fronts(points: readonly SweepPoint[], { environment }: Recipe) {
  return sweepCosts.flatMap((cost) => {
    const most = Math.max(environment.maxSearches, ...points.map(({ searches }) => searches));
    return frontOf(points, cost, cost === "searches" && most > 0 ? most : undefined) ?? [];
  });
}

function sweepJson({ key, points, fronts: all, failures, utility }: Sweep): Record<string, unknown> {
  const json = ({ value, ...point }: SweepPoint): Record<string, unknown> => ({
    [lastKey(key)]: value,
    ...point,
  });
  const [searches] = all.filter(({ cost }) => cost === "searches");
  return {
    points: points.map(json),
    front: searches?.points.map(json) ?? [],
    hypervolume: searches?.hypervolume ?? null,
    utilityMetric: utility,
    fronts: Object.fromEntries(
      all.map(({ cost, points: front, hypervolume, worstCost }) => [
        cost,
        { front: front.map(({ value }) => value), hypervolume, worstCost },
      ]),
    ),
    failures,
  };
}
