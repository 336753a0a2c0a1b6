/**
 * The official Python client of the Tinker protocol trains against our server, unchanged. FORAGER_PYTHON names a Python
 * 3.11 or newer, from which a virtual environment for the client is made and removed again; without it, or without the
 * package index, these tests are skipped.
 */
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Started, startServe } from "../../src/cli/commands/serve.fixture.ts";
import { tinyEngine } from "../../src/engine/engine.fixture.ts";

const run = promisify(execFile);
const base = process.env.FORAGER_PYTHON;
let scratch: string;
let python: string | undefined;
let missing = "FORAGER_PYTHON names no Python";
let server: Started | undefined;

beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), "forager-tinker-"));
  if (base === undefined) return;
  try {
    python = await installClient(base, join(scratch, "venv"));
  } catch (error) {
    missing = `the client cannot be installed: ${(error as Error).message.slice(0, 300)}`;
    return;
  }
  const engine = await tinyEngine();
  await engine.save(join(scratch, "model"));
  await engine.close();
  server = await startServe(
    {},
    ...["engine", "--model", join(scratch, "model"), "--port", "0", "--threads", "1"],
    ...["--state", join(scratch, "state"), "--name", "tiny"],
  );
});
afterAll(async () => {
  server?.stop("SIGTERM");
  await server?.end;
  await rm(scratch, { recursive: true, force: true });
});

/** A virtual environment with the client, which also sees the packages of `base`, such as torch. */
async function installClient(base: string, folder: string): Promise<string> {
  await run(base, ["-m", "venv", folder]);
  const own = join(folder, "bin", "python");
  await run(own, ["-m", "pip", "install", "--quiet", "tinker==0.24.1"]);
  const script = "import sysconfig; print(sysconfig.get_paths()['purelib'])";
  const [theirs, ours] = await Promise.all(
    [base, own].map(async (it) => (await run(it, ["-c", script])).stdout.trim()),
  );
  await writeFile(join(ours as string, "base.pth"), `${theirs}\n`);
  return own;
}

test("a loop in the manner of the cookbook learns, saves and resumes", async (context) => {
  if (python === undefined || server === undefined) return context.skip(missing);
  const { url } = server.ready;
  const env = { ...process.env, TINKER_TELEMETRY: "0" };
  const script = join(import.meta.dirname, "tinker_loop.py");
  const { stdout } = await run(python, [script, url, "tiny"], { env, maxBuffer: 2 ** 24 });
  const report = JSON.parse(stdout.trim().split("\n").at(-1) as string);
  expect(report).toMatchObject({
    models: ["tiny"],
    context: 640,
    info: { rank: 4, is_lora: true, name: "tiny" },
    step_metrics: { grad_norm: expect.any(Number), learning_rate: 5e-3 },
    named: 2,
    runs: [false, true, true],
    checkpoints: ["sampler_weights/final", "weights/state-1"],
    left: ["sampler_weights/final"],
    refused: expect.stringContaining("1000000 as entry 1"),
    archive: expect.stringMatching(/^http:.*archive\.tar\.gz$/),
    ppo: expect.any(Number),
    cispo: expect.any(Number),
    dro: expect.any(Number),
  });
  const { rewards } = report;
  expect(report.supervised.at(-1)).toBeLessThan(report.supervised[0]);
  const mean = (values: number[]): number => values.reduce((a, b) => a + b, 0) / values.length;
  expect(mean(rewards.slice(-3))).toBeGreaterThan(mean(rewards.slice(0, 3)) + 0.2);
  expect(report.compute_logprobs[0]).toBeNull();
  for (const [t, logprob] of report.forward.entries())
    expect(report.compute_logprobs[t + 1]).toBeCloseTo(logprob, 4);
  const [[before, after], [resumedBefore, resumedAfter]] = report.resumed;
  expect(resumedBefore).toBeCloseTo(before, 4);
  expect(resumedAfter).toBeCloseTo(after, 4);
  expect(report.greedy[0]).toEqual(report.greedy[1]);
  if (report.custom !== undefined) expect(report.custom[1]).toBeLessThan(report.custom[0]);
  expect(server.notes).toEqual([]);
});
