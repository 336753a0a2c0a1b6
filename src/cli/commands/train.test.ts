/** One tiny training and everything that can be done with its run folder, in this process. */
import { access, cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { runForTest, runWithSignal, type TestRun } from "../../../test/run-cli.ts";
import { tinyRecipe } from "../../../test/tiny-recipe.ts";
import { parseRecipe } from "../../config/load-recipe.ts";

let folder: string;
let trained: TestRun;
const at = (name: string): string => join(folder, name);

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "forager-train-"));
  await writeFile(at("tiny.yaml"), tinyRecipe);
  trained = await runForTest("train", at("tiny.yaml"), "--out", at("run"), "--set", "seed=4", "--json");
});
afterAll(() => rm(folder, { recursive: true }));

describe("train", () => {
  test("ends with the documented JSON and leaves a whole run folder", async () => {
    expect(trained.stderr).toContain("before: exact match");
    expect(trained.code).toBe(0);
    const half = {
      em: expect.any(Number),
      ci: [expect.any(Number), expect.any(Number)],
      n: 6,
      searches: expect.any(Number),
    };
    expect(trained.json).toEqual({
      run: at("run"),
      seconds: expect.any(Number),
      peakBytes: expect.any(Number),
      before: half,
      after: half,
      difference: {
        mean: expect.any(Number),
        ci: [expect.any(Number), expect.any(Number)],
        p: expect.any(Number),
      },
    });
    expect(trained.stdout.trim().split("\n")).toHaveLength(1);
    const names = await readdir(at("run"));
    for (const name of [
      "recipe.yaml",
      "contract.json",
      "metrics.jsonl",
      "checkpoints",
      "evaluation",
      "report.html",
    ])
      expect(names).toContain(name);
    const rows = (await readFile(at("run/metrics.jsonl"), "utf8"))
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(rows.map(({ stage, step }) => `${stage} ${step}`)).toEqual([
      "warm-up 1",
      "warm-up 2",
      "grpo 1",
      "grpo 2",
    ]);
    expect(rows[2]).toMatchObject({ "reward/mean": expect.any(Number), "search/count": expect.any(Number) });
  });

  test("writes the resolved recipe, overrides included", async () => {
    const text = await readFile(at("run/recipe.yaml"), "utf8");
    expect(parseRecipe(text, { file: "recipe.yaml" })).toMatchObject({ name: "tiny", seed: 4 });
    expect(text).toContain("  folding: letters\n");
  });

  test("a run that records no folding is scored with an index that folds marks, as it was trained", async () => {
    await cp(at("run"), at("before-folding"), { recursive: true });
    const text = await readFile(at("run/recipe.yaml"), "utf8");
    await writeFile(at("before-folding/recipe.yaml"), text.replace("  folding: letters\n", ""));
    const scored = await runForTest(
      "eval",
      at("before-folding"),
      "--out",
      at("before-folding.json"),
      "--json",
    );
    expect(scored.code).toBe(0);
    const { contract } = JSON.parse(await readFile(at("before-folding.json"), "utf8"));
    expect(contract.retriever.parameters).not.toHaveProperty("folding");
  });

  test("--dry-run prints the resolved recipe and makes nothing", async () => {
    const before = await readdir(folder);
    const dry = await runForTest("train", at("tiny.yaml"), "--set", "stages.grpo.steps=7", "--dry-run");
    expect(dry.code).toBe(0);
    expect(parseRecipe(dry.stdout, { file: "x.yaml" }).stages[1]).toMatchObject({ steps: 7 });
    const json = await runForTest("train", at("tiny.yaml"), "--dry-run", "--json");
    expect(json.json).toMatchObject({ recipe: { name: "tiny" } });
    expect(await readdir(folder)).toEqual(before);
  });

  test("an interrupt saves the state, and --resume goes on to the same numbers", async () => {
    const controller = new AbortController();
    const line = ["train", at("tiny.yaml"), "--out", at("stopped"), "--set", "seed=4"];
    const stop = async (): Promise<void> => {
      while (!(await isThere(at("stopped/checkpoints/2"))))
        await new Promise((resolve) => setTimeout(resolve, 2));
      controller.abort();
    };
    const [stopped] = await Promise.all([runWithSignal(controller.signal, ...line), stop()]);
    expect(stopped.code).toBe(130);
    expect(await isThere(at("stopped/evaluation/after.json"))).toBe(false);
    const keepFewer = ["--set", "checkpoint.keep=1", "--set", "checkpoint.everySteps=2"];
    const resumed = await runForTest("train", "--resume", at("stopped"), ...keepFewer, "--json");
    expect(resumed.code).toBe(0);
    // The newest one, and the one whose weights were best.
    expect((await readdir(at("stopped/checkpoints"))).length).toBeLessThanOrEqual(2);
    const { before, after, difference } = trained.json as Record<string, unknown>;
    expect(resumed.json).toMatchObject({ before, after, difference });
  });

  test.each([
    [["train"], 2, "train: name a RECIPE, or --resume RUN"],
    [["train", "x.yaml", "--resume", "run"], 2, "--resume RUN takes nothing else"],
    [["train", "--resume", "run", "--set", "seed=1"], 2, "--set seed=1 would make another run"],
    [["train", "/no/such.yaml"], 1, "cannot read the recipe /no/such.yaml"],
    [["train", "--resume", "/no/such/run"], 1, "there is no run at /no/such/run"],
  ])("%j is refused", async (line, code, message) => {
    const result = await runForTest(...line);
    expect(result.code).toBe(code);
    expect(result.stderr).toContain(message);
    expect(result.stderr.trim()).not.toContain("\n");
  });

  test("a run folder that exists is left as it is", async () => {
    await mkdir(at("mine"));
    await writeFile(at("mine/note.txt"), "mine");
    const { code, stderr } = await runForTest("train", at("tiny.yaml"), "--out", at("mine"));
    expect(code).toBe(1);
    expect(stderr).toMatch(/^forager: .*mine exists already; .*\n$/);
    expect(await readdir(at("mine"))).toEqual(["note.txt"]);
  });
});

