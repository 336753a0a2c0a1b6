/** The command that reproduces papers: its studies fit the recipes, its statistics are right, its runs are kept. */
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { differenceOf, estimateOf, gapShareOf, ratioOf } from "../bench/reproduce/paired.ts";
import { runVariant } from "../bench/reproduce/run-variant.ts";
import { studies } from "../bench/reproduce/studies.ts";
import type { Claim, Expectation, Study } from "../bench/reproduce/study.ts";
import { judge, studyMarkdown, withResults } from "../bench/reproduce/tables.ts";
import { loadRecipe } from "../src/config/load-recipe.ts";
import type { EvaluationResult } from "../src/evaluation/result.ts";
import { makeItem, makeResult } from "./make-result.ts";
import { tinyRecipe } from "./tiny-recipe.ts";

describe.each(studies)("the study $name", (study) => {
  test.each(study.variants)("has a recipe for $name", async ({ recipe, overrides }) => {
    const plain = overrides.map((override) => override.replaceAll(/\{checkpoint:[^}]+\}/g, "a-folder"));
    await expect(loadRecipe(recipe, { overrides: plain })).resolves.toBeDefined();
  });

  test("compares variants that it has", () => {
    const names = study.variants.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    for (const { variant, baseline, expect: claimed } of study.claims) {
      const ceiling = claimed.type === "gapShareAtLeast" ? [claimed.ceiling] : [];
      expect(names).toEqual(expect.arrayContaining([variant, baseline, ...ceiling]));
    }
  });
});

/** A result whose questions have these exact matches. */
const scored = (...values: readonly number[]): EvaluationResult =>
  makeResult(values.map((em, id) => makeItem({ id: String(id), em })));

describe("statistics over seeds and questions", () => {
  test("a mean, a paired difference and a ratio", () => {
    const runs = [scored(1, 0, 1, 0), scored(1, 1, 1, 0)];
    const baseline = [scored(1, 1, 1, 1), scored(1, 1, 1, 1)];
    expect(estimateOf(runs, "em")?.mean).toBeCloseTo(5 / 8, 12);
    expect(differenceOf({ variant: runs, baseline }, "em")?.mean).toBeCloseTo(-3 / 8, 12);
    const ratio = ratioOf({ variant: runs, baseline }, "em");
    expect(ratio?.mean).toBeCloseTo(5 / 8, 12);
    expect(ratio?.ci[0]).toBeLessThan(5 / 8);
    expect(ratio?.ci[1]).toBeGreaterThan(5 / 8);
  });

  test("equal runs differ by exactly nothing", () => {
    const runs = [scored(1, 0, 1), scored(0, 0, 1)];
    expect(differenceOf({ variant: runs, baseline: runs }, "em")).toMatchObject({ mean: 0, ci: [0, 0] });
  });

  test("a question that failed in one run is left out of all", () => {
    const failed = {
      dataset: "nq",
      id: "0",
      stopReason: "retrieverFailure",
      failed: true,
      failure: "down",
    } as const;
    const broken = makeResult([failed, makeItem({ id: "1", em: 1 })]);
    expect(differenceOf({ variant: [broken], baseline: [scored(0, 0)] }, "em")).toMatchObject({
      n: 1,
      mean: 1,
    });
  });

  test("the share of a gap is a ratio of two differences, over the same resamples", () => {
    // Baseline 1/8, variant 4/8, ceiling 7/8: half of the way.
    const baseline = [scored(0, 0, 1, 0), scored(0, 0, 0, 0)];
    const variant = [scored(0, 1, 1, 0), scored(1, 0, 0, 1)];
    const ceiling = [scored(1, 1, 1, 1), scored(1, 0, 1, 1)];
    // 4 questions are few: some resample draws no gap, and then there is no interval.
    expect(gapShareOf({ variant, baseline, ceiling }, "em")).toBeUndefined();
    const many = (runs: readonly EvaluationResult[]): EvaluationResult[] =>
      runs.map(({ items }) =>
        scored(...Array.from({ length: 60 }, (_, i) => (items[i % 4] as { readonly em: number }).em)),
      );
    const share = gapShareOf(
      { variant: many(variant), baseline: many(baseline), ceiling: many(ceiling) },
      "em",
    );
    expect(share).toMatchObject({ n: 60 });
    expect(share?.mean).toBeCloseTo(0.5, 12);
    // By seed it is 1/3 and 2/3, and an interval over seeds reaches both.
    expect(share?.ci[0]).toBeLessThan(0.34);
    expect(share?.ci[1]).toBeGreaterThan(0.66);
    // The way to the ceiling itself is all of it, whatever is drawn.
    expect(
      gapShareOf({ variant: many(ceiling), baseline: many(baseline), ceiling: many(ceiling) }, "em"),
    ).toMatchObject({ mean: 1, ci: [1, 1] });
    // Nothing to close.
    expect(
      gapShareOf({ variant: many(variant), baseline: many(ceiling), ceiling: many(baseline) }, "em"),
    ).toBeUndefined();
  });

  test("there is no ratio to nothing, and no mean of no runs", () => {
    expect(ratioOf({ variant: [scored(1)], baseline: [scored(0)] }, "em")).toBeUndefined();
    expect(estimateOf([], "em")).toBeUndefined();
  });
});

