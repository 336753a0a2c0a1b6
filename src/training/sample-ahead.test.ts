import { expect, test } from "vitest";
import type { Engine } from "../engine/engine.ts";
import { PolicyError, RetrieverError } from "../errors.ts";
import { scriptedRetriever } from "../retrieval/scripted-retriever.ts";
import type { Policy } from "../rollout/policy.ts";
import { lessonOf, stageOf, ticks, trainStage } from "./sample-ahead.fixture.ts";
import { SampleAhead } from "./sample-ahead.ts";
import { EpisodesFailedError, type SamplingLesson, sampleGroups } from "./sample-groups.ts";

// What this file locks: no token is trained on that is older than allowed; every question of every step is sampled and
// trained on exactly once, in the order of the steps; what fails is played again, then counted; nothing outlives a stage.

interface World {
  /** Fails this call of the policy, counted from 0. */
  readonly failsPolicy?: (call: number) => boolean;
  readonly failsSearch?: (call: number) => boolean;
}

/** Its tokens are as likely as the number of its updates says; it takes a few turns of the loop for everything. */
function fakeEngine(world: World = {}) {
  const seen = {
    version: 0,
    calls: 0,
    atOnce: 0,
    mostAtOnce: 0,
    duringUpdates: 0,
    isUpdating: false,
    duringSteps: 0,
  };
  const trained: { readonly inputs: string; readonly logprobs: readonly number[] }[][] = [];
  const policy: Policy = {
    identity: { type: "fake", model: "test" },
    complete: async (contexts, _, signal) => {
      const { version } = seen;
      const call = seen.calls++;
      if (seen.isUpdating) seen.duringUpdates++;
      seen.mostAtOnce = Math.max(seen.mostAtOnce, ++seen.atOnce);
      await ticks(1 + ((contexts[0]?.seed ?? 0) % 5));
      seen.atOnce--;
      signal?.throwIfAborted();
      if (world.failsPolicy?.(call)) throw new PolicyError("no answer");
      return contexts.map(({ text, seed }) => ({
        text: text.includes("<information>") ? `<answer>${seed % 2}</answer>` : "<search>x</search>",
        tokens: [seed % 97, 1],
        logprobs: [-2 - version, -1],
        finishReason: "stop" as const,
        usage: { promptTokens: 0, completionTokens: 2 },
      }));
    },
  };
  const engine = {
    tokenizer: { encode: (text: string) => [...Buffer.from(text)], decode: () => "", endOfTextId: 0 },
    contextLength: 4096,
    policy: () => policy,
    forwardBackward: async (batch: readonly { inputs: Int32Array; logprobs?: Float32Array }[]) => {
      seen.isUpdating = true;
      trained.push(
        batch.map(({ inputs, logprobs = [] }) => ({ inputs: `${inputs}`, logprobs: [...logprobs] })),
      );
      await ticks(30);
      const logprobs = batch.map(({ logprobs = new Float32Array() }) =>
        logprobs.map((value) => (value < -1 ? -2 - seen.version : value)),
      );
      return { loss: 0, logprobs, paddedTokens: 1 };
    },
    step: async () => {
      seen.duringSteps += seen.atOnce;
      await ticks(2);
      seen.duringSteps += seen.atOnce;
      seen.version++;
      seen.isUpdating = false;
      return { gradientNorm: 1 };
    },
  };
  return { engine: engine as unknown as Engine, seen, trained };
}

function lessonWith(engine: Engine, { failsSearch }: World = {}): SamplingLesson {
  let searches = 0;
  const retriever = scriptedRetriever(() => (failsSearch?.(searches++) ? new RetrieverError("down") : []));
  return lessonOf(engine, { goldAnswer: "1", seed: 3, retriever });
}

async function trained(changes: object = {}, world: World & { readonly keepsSnapshots?: boolean } = {}) {
  const fake = fakeEngine(world);
  const stage = stageOf(changes);
  const results = await trainStage(lessonWith(fake.engine, world), stage, world);
  return { ...fake, stage, results };
}

const groupsOf = ({ results }: Awaited<ReturnType<typeof trained>>): string[][] =>
  results.map(({ sampled }) => sampled.map(({ trajectory: { group, sample } }) => `${group}#${sample}`));

test("strictly on-policy, nothing is sampled during an update and nothing is recorded of weights", async () => {
  const { seen, results } = await trained();
  expect(seen.duringUpdates).toBe(0);
  for (const { row, sampled } of results) {
    expect(row["staleness/max"]).toBeUndefined();
    expect(row["parity/maxLogprobDifference"]).toBe(0);
    expect(JSON.stringify(sampled)).not.toContain("weightsStep");
  }
});

