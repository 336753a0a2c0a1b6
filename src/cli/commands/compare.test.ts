import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { makeContract, makeItem, makeResult } from "../../../test/make-result.ts";
import { runForTest } from "../../../test/run-cli.ts";
import { RunFolder } from "../../reporting/run-folder.ts";

let folder: string;
const at = (name: string): string => join(folder, name);

/** A result on 40 questions of which `right` are answered rightly. */
function resultWith(right: number, changes: Parameters<typeof makeContract>[0] = {}) {
  const items = Array.from({ length: 40 }, (_, id) => {
    const score = id < right ? 1 : 0;
    return makeItem({ id: String(id), em: score, f1: score, searches: 1 + score });
  });
  return makeResult(items, makeContract(changes));
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "forager-compare-"));
  await writeFile(at("a.json"), JSON.stringify(resultWith(10)));
  await writeFile(at("b.json"), JSON.stringify(resultWith(30)));
  await writeFile(at("b-too.json"), JSON.stringify(resultWith(31, { seed: 9 })));
  await writeFile(at("other.json"), JSON.stringify(resultWith(30, { k: 5 })));
  for (const [name, right] of [["run", 30] as const, ["unfinished", undefined] as const]) {
    await using run = await RunFolder.create(at(name), { recipeYaml: "name: x\n", contract: {} });
    await run.writeEvaluation("before", resultWith(10), { stage: "grpo", step: 0 });
    if (right !== undefined)
      await run.writeEvaluation("after", resultWith(right), { stage: "grpo", step: 9 });
  }
});
afterAll(() => rm(folder, { recursive: true }));

describe("compare", () => {
  test("prints the paired difference and its verdict", async () => {
    const { code, json, stdout } = await runForTest("compare", at("a.json"), at("b.json"), "--json");
    expect(code).toBe(0);
    expect(stdout.trim().split("\n")).toHaveLength(1);
    expect(json).toMatchObject({ n: 40, difference: 0.5, verdict: "better", contractDifferences: [] });
    const { ci, p } = json as { ci: [number, number]; p: number };
    expect(ci[0]).toBeGreaterThan(0.3);
    expect(ci[1]).toBeLessThan(0.7);
    expect(p).toBeLessThan(0.01);
  });

  test("says so when two results cannot be told apart, and what so many questions would have shown", async () => {
    const { stdout } = await runForTest("compare", at("b.json"), at("b-too.json"));
    expect(stdout).toContain("are not distinguishable");
    expect(stdout).toMatch(
      /40 questions would show a difference of 0\.\d+ or more, four times out of five; the one seen here would take about \d+/,
    );
    const { json } = await runForTest("compare", at("b.json"), at("b-too.json"), "--json");
    const { n, difference, detectable, questionsNeeded } = json as Record<string, number>;
    expect(questionsNeeded).toBe(
      Math.ceil((n as number) * ((detectable as number) / (difference as number)) ** 2),
    );
  });

  test("says of what questions its numbers are, and of equal results that they show nothing", async () => {
    const { stdout } = await runForTest("compare", at("a.json"), at("a.json"));
    expect(stdout).toMatch(/^2 questions of test, greedy$/m);
    expect(stdout).toContain("no question of 40 was scored differently");
    const { json } = await runForTest("compare", at("a.json"), at("a.json"), "--json");
    expect(json).toMatchObject({ verdict: "not distinguishable", detectable: null });
  });

  test("compares by another metric, and refuses one that is none", async () => {
    const call = ["compare", at("a.json"), at("b.json"), "--json", "--metric"];
    expect(await runForTest(...call, "searches")).toMatchObject({
      json: { metric: "searches", difference: 0.5, verdict: "worse" },
    });
    expect((await runForTest(...call, "wisdom")).stderr).toContain("no metric wisdom");
  });

  test("takes several seeds a side, with commas between", async () => {
    const sides = [
      ["a.json", "a.json"],
      ["b.json", "b-too.json"],
    ].map((names) => names.map(at).join());
    const { code, json } = await runForTest("compare", ...sides, "--json");
    expect(code).toBe(0);
    expect(json).toMatchObject({
      n: 40,
      seeds: [2, 2],
      paired: false,
      verdict: "better",
      contractDifferences: [],
    });
  });

  test("takes a run folder for its result after training, and a file of it as it is", async () => {
    expect(await runForTest("compare", at("a.json"), at("run"), "--json")).toMatchObject({
      json: { difference: 0.5 },
    });
    expect(await runForTest("compare", at("run/evaluation/before.json"), at("run"), "--json")).toMatchObject({
      json: { difference: 0.5 },
    });
  });

  test("refuses results of unequal contracts, and labels them when forced", async () => {
    const refused = await runForTest("compare", at("a.json"), at("other.json"));
    expect(refused.code).toBe(2);
    expect(refused.stderr).toMatch(
      /^forager: these results do not measure the same thing: k is 3 and 5.* by force \(--force\)\n$/,
    );
    const told = await runForTest("compare", at("a.json"), at("other.json"), "--json");
    expect(told).toMatchObject({
      code: 2,
      json: { n: 0, difference: null, verdict: null, contractDifferences: [{ key: "k", a: 3, b: 5 }] },
    });
    const forced = await runForTest("compare", at("a.json"), at("other.json"), "--force", "--json");
    expect(forced).toMatchObject({ code: 0, json: { contractDifferences: [{ key: "k", a: 3, b: 5 }] } });
    expect((await runForTest("compare", at("a.json"), at("other.json"), "--force")).stdout).toContain(
      "not the same contract: k is 3 and 5",
    );
  });

  test.each([
    ["a file that is missing", "no.json", /cannot read the result .*no\.json/],
    ["a file that is no JSON", "broken.json", /broken\.json: expected JSON/],
    ["a file that is no result", "list.json", /list\.json: expected the result of an evaluation/],
    ["a folder that is no run", "plain", /plain is no run folder/],
    ["a run that is not finished", "unfinished", /holds no result "after" \(it has: before\)/],
  ])("%s is one clear line", async (_name, path, message) => {
    await writeFile(at("broken.json"), "name: a recipe\nseed: 1\n");
    await writeFile(at("list.json"), "[1]");
    await mkdir(at("plain"), { recursive: true });
    const { code, stderr } = await runForTest("compare", at("a.json"), at(path));
    expect(code).toBe(1);
    expect(stderr).toMatch(message);
    expect(stderr.trim()).not.toContain("\n");
  });
});
