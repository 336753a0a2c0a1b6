import { spawnSync } from "node:child_process";
import { appendFile, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { DataFormatError, FileError } from "../errors.ts";
import type { EvaluationResult } from "../evaluation/result.ts";
import { makeRecord } from "./made-up.suite.ts";
import { RunFolder } from "./run-folder.ts";

const contents = { recipeYaml: "name: test\n", contract: { k: 3 } };
const result: EvaluationResult = {
  contract: {
    corpusHash: "c",
    retriever: { method: "bm25", indexHash: "i", parameters: {} },
    k: 3,
    split: "test",
    n: 1,
    questionsHash: "q",
    promptHash: "p",
    templateHash: "t",
    codec: "search-r1",
    limits: {},
    normaliser: "squad",
    judge: "exactMatch",
    sampling: { temperature: 0, topP: 1, topK: 0 },
    model: { type: "scripted", model: "m" },
    codeVersion: "0",
    seed: 1,
  },
  summary: { overall: { n: 0, failed: 1 }, byDataset: {}, byHops: {}, byKind: {} },
  items: [{ dataset: "lab", id: "1", stopReason: "retrieverFailure", failed: true, failure: "down" }],
};
let parent: string;
let path: string;

beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), "forager-run-"));
  path = join(parent, "run");
});
afterEach(() => rm(parent, { recursive: true }));

describe("making and opening a run", () => {
  it("holds recipe and contract from the start", async () => {
    await using _ = await RunFolder.create(path, contents);
    const reader = await RunFolder.open(path);
    expect(await reader.readRecipe()).toBe(contents.recipeYaml);
    expect(await reader.readContract()).toEqual(contents.contract);
  });

  it("refuses a folder that exists and leaves it as it was", async () => {
    await mkdir(path);
    await writeFile(join(path, "mine.txt"), "keep");
    await expect(RunFolder.create(path, contents)).rejects.toThrow(FileError);
    expect(await readdir(path)).toEqual(["mine.txt"]);
    expect(await readdir(parent)).toEqual(["run"]);
  });

  it("says what is wrong with a path that holds no run", async () => {
    await expect(RunFolder.open(path)).rejects.toThrow("there is no run");
    await expect(RunFolder.open(parent)).rejects.toThrow("no recipe.yaml");
  });
});

describe("the lock", () => {
  const lockBy = (owner: unknown): Promise<void> => writeFile(join(path, "run.lock"), JSON.stringify(owner));

  it("keeps a second writer out until the first is done, and readers never", async () => {
    const first = await RunFolder.create(path, contents);
    await expect(RunFolder.resume(path)).rejects.toThrow(`being written by process ${process.pid}`);
    expect(await (await RunFolder.open(path)).readMetrics()).toEqual([]);
    await first.close();
    await using second = await RunFolder.resume(path);
    await second.appendMetrics({ stage: "grpo", step: 1 });
    expect(await second.readMetrics()).toHaveLength(1);
  });

  it("of a process that has ended is taken over", async () => {
    await (await RunFolder.create(path, contents)).close();
    await lockBy({ pid: spawnSync(process.execPath, ["--version"]).pid, host: hostname() });
    await using run = await RunFolder.resume(path);
    expect(await readdir(run.path)).toContain("run.lock");
    expect(await readFile(join(path, "run.lock"), "utf8")).toContain(String(process.pid));
  });

  it("that an earlier process with our number left behind is taken over", async () => {
    await (await RunFolder.create(path, contents)).close();
    await lockBy({ pid: process.pid, host: hostname() });
    await using run = await RunFolder.resume(path);
    await run.appendMetrics({ stage: "grpo", step: 1 });
  });

  it("of a living process or of another host stands", async () => {
    await (await RunFolder.create(path, contents)).close();
    await lockBy({ pid: process.ppid, host: hostname() });
    await expect(RunFolder.resume(path)).rejects.toThrow(FileError);
    await lockBy({ pid: 1, host: "elsewhere" });
    await expect(RunFolder.resume(path)).rejects.toThrow("process 1 on elsewhere");
  });

  it("is needed to write", async () => {
    await (await RunFolder.create(path, contents)).close();
    const reader = await RunFolder.open(path);
    await expect(reader.appendMetrics({ stage: "grpo", step: 1 })).rejects.toThrow("opened for reading");
  });
});

