/**
 * Search-R1's ablations (section 5 of the paper) in miniature, on `recipes/lab.yaml`: loss mask on and off, k = 1, 3,
 * 5, group size 1, 4, 8, and PPO with a critic (`recipes/lab-ppo.yaml`), all with equal trajectories a step. Each seed
 * has one warm start for each k; every variant starts from it, so that variants of equal k differ in reinforcement
 * alone. Finished runs in the folder are kept, unfinished ones resumed.
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { loadRecipe } from "../src/config/load-recipe.ts";
import type { Recipe } from "../src/config/recipe.ts";
import { bootstrapSeeds, type Estimate } from "../src/evaluation/bootstrap.ts";
import type { EvaluationResult } from "../src/evaluation/result.ts";
import { RunFolder } from "../src/reporting/run-folder.ts";
import { exists } from "../src/shared/files.ts";
import { silentReporter } from "../src/training/reporter.ts";
import { train } from "../src/training/train.ts";
import type { Bench } from "./bench.ts";
import { markdownTable } from "./measure.ts";

interface Variant {
  readonly name: string;
  readonly k: number;
  /** Absent: `recipes/lab.yaml`. */
  readonly recipe?: string;
  readonly overrides: readonly string[];
}

/** Trajectories of one step: the same for every group size. */
const perStep = 128;
const groupOf = (size: number): string[] => [
  `stages.grpo.algorithm.groupSize=${size}`,
  `stages.grpo.questionsPerStep=${perStep / size}`,
];
const ppo = "recipes/lab-ppo.yaml";
const gae = (options: string): string =>
  `stages.ppo.algorithm.gae={ lambda: 0.95, observations: ${options} }`;
const variants: readonly Variant[] = [
  { name: "base (mask, k 3, group 8)", k: 3, overrides: [] },
  { name: "no mask", k: 3, overrides: ["stages.grpo.algorithm.maskRetrieved=false"] },
  { name: "k 1", k: 1, overrides: [] },
  { name: "k 5", k: 5, overrides: [] },
  { name: "group 1", k: 3, overrides: groupOf(1) },
  { name: "group 4", k: 3, overrides: groupOf(4) },
  { name: "ppo", k: 3, recipe: ppo, overrides: [] },
  { name: "ppo shared trunk", k: 3, recipe: ppo, overrides: ["stages.ppo.algorithm.critic.trunk=shared"] },
  { name: "ppo lambda 0.95", k: 3, recipe: ppo, overrides: [gae("skip")] },
  { name: "ppo lambda 0.95 through passages", k: 3, recipe: ppo, overrides: [gae("states")] },
];

export const ablationsBench: Bench = {
  name: "ablations",
  about: "Search-R1's ablations in miniature on the lab world, several seeds",
  options:
    "--seeds 1,2,3,4,5 --out FOLDER (results there are kept) --threads 1 --variants ppo,group (beginnings of names; the base always runs)",
  async run(argv) {
    const { values } = parseArgs({
      args: [...argv],
      options: {
        seeds: { type: "string", default: "1,2,3,4,5" },
        out: { type: "string", default: "runs/bench-ablations" },
        threads: { type: "string", default: "2" },
        variants: { type: "string", default: "" },
      },
    });
    const seeds = values.seeds.split(",").map(Number);
    const chosen = variants.filter(
      ({ name }, index) => index === 0 || values.variants.split(",").some((start) => name.startsWith(start)),
    );
    const results = new Map<Variant, Outcome[]>(chosen.map((variant) => [variant, []]));
    for (const seed of seeds)
      for (const variant of chosen)
        results
          .get(variant)
          ?.push(await outcome(variant, { seed, out: values.out, threads: values.threads }));
    return {
      markdown: table(results),
      data: {
        seeds,
        variants: [...results].map(([variant, rows]) => ({ name: variant.name, ...estimates(rows) })),
      },
    };
  },
};

