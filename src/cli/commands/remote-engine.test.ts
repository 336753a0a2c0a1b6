/** The command line with a model that is trained elsewhere: here behind our own server, in this process. */
import { existsSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runForTest, type TestRun } from "../../../test/run-cli.ts";
import { tinyEngine } from "../../engine/engine.fixture.ts";
import { readRemoteCheckpoint, runIdentity } from "../../engine/tinker/remote-checkpoint.ts";
import { deadUrl } from "../../shared/server.fixture.ts";
import { type Started, startServe } from "./serve.fixture.ts";

const recipe = join(import.meta.dirname, "..", "..", "..", "recipes", "tinker-smoke.yaml");
let folder: string;
let server: Started;
let url: string;
let trained: TestRun;
const at = (name: string): string => join(folder, name);

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "forager-remote-"));
  const engine = await tinyEngine();
  await engine.save(at("tiny"));
  await engine.close();
  const flags = ["--model", at("tiny"), "--port", "0", "--threads", "1", "--state", at("state")];
  server = await startServe({}, "engine", ...flags);
  url = server.ready.url as string;
  trained = await runForTest("train", recipe, "--set", `engine.url=${url}`, "--out", at("run"), "--json");
});
afterAll(async () => {
  server.stop("SIGTERM");
  await server.end;
  await rm(folder, { recursive: true });
});

test("the smoke recipe trains, with the server's model and tokenizer and a probe in the contract", async () => {
  expect(trained.stderr).toContain("probe: masked positions have no effect, reduction sum");
  expect(trained.code).toBe(0);
  expect(trained.json).toMatchObject({ run: at("run"), after: { n: 8 } });
  const contract = JSON.parse(await readFile(at("run/contract.json"), "utf8"));
  expect(contract).toMatchObject({
    model: { type: "remote" },
    engine: { type: "tinker", profile: "forager", rank: 8, probe: { ok: true, sameTokenizer: true } },
  });
  const rows = (await readFile(at("run/metrics.jsonl"), "utf8"))
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(rows.map(({ stage, step }) => `${stage} ${step}`)).toEqual([
    "warm-up 1",
    "warm-up 2",
    "warm-up 3",
    "grpo 1",
    "grpo 2",
  ]);
  for (const row of rows.slice(0, 3)) expect(row["gradient/norm"]).toBeGreaterThan(0);
  for (const row of rows.slice(3)) expect(row["parity/maxLogprobDifference"] ?? 0).toBeLessThan(1e-3);
  expect(await readdir(at("run"))).not.toContain("remote-models.json");
  expect(await readRemoteCheckpoint(at("run/checkpoints/5"))).toMatchObject({
    run: await runIdentity(at("run")),
  });
});

test("its run is evaluated on the server, and resumed where it is over already", async () => {
  const evaluated = await runForTest("eval", at("run"), "--set", "evaluation.n=4", "--json");
  expect(evaluated.stderr).not.toContain("probe");
  expect(evaluated.json).toMatchObject({ n: 4 });
  const resumed = await runForTest("train", "--resume", at("run"), "--json");
  expect(resumed.code).toBe(0);
});

test("a checkpoint of it is scored with its own weights, and no other model under the server's", async () => {
  const flags = ["--set", "evaluation.n=4", "--json"];
  const chosen = await runForTest("eval", at("run"), "--checkpoint", "5", ...flags, "--out", at("five.json"));
  expect(chosen.json).toMatchObject({ n: 4 });
  // The server is asked for the weights of the checkpoint, whichever way it is named.
  const before = await checkpointLoads();
  const named = ["--recipe", recipe, "--set", `engine.url=${url}`];
  const folder = await runForTest("eval", at("run/checkpoints/5"), ...named, ...flags);
  expect(folder.json).toMatchObject({ n: 4, em: (chosen.json as { em: unknown }).em });
  expect(await checkpointLoads()).toBe(before + 1);
  const other = await runForTest("eval", at("tiny"), ...named, ...flags);
  expect([other.code, other.stderr]).toEqual([
    2,
    expect.stringContaining("is no checkpoint of an engine elsewhere"),
  ]);
  const absent = await runForTest("eval", at("run"), "--checkpoint", "77", ...flags);
  expect([absent.code, absent.stderr]).toEqual([1, expect.stringContaining("has no checkpoint 77; it has")]);
});

/** Weights that were loaded into models of the server so far, as its journal of promises says. */
async function checkpointLoads(): Promise<number> {
  let loads = 0;
  for (const name of await readdir(at("state/futures")))
    for (const line of (await readFile(at(`state/futures/${name}`), "utf8")).split("\n"))
      if (line.includes('"kind":"load_weights"') && !line.includes('"answer"')) loads++;
  return loads;
}