describe("eval of a run", () => {
  test("gives the numbers that training gave, under a contract, and writes them into the run once", async () => {
    const first = await runForTest("eval", at("run"), "--json");
    const { after } = trained.json as { after: { em: number; ci: number[]; n: number; searches: number } };
    expect(first).toMatchObject({
      code: 0,
      json: {
        ...after,
        f1: expect.any(Number),
        contract: { n: 6, k: 3, split: "test", judge: "exactMatch" },
      },
    });
    const { file } = first.json as { file: string };
    expect(JSON.parse(await readFile(file, "utf8"))).toMatchObject({ stage: "grpo", step: 2 });
    const again = await runForTest("eval", at("run"));
    expect(again.stderr).toContain(`${file} exists already`);
    expect(again.code).toBe(1);
  });

  test("is comparable with what training wrote", async () => {
    const compared = await runForTest("compare", at("run/evaluation/after.json"), at("run"), "--json");
    expect(compared).toMatchObject({ code: 0, json: { n: 6, difference: 0, contractDifferences: [] } });
  });

  test("takes other questions and another index, and a file for the result", async () => {
    const line = ["eval", at("run"), "--questions", at("run/data/train.jsonl"), "--index", at("run/index")];
    const result = await runForTest(...line, "--out", at("train-score.json"), "--json");
    expect(result).toMatchObject({
      code: 0,
      json: { n: 40, contract: { split: "train" }, file: at("train-score.json") },
    });
    expect(result.stderr).not.toContain("gold passages");
    expect((await runForTest("compare", at("train-score.json"), at("run"))).stderr).toContain(
      "do not measure the same",
    );
  });

  test("says how many gold passages another index lacks", async () => {
    const corpus = (await readFile(at("run/data/corpus.jsonl"), "utf8")).trim().split("\n");
    const questions = (await readFile(at("run/data/train.jsonl"), "utf8")).trim().split("\n");
    const [first, second] = questions.slice(0, 2).map((line) => new Set<string>(JSON.parse(line).supporting));
    const gold = new Set([...(first ?? []), ...(second ?? [])]);
    const without = corpus.filter((line) => !first?.has(JSON.parse(line).id));
    await writeFile(at("poor.jsonl"), `${without.join("\n")}\n`);
    await writeFile(at("two.jsonl"), `${questions.slice(0, 2).join("\n")}\n`);
    await runForTest("index", at("poor.jsonl"), "--out", at("poor"));
    const short = [first, second].filter((ids) => [...(ids ?? [])].some((id) => first?.has(id))).length;
    const line = ["eval", at("run"), "--questions", at("two.jsonl"), "--index", at("poor")];
    expect((await runForTest(...line, "--out", at("poor.json"))).stderr).toContain(
      `poor lacks ${first?.size} of the ${gold.size} gold passages, of ${short} of the 2 questions`,
    );
  });

  test("a model folder needs a recipe and writes nothing by itself", async () => {
    const without = await runForTest("eval", at("run/checkpoints/4"));
    expect(without).toMatchObject({ code: 2, stderr: expect.stringContaining("say with --recipe") });
    const result = await runForTest("eval", at("run/checkpoints/4"), "--recipe", at("tiny.yaml"), "--json");
    expect(result).toMatchObject({ code: 0, json: { n: 6, file: null } });
  });

  test.each([
    ["nothing", "no", /there is nothing at/],
    ["a folder of something else", ".", /is neither a run \(recipe\.yaml\) nor a recipe nor a model/],
  ])("%s is refused", async (_name, path, message) => {
    const { code, stderr } = await runForTest("eval", at(path));
    expect(code).toBe(1);
    expect(stderr).toMatch(message);
  });
});

describe("ask, report and search of a run", () => {
  test("ask plays one episode and gives it back in parts", async () => {
    const { stderr, json } = await runForTest("ask", at("run"), "who is the teacher of nobody", "--json");
    expect(stderr).toBe("");
    expect(json).toMatchObject({ question: "who is the teacher of nobody", stopReason: expect.any(String) });
    const { segments } = json as { segments: { source: string; text: string }[] };
    expect(segments[0]).toEqual({
      source: "prompt",
      text: expect.stringContaining("who is the teacher of nobody?"),
    });
    expect(segments[1]?.source).toBe("policy");
    const shown = await runForTest("ask", at("run"), "who is the teacher of nobody");
    expect(shown.stdout).toContain("question who is the teacher of nobody");
    expect(shown.stdout).not.toContain("gold");
  });

  test("ask refuses an empty question and one that does not fit", async () => {
    expect(await runForTest("ask", at("run"), " ")).toMatchObject({ code: 2 });
    const long = await runForTest("ask", at("run"), "why ".repeat(300));
    expect(long.code).toBe(2);
    expect(long.stderr).toMatch(/^forager: question ask\/asked is too long: its prompt has \d+ tokens.*\n$/);
  });

  test("report writes the page again and prints where", async () => {
    await rm(at("run/report.html"));
    expect(await runForTest("report", at("run"), "--json")).toMatchObject({
      code: 0,
      json: { report: at("run/report.html") },
    });
    await access(at("run/report.html"));
    expect((await runForTest("report", folder)).stderr).toContain("is no run folder");
  });

  test("the index of a built-in world can be searched", async () => {
    const { json } = await runForTest("search", at("run/index"), "the", "-k", "1", "--json");
    expect(json).toMatchObject({ results: expect.any(Array) });
  });
});

async function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