interface Setting {
  readonly seed: number;
  readonly out: string;
  readonly threads: string;
}

interface Outcome {
  readonly before: EvaluationResult;
  readonly after: EvaluationResult;
}

async function outcome(variant: Variant, setting: Setting): Promise<Outcome> {
  const { seed, out, threads } = setting;
  const overrides = [
    `seed=${seed}`,
    `environment.k=${variant.k}`,
    `engine.threads=${threads}`,
    ...variant.overrides,
  ];
  const recipe = await loadRecipe(variant.recipe ?? "recipes/lab.yaml", { overrides });
  const warm = await finished(
    { ...recipe, stages: recipe.stages.slice(0, -1) },
    join(out, `warm-k${variant.k}-seed${seed}`),
  );
  const start = await warm.latestCheckpoint();
  if (!start) throw new Error(`${warm.path} has no checkpoint; remove it and run again`);
  const run = await finished(
    { ...recipe, model: { type: "pretrained", source: start.path }, stages: recipe.stages.slice(-1) },
    join(out, `${variant.name.replaceAll(/[^a-z0-9]+/g, "-")}-seed${seed}`),
  );
  const evaluations = await run.readEvaluations();
  const named = (name: string): EvaluationResult => {
    const found = evaluations.find((evaluation) => evaluation.name === name);
    if (!found) throw new Error(`${run.path} has no evaluation ${name}; remove it and run again`);
    return found.result;
  };
  return { before: named("before"), after: named("after") };
}

/** The run of a recipe in `folder`, trained now unless it is there already. */
async function finished(recipe: Recipe, folder: string): Promise<RunFolder> {
  if (!(await exists(join(folder, "evaluation", "after.json")))) {
    process.stderr.write(`${folder} …\n`);
    const resume = await exists(folder);
    await train({
      recipe,
      folder,
      resume,
      reporter: silentReporter,
      now: () => performance.now(),
      codeVersion: "bench",
    });
  }
  return await RunFolder.open(folder);
}

function exactMatches({ items }: EvaluationResult): number[] {
  return items.map((item) => (item.failed ? Number.NaN : item.em));
}

function searches({ items }: EvaluationResult): number[] {
  return items.map((item) => (item.failed ? Number.NaN : item.searches));
}

function estimates(rows: readonly Outcome[]): Record<string, Estimate | undefined> {
  const over = (values: (row: Outcome) => number[]): Estimate | undefined =>
    bootstrapSeeds(rows.map(values), { seed: 1 });
  return {
    before: over(({ before }) => exactMatches(before)),
    after: over(({ after }) => exactMatches(after)),
    gain: over(({ before, after }) => {
      const start = exactMatches(before);
      return exactMatches(after).map((value, index) => value - (start[index] as number));
    }),
    searches: over(({ after }) => searches(after)),
  };
}

function table(results: ReadonlyMap<Variant, readonly Outcome[]>): string {
  const base = results.get(variants[0] as Variant) ?? [];
  const rows = [...results].map(([variant, outcomes]) => {
    const { before, after, gain, searches: asked } = estimates(outcomes);
    // Paired by seed and question; both variants answer the same questions.
    const difference = bootstrapSeeds(
      outcomes.map(({ after: own }, seed) => {
        const reference = exactMatches((base[seed] as Outcome).after);
        return exactMatches(own).map((value, index) => value - (reference[index] as number));
      }),
      { seed: 1 },
    );
    return [variant.name, show(before), show(after), show(gain), show(difference), show(asked)];
  });
  const header = ["variant", "EM before", "EM after", "gain", "after less base", "searches after"];
  return `${markdownTable(header, rows)}\n\n${base.length} seeds, ${base[0]?.after.items.length} questions each; 95 % intervals by two-level bootstrap.`;
}

function show(estimate: Estimate | undefined): string {
  return estimate
    ? `${estimate.mean.toFixed(3)} (${estimate.ci.map((end) => end.toFixed(3)).join(" to ")})`
    : "-";
}