test("its checkpoints are scored beside the training, which does not wait for it", async () => {
  const sets = ["checkpoint.everySteps=1", "checkpoint.keep=9", "stages.grpo.steps=4", `engine.url=${url}`];
  const flags = sets.flatMap((set) => ["--set", set]);
  const training = runForTest("train", recipe, ...flags, "--out", at("followed"), "--json");
  while (!existsSync(at("followed/checkpoints/0"))) await sleep(20);
  const followed = await runForTest("eval", at("followed"), "--follow", "--set", "evaluation.n=4", "--json");
  expect((await training).code).toBe(0);
  const again = await runForTest("eval", at("followed"), "--follow", "--json");
  const names = ["warm-up-1", "warm-up-2", "warm-up-3", "grpo-1", "grpo-2", "grpo-3"];
  expect(followed.json).toMatchObject({ scored: names.map((name) => ({ name, n: 4 })), failed: 0 });
  expect(again.json).toMatchObject({ scored: [], failed: 0 });
  expect(await readdir(at("followed/evaluation"))).toEqual(
    [...names, "after", "before"].map((name) => `${name}.json`).sort(),
  );
  const wrong = await runForTest("eval", at("followed"), "--follow", "--checkpoint", "1");
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining("leave --checkpoint out")]);
});

test("a server that has moved is named anew when a run goes on, and is probed again", async () => {
  const sets = [`engine.url=${url}`, "stages.grpo.steps=1"].flatMap((set) => ["--set", set]);
  await runForTest("train", recipe, ...sets, "--out", at("moved"), "--json");
  const yaml = await readFile(at("moved/recipe.yaml"), "utf8");
  const gone = await deadUrl();
  await writeFile(at("moved/recipe.yaml"), yaml.replaceAll(url, gone).replace("steps: 1\n", "steps: 2\n"));
  await writeFile(
    at("moved/contract.json"),
    (await readFile(at("moved/contract.json"), "utf8")).replaceAll(url, gone),
  );
  const resumed = await runForTest("train", "--resume", at("moved"), "--set", `engine.url=${url}`, "--json");
  expect([resumed.code, resumed.stderr]).toEqual([0, expect.stringContaining("probe: masked positions")]);
  const other = await runForTest("train", "--resume", at("moved"), "--set", "engine.rank=4");
  expect([other.code, other.stderr]).toEqual([2, expect.stringContaining("--set engine.url=URL")]);
});

test("its adapters are exported without the base, and as a whole where the base is here", async () => {
  const exported = await runForTest("export", at("run"), "--to", "peft", "--out", at("adapters"), "--json");
  expect(exported.json).toMatchObject({
    to: "peft",
    files: [
      "README.md",
      "adapter_config.json",
      "adapter_model.safetensors",
      "tokenizer.json",
      "tokenizer_config.json",
    ],
  });
  const merged = await runForTest(
    "export",
    at("adapters"),
    "--to",
    "merged",
    "--out",
    at("merged"),
    "--json",
  );
  expect(merged.code).toBe(0);
});

test("doctor probes a server alone, and a recipe with its server", async () => {
  const probed = await runForTest("doctor", "--engine", url, "--json");
  expect(probed.json).toMatchObject({
    ok: true,
    probe: { ok: true, reduction: "sum", profile: "forager", sameTokenizer: true },
  });
  const wrong = await runForTest("doctor", "--engine", url, "--profile", "skyrl-jax", "--json");
  expect(wrong).toMatchObject({ code: 1, json: { ok: false } });
  const whole = await runForTest("doctor", recipe, "--set", `engine.url=${url}`, "--json");
  expect(whole.json).toMatchObject({
    checks: expect.arrayContaining([expect.objectContaining({ name: "model", ok: true })]),
  });
});

test("a server that is away, and flags that do not fit, are said in a sentence", async () => {
  const away = await runForTest(
    "train",
    recipe,
    "--set",
    `engine.url=${await deadUrl()}`,
    "--set",
    "engine.patienceMs=200",
    "--out",
    at("away"),
  );
  expect(away.code).toBe(1);
  expect(away.stderr).toContain("nothing listens there");
  expect((await runForTest("doctor", recipe, "--engine", url)).stderr).toContain("leave the recipe out");
  expect((await runForTest("doctor", "--engine", "nowhere")).stderr).toContain("--engine");
  expect((await runForTest("doctor")).stderr).toContain("name a RECIPE");
});
