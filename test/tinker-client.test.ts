/** Our client against our own server (`forager serve engine`), without a socket between them. */
import { cp, mkdir, mkdtemp, readFile, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { Loss } from "../src/algorithm/loss.ts";
import { EmbeddedEngine } from "../src/engine/embedded-engine.ts";
import { randomDatum, tinyEngine, tinyTokenizer } from "../src/engine/engine.fixture.ts";
import { engineSuite } from "../src/engine/engine.suite.ts";
import { Connection } from "../src/engine/tinker/connection.ts";
import { probe } from "../src/engine/tinker/probe.ts";
import { serverTokenizer } from "../src/engine/tinker/remote-tokenizer.ts";
import { Session } from "../src/engine/tinker/session.ts";
import { openTinkerEngine, tinkerOptions } from "../src/engine/tinker/tinker-engine.fixture.ts";
import type { TinkerEngine } from "../src/engine/tinker/tinker-engine.ts";
import { openEmbeddedBackend } from "../src/serving/engine/embedded-backend.ts";
import { createEngineApp } from "../src/serving/engine/engine-app.ts";
import { testServer } from "../src/serving/engine/engine-server.fixture.ts";
import type { Fetch } from "../src/shared/network-world.ts";
import { testWorld } from "../src/shared/server.fixture.ts";

const url = "http://127.0.0.1:8000";
const adam = {
  learningRate: 0.02,
  beta1: 0.9,
  beta2: 0.95,
  epsilon: 1e-8,
  weightDecay: 0.1,
  maxGradientNorm: 1,
};
const batch = [30, 7, 52, 1, 18].map((length, seed) => {
  const datum = randomDatum(length, seed);
  datum.weights[length - 1] = 1;
  return datum;
});

let scratch: string;
beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), "forager-client-"));
});
afterAll(() => rm(scratch, { recursive: true, force: true }));

async function makeBase(layers: number): Promise<string> {
  const folder = await mkdtemp(join(scratch, "base-"));
  const engine = await tinyEngine({ model: { layers } });
  await engine.save(folder);
  await engine.close();
  return folder;
}

/** A world whose network is a server of the model in `base`, for as long as the test goes on. */
async function worldOf(base: string) {
  const backend = await openEmbeddedBackend(base, {
    threads: 1,
    tokenBudget: 64,
    maxSlots: 4,
    cacheMemory: 1e8,
  });
  const { service } = await testServer({ backend });
  onTestFinished(() => backend.close());
  const app = createEngineApp(service);
  const ask: Fetch = async (url, init) => await app.request(String(url), init);
  return { ...testWorld(), fetch: ask };
}

let latest: { readonly test: string | undefined; readonly world: ReturnType<typeof worldOf> } | undefined;

/** One server for the engines of one test. */
function worldOfTest(base: string): ReturnType<typeof worldOf> {
  const test = expect.getState().currentTestName;
  if (latest?.test !== test) latest = { test, world: worldOf(base) };
  return (latest as NonNullable<typeof latest>).world;
}

async function opened(
  base: string,
  setting: Parameters<typeof openTinkerEngine>[1] = {},
): Promise<TinkerEngine> {
  return await openTinkerEngine(url, { world: await worldOfTest(base), baseModel: "base", ...setting });
}

describe("adapters on our server", () => {
  let base: string | undefined;
  /** After one step: fresh adapters change nothing, whatever their seed. */
  const trainedOnce = async (engine: TinkerEngine): Promise<TinkerEngine> => {
    await engine.forwardBackward(batch, { type: "crossEntropy" });
    await engine.step(adam);
    await engine.resetOptimizer();
    return engine;
  };
  engineSuite("an engine behind forager serve engine", {
    create: async (seed) => {
      base ??= await makeBase(2);
      return await trainedOnce(await opened(base, { seed, options: { rank: 3 } }));
    },
    createOther: async () => {
      const world = await worldOf(await makeBase(1));
      return await trainedOnce(
        await openTinkerEngine(url, { world, baseModel: "base", options: { rank: 4 } }),
      );
    },
    batch,
  });
});

describe("all weights on our server", () => {
  test("are trained as in this process", async () => {
    const base = await makeBase(2);
    const here = await EmbeddedEngine.open(base, { threads: 1, tokenBudget: 64, maxSlots: 2 });
    const there = await opened(base, { options: { rank: 0 } });
    onTestFinished(async () => {
      await there.close();
      await here.close();
    });
    const logprobs = await here.logprobs(batch);
    const policyBatch = batch.map((datum, d) => ({
      ...datum,
      logprobs: logprobs[d] as Float32Array,
      advantages: Float32Array.from(datum.targets, (_, t) => (t % 2 === 0 ? 1 : -0.5)),
    }));
    const losses: Loss[] = [
      { type: "crossEntropy" },
      { type: "ppo", clipLow: 0.2, clipHigh: 0.28 },
      { type: "importanceSampling" },
    ];
    for (const loss of losses) {
      const [expected, found] = [
        await here.forwardBackward(policyBatch, loss),
        await there.forwardBackward(policyBatch, loss),
      ];
      expect(found.loss / expected.loss).toBeCloseTo(1, 4);
      const norm = (await here.step(adam)).gradientNorm;
      expect((await there.step(adam)).gradientNorm / norm).toBeCloseTo(1, 4);
    }
    const expected = await here.logprobs(batch);
    for (const [d, row] of (await there.logprobs(batch)).entries())
      for (const [t, value] of row.entries())
        expect(Math.abs(value - (expected[d]?.[t] as number))).toBeLessThan(1e-4);
  });
});