describe("metrics and trajectories", () => {
  it("drops everything past the checkpoint, so that a resumed run leaves no step twice", async () => {
    await using run = await RunFolder.create(path, contents);
    for (const step of [1, 2, 3]) {
      await run.appendMetrics({ stage: "grpo", step, "reward/mean": step / 10 });
      await run.appendTrajectories("grpo", [makeRecord({ step: step - 1 })]);
    }
    await run.truncateAfter({ stage: "grpo", step: 2 });
    await run.appendMetrics({ stage: "grpo", step: 3, "reward/mean": 0.9 });
    expect((await run.readMetrics()).map((row) => row["reward/mean"])).toEqual([0.1, 0.2, 0.9]);
    expect((await run.readTrajectories("grpo")).map(({ step }) => step)).toEqual([0, 1]);
  });

  it("drops a later stage that has no row yet, and keeps what an evaluation left", async () => {
    await using run = await RunFolder.create(path, contents);
    await run.appendMetrics({ stage: "warm-up", step: 1 });
    await run.writeTrajectories("before", [makeRecord({ step: 0 })]);
    await run.writeEvaluation("before", result, { stage: "grpo", step: 0 });
    await run.appendTrajectories("grpo", [makeRecord({ step: 1 })]);
    await run.truncateAfter({ stage: "warm-up", step: 1 });
    expect(await run.readTrajectories("grpo")).toEqual([]);
    expect(await run.readTrajectories("before")).toHaveLength(1);
  });

  it("takes what became known later into the last row", async () => {
    await using run = await RunFolder.create(path, contents);
    await run.appendMetrics({ stage: "grpo", step: 1 });
    await run.appendMetrics({ stage: "grpo", step: 2 });
    await run.replaceLastMetrics({ stage: "grpo", step: 2, "evaluation/em": 0.5 });
    await run.appendMetrics({ stage: "grpo", step: 3 });
    expect(await run.readMetrics()).toEqual([
      { stage: "grpo", step: 1 },
      { stage: "grpo", step: 2, "evaluation/em": 0.5 },
      { stage: "grpo", step: 3 },
    ]);
  });

  it("forgets the line that a kill cut off", async () => {
    await (await RunFolder.create(path, contents)).close();
    await appendFile(join(path, "metrics.jsonl"), '{"stage":"grpo","step":1}\n{"stage":"grpo","st');
    await using run = await RunFolder.resume(path);
    await run.appendMetrics({ stage: "grpo", step: 2 });
    expect((await run.readMetrics()).map(({ step }) => step)).toEqual([1, 2]);
  });

  it("replaces the trajectories of an evaluation that is done again", async () => {
    await using run = await RunFolder.create(path, contents);
    await run.writeTrajectories("before", [makeRecord(), makeRecord()]);
    await run.writeTrajectories("before", [makeRecord({ step: 0 })]);
    expect(await run.readTrajectories("before")).toEqual([makeRecord({ step: 0 })]);
    expect(await run.trajectoryNames()).toEqual(["before"]);
  });

  it("never writes outside the folder, whatever the name", async () => {
    await using run = await RunFolder.create(path, contents);
    await expect(run.writeTrajectories("../before", [])).rejects.toThrow("a name of letters");
  });
});

describe("evaluations", () => {
  it("come back as they were written", async () => {
    await using run = await RunFolder.create(path, contents);
    await run.writeEvaluation("before", result, { stage: "grpo", step: 0 });
    expect(await run.readEvaluations()).toEqual([{ name: "before", stage: "grpo", step: 0, result }]);
  });

  it("name the file when it is damaged", async () => {
    await using run = await RunFolder.create(path, contents);
    await writeFile(join(path, "evaluation", "before.json"), '{"name":');
    await expect(run.readEvaluations()).rejects.toThrow(DataFormatError);
    await expect(run.readEvaluations()).rejects.toThrow("before.json");
  });
});

describe("checkpoints", () => {
  const fill =
    (text: string) =>
    (folder: string): Promise<void> =>
      writeFile(join(folder, "weights"), text);

  it("appear whole, in the order of their steps", async () => {
    await using run = await RunFolder.create(path, contents);
    for (const step of [9, 10, 2]) await run.writeCheckpoint(step, fill(String(step)));
    expect((await run.checkpoints()).map(({ step }) => step)).toEqual([2, 9, 10]);
    const latest = await run.latestCheckpoint();
    expect(latest?.path).toBe(run.checkpointFolder(10));
    expect(await readFile(join(run.checkpointFolder(10), "weights"), "utf8")).toBe("10");
  });

  it("leave the older one in place when writing fails, and nothing half written that counts", async () => {
    await using run = await RunFolder.create(path, contents);
    await run.writeCheckpoint(5, fill("good"));
    const failing = async (folder: string): Promise<void> => {
      await fill("half")(folder);
      throw new Error("no space");
    };
    await expect(run.writeCheckpoint(5, failing)).rejects.toThrow("no space");
    await expect(run.writeCheckpoint(6, failing)).rejects.toThrow("no space");
    expect((await run.checkpoints()).map(({ step }) => step)).toEqual([5]);
    expect(await readFile(join(run.checkpointFolder(5), "weights"), "utf8")).toBe("good");
    await run.writeCheckpoint(5, fill("better"));
    expect(await readFile(join(run.checkpointFolder(5), "weights"), "utf8")).toBe("better");
  });

  it("are pruned down to the newest, with what a kill left behind", async () => {
    await using run = await RunFolder.create(path, contents);
    for (const step of [1, 2, 3]) await run.writeCheckpoint(step, fill("x"));
    await mkdir(join(path, "checkpoints", ".4.123.partial"));
    await run.pruneCheckpoints(1);
    expect(await readdir(join(path, "checkpoints"))).toEqual(["3"]);
    await run.pruneCheckpoints(5);
    expect(await readdir(join(path, "checkpoints"))).toEqual(["3"]);
    await expect(run.pruneCheckpoints(0)).rejects.toThrow("at least 1");
  });
});
