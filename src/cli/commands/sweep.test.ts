/** A sweep of two values of a planner's setting, in this process: its JSON, its report, and going on. */
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runForTest } from "../../../test/run-cli.ts";
import { tinyRecipe } from "../../../test/tiny-recipe.ts";

let folder: string;
const at = (name: string): string => join(folder, name);
const planner = (): string =>
  tinyRecipe
    .replace("name: tiny", "name: tiny-planner")
    .replace("codec: compact,", "mode: planner, codec: planner-compact,")
    .replace(
      "engine:",
      `generator: { model: ${at("reader")}, prompt: bare, maxAnswerTokens: 8 }\nplanner: {}\nengine:`,
    )
    .replace("questionsPerStep: 2", "questionsPerStep: 2\n    reward: { type: planner }");

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "forager-sweep-"));
  await writeFile(
    at("reader.yaml"),
    tinyRecipe.replace(/ {2}- type: reinforcement[\s\S]*?(?=evaluation)/, ""),
  );
  await writeFile(at("planner.yaml"), planner().replace("planner: {}", "planner: { process: goldRecall }"));
  const reader = await runForTest("train", at("reader.yaml"), "--out", at("reader"), "--json");
  expect(reader.code, reader.stderr).toBe(0);
});
afterAll(() => rm(folder, { recursive: true }));

const sweep = (...more: readonly string[]) =>
  runForTest(
    "sweep",
    at("planner.yaml"),
    "--over",
    "planner.alpha=0,0.5",
    "--out",
    at("sweep"),
    "--json",
    ...more,
  );

test("a sweep trains a run for each value and tells points, front and hypervolume", async () => {
  const { code, json, stderr } = await sweep();
  expect(code, stderr).toBe(0);
  const point = {
    utility: expect.any(Number),
    searches: expect.any(Number),
    tokens: expect.any(Number),
    seconds: expect.any(Number),
    n: 6,
  };
  expect(json).toMatchObject({
    points: [
      { alpha: 0, ...point },
      { alpha: 0.5, ...point },
    ],
    front: expect.arrayContaining([]),
    hypervolume: expect.any(Number),
    utilityMetric: "score",
    failures: [],
  });
  expect(await readFile(at("sweep/sweep.md"), "utf8")).toContain("| planner.alpha |");
  expect(await readFile(at("sweep/sweep.html"), "utf8")).toContain("<svg");
});

test("values that differ in reinforcement alone share one warm start, and end as without sharing", async () => {
  const starts = (await readdir(at("sweep"))).filter((name) => name.startsWith("warm-start-"));
  expect(starts).toHaveLength(1);
  const stages = async (run: string): Promise<string[]> =>
    (await readFile(at(`sweep/${run}/metrics.jsonl`), "utf8"))
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line).stage);
  expect(new Set(await stages(starts[0] as string))).toEqual(new Set(["warm-up"]));
  expect(new Set(await stages("alpha-0.5"))).toEqual(new Set(["grpo"]));
  const whole = await runForTest(
    "train",
    at("planner.yaml"),
    "--set",
    "planner.alpha=0.5",
    "--out",
    at("whole"),
  );
  expect(whole.code, whole.stderr).toBe(0);
  const items = async (run: string): Promise<unknown[]> =>
    JSON.parse(await readFile(at(`${run}/evaluation/after.json`), "utf8")).result.items.map(
      ({ timeMs: _, retrievalMs: __, judgeMs: ___, ...item }: Record<string, unknown>) => item,
    );
  const same = (all: readonly unknown[]): unknown[] =>
    all.map((item) => ({ ...(item as object), judgeTokens: undefined }));
  expect(same(await items("sweep/alpha-0.5"))).toEqual(same(await items("whole")));
});

test("a value that cannot be trained is listed, and stops no other", async () => {
  const { code, json } = await runForTest(
    "sweep",
    at("planner.yaml"),
    ...["--over", `generator.model=${at("nowhere")},${at("reader")}`, "--out", at("broken"), "--json"],
  );
  expect(code).toBe(1);
  expect(json).toMatchObject({
    points: [{ model: at("reader") }],
    failures: [{ value: at("nowhere"), message: expect.any(String) }],
  });
});

test("the same sweep takes what is finished, and another recipe is refused", async () => {
  const metrics = at("sweep/alpha-0/metrics.jsonl");
  const before = (await stat(metrics)).mtimeMs;
  expect((await sweep()).code).toBe(0);
  expect((await stat(metrics)).mtimeMs).toBe(before);
  const other = await sweep("--set", "seed=9");
  expect(other.code).not.toBe(0);
  expect(other.stderr).toContain("is a run of another recipe");
});

test.each([
  ["planner.alpha", /expected key.key=value/],
  ["planner.alpha=", /expected key.key=value/],
  ["planner.alpha=0,0", /would share a folder/],
  ["planner.alpah=0", /alpah/],
])("--over %s is refused", async (over, message) => {
  const { code, stderr } = await runForTest("sweep", at("planner.yaml"), "--over", over, "--out", at("none"));
  expect(code).not.toBe(0);
  expect(stderr).toMatch(message);
});

test("a trained planner is evaluated with another frozen generator", async () => {
  const set = `generator.model=${at("sweep/alpha-0.5")}`;
  const own = await runForTest("eval", at("sweep/alpha-0"), "--json");
  const other = await runForTest(
    "eval",
    at("sweep/alpha-0"),
    "--set",
    set,
    "--out",
    at("other.json"),
    "--json",
  );
  expect(other.code, other.stderr).toBe(0);
  const generatorOf = ({ json }: { readonly json: unknown }): unknown =>
    (json as { readonly contract: { readonly generator: { readonly model: string } } }).contract.generator
      .model;
  expect(generatorOf(other)).not.toBe(generatorOf(own));
});