test("the probe of our server passes, and its tokenizer comes with an archive", async () => {
  const world = await worldOf(await makeBase(2));
  const session = await Session.open(new Connection(tinkerOptions(url), world), { seed: 1 });
  onTestFinished(() => session.close());
  const verdict = await probe(session, { baseModel: "base", rank: 4 }, tinyTokenizer);
  expect(verdict).toMatchObject({ ok: true, reduction: "sum", maskWithoutEffect: true, sameTokenizer: true });
  const found = await serverTokenizer(session, { baseModel: "base", rank: 4 });
  expect(found?.tokenizer.hash).toBe(tinyTokenizer.hash);
});

test("a checkpoint holds the adapters as PEFT has them, which compute the same here", async () => {
  const base = await makeBase(2);
  const engine = await opened(base, { options: { rank: 4, downloadAdapters: true } });
  onTestFinished(() => engine.close());
  await engine.forwardBackward(batch, { type: "crossEntropy" });
  await engine.step(adam);
  const folder = join(await mkdtemp(join(scratch, "checkpoint-")), "1");
  await engine.save(folder);
  const config = JSON.parse(await readFile(join(folder, "adapter_config.json"), "utf8"));
  expect(config).toMatchObject({ peft_type: "LORA", r: 4, base_model_name_or_path: "tiny" });
  expect(config.target_modules).toHaveLength(7);
});

/** What the server of the test keeps. */
async function placesOn(base: string): Promise<string[]> {
  const { fetch: ask } = await worldOfTest(base);
  const answer = await ask(`${url}/api/v1/checkpoints`, { redirect: "manual" });
  const { checkpoints } = JSON.parse(Buffer.from(await answer.arrayBuffer()).toString());
  return checkpoints.map(({ checkpoint_id }: { checkpoint_id: string }) => checkpoint_id).sort();
}

test("a checkpoint that is given up goes from the server too, and nothing else does", async () => {
  const base = await makeBase(2);
  const folder = await mkdtemp(join(scratch, "given-up-"));
  const engine = await opened(base, { run: folder, options: { rank: 4, downloadAdapters: true } });
  onTestFinished(() => engine.close());
  await engine.forwardBackward(batch, { type: "crossEntropy" });
  await engine.step(adam);
  await engine.save(join(folder, "1"));
  await engine.resetOptimizer();
  await engine.save(join(folder, "2"));
  const [first, ...more] = await placesOn(base);
  expect([first, more.length]).toEqual(["weights/checkpoint-1", 1]);
  await engine.discard(join(folder, "1"));
  expect(await placesOn(base)).toEqual(more);
  await engine.load(join(folder, "2"));
  await expect(engine.load(join(folder, "1"))).rejects.toThrow("does not have");
  await engine.discard(join(folder, "1"));
});

test("a copy of a run, or one that was put in its place, leaves on the server what the run saved", async () => {
  const base = await makeBase(2);
  const folder = await mkdtemp(join(scratch, "copied-"));
  const [run, copy] = [join(folder, "run"), join(folder, "copy")];
  const openedFor = async (of: string): Promise<TinkerEngine> => {
    const engine = await opened(base, { run: of, options: { rank: 4 } });
    onTestFinished(() => engine.close());
    return engine;
  };
  await mkdir(run);
  const saving = await openedFor(run);
  await saving.save(join(run, "1"));
  await cp(run, copy, { recursive: true, preserveTimestamps: true });
  const copied = await openedFor(copy);
  await copied.discard(join(copy, "1"));
  expect(await placesOn(base)).toEqual(["weights/checkpoint-1"]);
  await copied.save(join(copy, "2"));
  await copied.discard(join(copy, "2"));
  await copied.load(join(copy, "1"));
  await rename(run, join(folder, "aside"));
  await cp(copy, run, { recursive: true });
  await saving.discard(join(run, "1"));
  expect(await placesOn(base)).toEqual(["weights/checkpoint-1"]);
  await rm(run, { recursive: true });
  await rename(join(folder, "aside"), run);
  const resumed = await openedFor(run);
  await resumed.discard(join(run, "1"));
  expect(await placesOn(base)).toEqual([]);
});
