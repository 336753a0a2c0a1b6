/** The program as a process: exit codes, signals and pipes, which tests inside the process cannot see. */
import { type ChildProcessByStdio, spawn, spawnSync } from "node:child_process";
import { closeSync, existsSync, openSync } from "node:fs";
import { access, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RunFolder } from "../src/reporting/run-folder.ts";
import { runForTest } from "./run-cli.ts";
import { tinyRecipe } from "./tiny-recipe.ts";

const root = join(import.meta.dirname, "..");
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "forager-process-"));
  await writeFile(join(folder, "long.yaml"), tinyRecipe.replace("steps: 2", "steps: 1000000"));
});
afterAll(() => rm(folder, { recursive: true }));

type Child = ChildProcessByStdio<null, Readable, Readable>;

const program = (...argv: readonly string[]): string[] => [
  "--import",
  "tsx",
  join(root, "src", "cli", "main.ts"),
  ...argv,
];

function start(...argv: readonly string[]): Child {
  return spawn(process.execPath, program(...argv), { cwd: root, stdio: ["ignore", "pipe", "pipe"] });
}

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

async function ended(child: Child): Promise<Ended> {
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (chunk: Buffer) => (stdout += chunk));
  child.stderr.on("data", (chunk: Buffer) => (stderr += chunk));
  const code = await new Promise<number | null>((resolve) => child.on("close", resolve));
  return { code, stdout, stderr };
}

describe("the program", () => {
  test("prints its version and ends with 0, bad usage with 2", async () => {
    const [version, usage] = await Promise.all([ended(start("--version")), ended(start("trian"))]);
    expect(version).toEqual({ code: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/), stderr: "" });
    expect(usage).toMatchObject({
      code: 2,
      stdout: "",
      stderr: expect.stringContaining('did you mean "train"?'),
    });
  });

  test.each([
    [["search", "/none/such", "x"], 1, "no such file or folder"],
    [["--version"], 0, ""],
  ])(
    "%j ends though something in it still waits, as a library for a server",
    async (line, expected, said) => {
      const waiting = ["--import", "data:text/javascript,setInterval(() => undefined, 1000)"];
      const child = spawn(process.execPath, [...waiting, ...program(...line)], {
        cwd: root,
        stdio: ["ignore", "pipe", "pipe"],
      });
      const late = setTimeout(() => child.kill("SIGKILL"), 60_000);
      const { code, stderr } = await ended(child);
      clearTimeout(late);
      expect([code, stderr]).toEqual([expected, expect.stringContaining(said)]);
    },
  );

  test("an interrupt saves the state, says how to go on, and ends with 130", async () => {
    const run = join(folder, "run");
    const child = start("train", join(folder, "long.yaml"), "--out", run, "--json");
    const end = ended(child);
    await until(join(run, "checkpoints", "3"), child);
    child.kill("SIGINT");
    const { code, stdout, stderr } = await end;
    expect(code).toBe(130);
    expect(stderr).toMatch(
      /forager: stopped after step \d+ of 1000002; go on with: npx forager train --resume .*run\n$/,
    );
    expect(JSON.parse(stdout)).toMatchObject({ error: { code: "interrupted" } });
    await access(join(run, "report.html"));
  });

  test("a kill at any moment leaves a run that goes on to the same numbers", async () => {
    const recipe = join(folder, "some.yaml");
    await writeFile(recipe, tinyRecipe.replace("steps: 2", "steps: 30"));
    const [whole, killed] = [join(folder, "whole"), join(folder, "killed")];
    expect(await runForTest("train", recipe, "--out", whole)).toMatchObject({ code: 0 });
    const child = start("train", recipe, "--out", killed);
    const end = ended(child);
    await until(join(killed, "checkpoints", "3"), child);
    child.kill("SIGKILL");
    expect((await end).code).toBeNull();
    const stoppedAt = (await measured(killed)).length;
    expect(stoppedAt).toBeGreaterThanOrEqual(3);
    expect(stoppedAt).toBeLessThan(32);
    const resumed = await runForTest("train", "--resume", killed);
    expect(resumed.stderr).toMatch(new RegExp(`going on after step (${stoppedAt - 1}|${stoppedAt}) of 32`));
    expect(resumed.code).toBe(0);
    expect(await measured(killed)).toEqual(await measured(whole));
  });

  test("a reader that goes away is no error", async () => {
    const child = start("--help");
    child.stdout.destroy();
    const { code, stderr } = await ended(child);
    expect([code, stderr]).toEqual([0, ""]);
  });

  test.runIf(existsSync("/dev/full"))("a full disk under its output is one line", () => {
    const full = openSync("/dev/full", "w");
    try {
      const { status, stderr } = spawnSync(process.execPath, program("--help"), {
        cwd: root,
        stdio: ["ignore", full, "pipe"],
        encoding: "utf8",
      });
      expect([status, stderr]).toEqual([1, "forager: cannot write standard output: the disk is full\n"]);
      expect(
        spawnSync(process.execPath, program("trian"), { cwd: root, stdio: ["ignore", "pipe", full] }).status,
      ).toBe(2);
    } finally {
      closeSync(full);
    }
  });
});

/** The rows of `metrics.jsonl` without what a clock or the machine decides. */
async function measured(run: string): Promise<object[]> {
  const rows = await (await RunFolder.open(run)).readMetrics();
  return rows.map((row) =>
    Object.fromEntries(Object.entries(row).filter(([key]) => !/^(time|rate|memory)\//.test(key))),
  );
}

/** Waits for a file that `child` is to write; an end of the child ends the waiting. */
async function until(path: string, child: Child): Promise<void> {
  while (child.exitCode === null) {
    const isThere = await access(path).then(
      () => true,
      () => false,
    );
    if (isThere) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