test.each([1, 2, 3])(
  "%i steps ahead, the same questions are trained in the same order, none older than that",
  async (maxStaleness) => {
    const reference = await trained();
    const run = await trained({ maxStaleness });
    expect(groupsOf(run)).toEqual(groupsOf(reference));
    expect(new Set(groupsOf(run).flat()).size).toBe(6 * 5 * 4);
    expect(run.trained.map((batch) => batch.length)).toEqual(Array(6).fill(20));
    expect(run.seen.duringUpdates).toBeGreaterThan(0);
    const ages = run.results.map(({ row }) => row["staleness/max"] ?? Number.NaN);
    expect(ages[0]).toBe(0);
    expect(Math.max(...ages)).toBe(maxStaleness);
    // What was recorded is at least the age of the weights that really sampled: version v gives -2 - v.
    for (const [step, { sampled }] of run.results.entries())
      for (const { trajectory } of sampled)
        for (const { weightsStep, logprobs } of trajectory.segments) {
          if (weightsStep === undefined) continue;
          expect(-2 - (logprobs?.[0] as number)).toBeGreaterThanOrEqual(weightsStep);
          expect(step - weightsStep).toBeLessThanOrEqual(maxStaleness);
        }
  },
);

test("a server with one set of weights is sampled during updates, but never during a step", async () => {
  const reference = await trained();
  const run = await trained({ maxStaleness: 2, maxInFlight: 4 }, { keepsSnapshots: false });
  expect(groupsOf(run)).toEqual(groupsOf(reference));
  expect(run.seen.duringUpdates).toBeGreaterThan(0);
  expect(run.seen.duringSteps).toBe(0);
  const throughSteps = await trained({ maxStaleness: 2, maxInFlight: 4 });
  expect(throughSteps.seen.duringSteps).toBeGreaterThan(0);
});

test("older samples are measured instead of asserted on", async () => {
  const { results } = await trained({ maxStaleness: 1 });
  const stale = results.find(({ row }) => (row["staleness/max"] ?? 0) > 0);
  expect(stale?.row["staleness/klDivergence"]).toBeGreaterThan(0);
  expect(stale?.row["staleness/ratioMax"]).toBeLessThanOrEqual(1);
  expect(stale?.row["parity/maxLogprobDifference"]).toBeUndefined();
});

test.each([3, 20, 33])("at most %i episodes are in flight", async (maxInFlight) => {
  const { seen } = await trained({ maxStaleness: 2, maxInFlight });
  expect(seen.mostAtOnce).toBeLessThanOrEqual(maxInFlight);
  expect(seen.mostAtOnce).toBeGreaterThan(maxInFlight / 2);
});

test("an episode that failed is played again and is then what it would have been", async () => {
  const reference = await trained({ steps: 2 });
  const world = {
    failsPolicy: (call: number) => call % 7 === 3,
    failsSearch: (call: number) => call % 11 === 2,
  };
  const run = await trained({ steps: 2, episodeRetries: 20 }, world);
  expect(run.trained[0]).toEqual(reference.trained[0]);
  expect(run.results[0]?.row["group/retried"]).toBeGreaterThan(0);
  expect(run.results[0]?.row["group/failed"]).toBe(0);
});

test("an episode that goes on failing is dropped and counted, and what is left is trained on once", async () => {
  const isBroken = { failsPolicy: (call: number) => call % 3 === 0 };
  const { results, trained: batches } = await trained({ episodeRetries: 1, maxStaleness: 1 }, isBroken);
  for (const [step, { sampled, row }] of results.entries()) {
    expect(sampled).toHaveLength(20);
    const failed = sampled.filter(({ reward }) => reward === undefined);
    expect(row["group/failed"]).toBe(failed.length / 20);
    const taught = sampled.filter(({ advantage }) => advantage !== undefined);
    expect(batches[step]).toHaveLength(taught.length);
    expect(taught.every(({ reward }) => reward !== undefined)).toBe(true);
  }
  expect(results.some(({ row }) => (row["group/failed"] ?? 0) > 0)).toBe(true);
});

test("a step of which every episode failed ends the training instead of using up questions", async () => {
  const { engine } = fakeEngine({ failsPolicy: () => true });
  const failing = sampleGroups(lessonWith(engine), stageOf(), { step: 0 });
  await expect(failing).rejects.toThrow(EpisodesFailedError);
  await expect(failing).rejects.toThrow(/all 20 episodes .* no answer/);
});

test("nothing is in flight any more when a stage was closed in the middle", async () => {
  const { engine, seen } = fakeEngine();
  const ahead = new SampleAhead(lessonWith(engine), stageOf({ maxStaleness: 3 }), { keepsSnapshots: true });
  await ahead.take(0);
  await ahead.close();
  expect(seen.atOnce).toBe(0);
  const { calls } = seen;
  await ticks(20);
  expect(seen.calls).toBe(calls);
});

test("an interruption reaches the step that is waited for", async () => {
  const { engine } = fakeEngine();
  const stop = new AbortController();
  const lesson = { ...lessonWith(engine), signal: stop.signal };
  const ahead = new SampleAhead(lesson, stageOf({ maxStaleness: 1 }), { keepsSnapshots: true });
  const taken = ahead.take(0);
  stop.abort(new Error("enough"));
  await expect(taken).rejects.toThrow("enough");
  await ahead.close();
});
