/** The quickstart with a model too small and steps too few to learn; what it learns is measured by running it for real. */
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runForTest } from "../../../test/run-cli.ts";
import { loadRecipe } from "../../config/load-recipe.ts";
import { packagePath } from "../package.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "forager-quickstart-"));
});
afterAll(() => rm(folder, { recursive: true }));

/** One step of each stage of the recipe, whatever they are called, by a model that is too small to learn. */
const { stages } = await loadRecipe(packagePath("recipes", "quickstart.yaml"));
const small = [
  "data.world={name: atlas, maxNameWords: 1, trainQuestions: 40}",
  "model.layers=1",
  "model.width=16",
  "model.heads=2",
  "model.keyValueHeads=2",
  "model.feedForward=32",
  ...stages.flatMap(({ name }) => [`stages.${name}.steps=1`, `stages.${name}.schedule.warmupSteps=0`]),
  "stages.grpo.questionsPerStep=2",
  "evaluation.n=8",
].flatMap((override) => ["--set", override]);

test("trains recipes/quickstart.yaml and shows what came out, for people", async () => {
  const { code, stdout, stderr } = await runForTest(
    "quickstart",
    "--out",
    join(folder, "shown"),
    "--seed",
    "5",
    ...small,
  );
  expect(stderr).toContain("before: exact match");
  // What the budgets of the recipe allow fits into its context: a newcomer reads no warning.
  expect(stderr).not.toContain("the longest episode that is allowed");
  expect(code).toBe(0);
  expect(stdout).toMatch(/questions +n +exact match before +after/);
  expect(stdout).toMatch(/exact match: .* \(95 % interval .*, p = .*, n = 8\)/);
  expect(stdout).toMatch(/before the training\nquestion .*\ngold .*[\s\S]*\nafter\nquestion/);
  expect(stdout).toContain(`report: ${join(folder, "shown", "report.html")}`);
  expect(stdout).toContain(`npx forager ask ${join(folder, "shown")} '`);
  expect(stdout).toContain("npx forager train recipes/lab.yaml --out runs/lab");
  const recipe = await loadRecipe(join(folder, "shown", "recipe.yaml"));
  expect(recipe).toMatchObject({ name: "quickstart", seed: 5 });
});

test("what it says to do next works", async () => {
  const { json } = await runForTest("search", join(folder, "shown", "index"), "France", "--json");
  expect((json as { results: object[] }).results.length).toBeGreaterThan(0);
});

test("a run folder that exists is left as it is", async () => {
  const before = await readFile(join(folder, "shown", "metrics.jsonl"), "utf8");
  const { code, stderr } = await runForTest("quickstart", "--out", join(folder, "shown"), ...small);
  expect(code).toBe(1);
  expect(stderr).toContain("exists already");
  expect(await readFile(join(folder, "shown", "metrics.jsonl"), "utf8")).toBe(before);
  expect(await readdir(folder)).toEqual(["shown"]);
});

test("a wrong override is refused before anything is made", async () => {
  const { code, stderr } = await runForTest(
    "quickstart",
    "--out",
    join(folder, "no"),
    "--set",
    "stages.gpro.steps=1",
  );
  expect(code).toBe(2);
  expect(stderr).toMatch(/none named "gpro"; did you mean "grpo"\?\n$/);
  expect(await readdir(folder)).toEqual(["shown"]);
});