describe("verdicts", () => {
  const results = new Map([
    ["good", new Map([[1, scored(...Array(40).fill(1))]])],
    ["bad", new Map([[1, scored(...Array(40).fill(0))]])],
    ["mixed", new Map([[1, scored(...Array.from({ length: 40 }, (_, i) => i % 2))]])],
    ["half", new Map([[1, scored(...Array.from({ length: 40 }, (_, i) => (i + 1) % 2))]])],
    ["absent", new Map<number, EvaluationResult>()],
  ]);
  test.each<[string, string, Expectation, string]>([
    ["good", "bad", { type: "higher" }, "agrees"],
    ["good", "bad", { type: "lower" }, "disagrees"],
    ["bad", "good", { type: "lower" }, "agrees"],
    ["good", "good", { type: "higher" }, "not distinguishable"],
    ["good", "good", { type: "notLower" }, "agrees"],
    ["bad", "good", { type: "notLower" }, "disagrees"],
    ["good", "bad", { type: "notHigher" }, "disagrees"],
    ["mixed", "half", { type: "notLower" }, "not contradicted"],
    ["mixed", "good", { type: "ratioAtMost", most: 0.9 }, "agrees"],
    ["mixed", "good", { type: "ratioAtMost", most: 0.5 }, "not distinguishable"],
    ["mixed", "good", { type: "ratioAtMost", most: 0.1 }, "disagrees"],
    ["mixed", "bad", { type: "gapShareAtLeast", least: 0.1, ceiling: "good" }, "agrees"],
    ["mixed", "bad", { type: "gapShareAtLeast", least: 0.5, ceiling: "good" }, "not distinguishable"],
    ["mixed", "bad", { type: "gapShareAtLeast", least: 0.9, ceiling: "good" }, "disagrees"],
    ["mixed", "good", { type: "gapShareAtLeast", least: 0.3, ceiling: "bad" }, "not measured"],
    ["mixed", "bad", { type: "gapShareAtLeast", least: 0.3, ceiling: "absent" }, "not measured"],
    ["good", "bad", { type: "none" }, "no claim"],
    ["good", "absent", { type: "higher" }, "not measured"],
  ])("%s against %s, %o: %s", (variant, baseline, expected, verdict) => {
    const claim: Claim = { text: "", variant, baseline, metric: "em", expect: expected };
    expect(judge(claim, results).verdict).toBe(verdict);
  });
});

test("the points of a front that no other beats in both are named by rising cost", () => {
  const point = (em: number, searches: number) =>
    new Map([[1, makeResult([makeItem({ id: "0", em, searches })])]]);
  const results = new Map([
    ["few", point(0, 1)],
    ["good", point(1, 2)],
    ["wasteful", point(1, 3)],
  ]);
  const study: Study = {
    ...{ name: "front", title: "Front", claims: [], metrics: ["em"], small: [] },
    variants: [...results.keys()].map((name) => ({ name, recipe: "", overrides: [] })),
    front: { utility: "em", cost: "searches", variants: ["wasteful", "good", "few", "absent"] },
  };
  expect(studyMarkdown(study, results, [])).toContain(
    "Pareto front of em against searches, by means: 2 of 3 points: few (0.000 for 1.000), good (1.000 for 2.000).",
  );
});

test("results go between their marks and leave the rest of the page alone", () => {
  const once = withResults("# Title\n\nWhy.\n", "first");
  expect(once).toContain("# Title\n\nWhy.\n\n<!-- results");
  const page = once.replace("<!-- end of results -->", "<!-- end of results -->\n\nMore words.");
  const twice = withResults(page, "second");
  expect(twice).toContain("second");
  expect(twice).not.toContain("first");
  expect(twice).toContain("More words.");
});

describe("runs", () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "forager-reproduce-"));
    await writeFile(join(folder, "tiny.yaml"), tinyRecipe);
  });
  afterAll(async () => await rm(folder, { recursive: true, force: true }));

  test("variants share the warm start of a seed, finished runs are kept, prepared runs fill in overrides", async () => {
    const recipe = join(folder, "tiny.yaml");
    const notes: string[] = [];
    const study: Study = {
      name: "tiny",
      title: "Tiny",
      prepared: [{ name: "reader", recipe, overrides: [], supervisedOnly: true }],
      variants: [
        { name: "base", recipe, overrides: [] },
        { name: "no mask", recipe, overrides: ["stages.grpo.algorithm.maskRetrieved=false"] },
        { name: "warm start", recipe, overrides: [], supervisedOnly: true },
        // Starts from the reader instead of from nothing.
        {
          name: "from reader",
          recipe,
          overrides: ["model={ type: pretrained, source: '{checkpoint:reader}' }"],
        },
      ],
      claims: [],
      metrics: ["em", "searches"],
      small: [],
    };
    const setting = {
      seed: 1,
      out: join(folder, "runs"),
      overrides: ["stages.grpo.steps=1", "stages.none.steps=1", "evaluation.n=3"],
      isSmall: true,
      note: (text: string) => notes.push(text),
    };
    const results = new Map<string, Map<number, EvaluationResult>>();
    for (const variant of study.variants)
      results.set(variant.name, new Map([[1, await runVariant(study, variant, setting)]]));
    const folders = (await readdir(setting.out)).map((name) => name.replace(/-seed1-[0-9a-f]{8}$/, ""));
    expect(folders.sort()).toEqual(["base", "from-reader", "no-mask", "warm-start", "warm-start"]);
    const started = notes.length;
    await runVariant(study, study.variants[0] as Study["variants"][0], setting);
    expect(notes.length).toBe(started);
    const table = studyMarkdown(study, results, [{ variant: "base", seed: 2, message: "no space left" }]);
    expect(table).toMatch(/\| warm start \| 1 \| 0\.\d{3} \(/);
    expect(table).toContain("- base, seed 2: no space left");
  });
});
