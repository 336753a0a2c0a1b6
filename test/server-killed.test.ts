// What holds when the server of an engine elsewhere is killed (kill -9) in the middle of a run and started again: the run ends with
// an error that says how to go on, and goes on; every step is there once, and nothing was trained on twice or left out.
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { tinyEngine } from "../src/engine/engine.fixture.ts";
import type { MetricRow } from "../src/reporting/metric-row.ts";
import { RunFolder } from "../src/reporting/run-folder.ts";
import { runForTest, type TestRun } from "./run-cli.ts";

const root = join(import.meta.dirname, "..");
let folder: string;
let server: ChildProcess;
let port: number;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "forager-killed-"));
  const engine = await tinyEngine();
  await engine.save(join(folder, "tiny"));
  await engine.close();
  port = await freePort();
  server = await started();
});
afterAll(async () => {
  await killed(server);
  await rm(folder, { recursive: true, force: true });
});

/** `forager serve engine` as a process, always on the same port and the same state. */
async function started(): Promise<ChildProcess> {
  const flags = ["--model", join(folder, "tiny"), "--port", `${port}`, "--threads", "1", "--name", "tiny"];
  const argv = [
    ...["--import", "tsx", join(root, "src", "cli", "main.ts"), "serve", "engine"],
    ...[...flags, "--state", join(folder, "state")],
  ];
  const child = spawn(process.execPath, argv, { cwd: root, stdio: ["ignore", "pipe", "inherit"] });
  for await (const line of createInterface({ input: child.stdout })) if (line.startsWith("{")) return child;
  throw new Error("the server ended before it was ready");
}

async function killed(child: ChildProcess): Promise<void> {
  const closed = new Promise((resolve) => child.once("close", resolve));
  if (child.kill("SIGKILL")) await closed;
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === "object" && address ? address.port : 0));
    });
  });
}

const run = (name: string): string => join(folder, name);

function trained(name: string): Promise<TestRun> {
  const sets = [
    `engine.url=http://127.0.0.1:${port}`,
    "stages.warm-up.steps=6",
    "stages.grpo.steps=4",
    "checkpoint.everySteps=1",
    "engine.backoffMs=20",
    "evaluation.n=2",
  ];
  const recipe = join(root, "recipes", "tinker-smoke.yaml");
  return runForTest("train", recipe, ...sets.flatMap((set) => ["--set", set]), "--out", run(name));
}

const rowsOf = async (name: string): Promise<MetricRow[]> =>
  await (await RunFolder.open(run(name))).readMetrics();

/** Kills the server once the checkpoint of `step` is there, and starts it again. */
async function killAfter(name: string, step: number, training: Promise<TestRun>): Promise<TestRun> {
  while (!existsSync(join(run(name), "checkpoints", `${step}`))) await sleep(5);
  await killed(server);
  server = await started();
  return await training;
}

test("a run survives its server's end in both kinds of stages, with the numbers of one that saw none", async () => {
  expect(await trained("whole")).toMatchObject({ code: 0 });
  const first = await killAfter("killed", 3, trained("killed"));
  expect([first.code, first.stderr]).toEqual([1, expect.stringMatching(/model|restarted|--resume/)]);
  const second = await killAfter("killed", 7, runForTest("train", "--resume", run("killed")));
  expect(second.code).toBe(1);
  const last = await runForTest("train", "--resume", run("killed"));
  expect([last.code, last.stderr]).toEqual([0, expect.stringMatching(/going on after step [78] of 10/)]);
  const [whole, found] = [await rowsOf("whole"), await rowsOf("killed")];
  expect(found.map(({ stage, step }) => `${stage} ${step}`)).toEqual(
    whole.map(({ stage, step }) => `${stage} ${step}`),
  );
  // A step that was taken twice, or not at all, would show in every loss after it.
  for (const [index, row] of whole.slice(0, 6).entries()) {
    expect(found[index]?.["loss/value"]).toBeCloseTo(row["loss/value"] as number, 6);
    expect(found[index]?.["gradient/norm"]).toBeCloseTo(row["gradient/norm"] as number, 5);
  }
});
