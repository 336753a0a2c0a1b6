/**
 * What a large run costs in this process: thousands of episodes against a server whose model costs nothing
 * (`orchestration-server.ts`, another process), with everything a training does: rollouts ahead of updates, retrieval,
 * rewards, batches over HTTP. Three parts: turns a second and memory; a batch of some megabytes through an update; and a
 * run with faults of every kind, after which every question must be accounted for and nothing trained twice.
 */
import { monitorEventLoopDelay, performance } from "node:perf_hooks";
import type { Datum } from "../src/algorithm/datum.ts";
import { type ReinforcementStage, reinforcementStageSchema } from "../src/config/stage-options.ts";
import { Connection } from "../src/engine/tinker/connection.ts";
import { Session } from "../src/engine/tinker/session.ts";
import { TinkerEngine } from "../src/engine/tinker/tinker-engine.ts";
import { tinkerOptionsSchema } from "../src/engine/tinker/tinker-options.ts";
import { environmentOptionsSchema } from "../src/environment/environment-options.ts";
import { RetrieverError } from "../src/errors.ts";
import { scriptedRetriever } from "../src/retrieval/scripted-retriever.ts";
import type { NetworkWorld } from "../src/shared/network-world.ts";
import { reinforcementStep } from "../src/training/reinforcement-step.ts";
import { SampleAhead } from "../src/training/sample-ahead.ts";
import type { SamplingLesson } from "../src/training/sample-groups.ts";
import { processWorld } from "../src/training/world.ts";
import { type Bench, integerOptions } from "./bench.ts";
import { formatBytes, formatNumber, markdownTable } from "./measure.ts";
import { byteTokenizer } from "./orchestration-tokenizer.ts";
import { Worker } from "./worker.ts";

const groupSize = 8;
/** Seconds of an update of 512 trajectories on eight H100 (SkyRL's published timing), against which overhead is held. */
const updateSeconds = 133;

export const orchestrationBench: Bench = {
  name: "orchestration",
  about:
    "a large run against a server that computes nothing: turns/s, memory, bytes of an update, injected faults",
  options:
    "[--cases turns,update,faults] [--turns 100000] [--inFlight 2000] [--samples 128] [--megabytes 10] [--updates 5] [--faults 1000]",
  async run(args) {
    const {
      turns,
      inFlight,
      samples,
      megabytes,
      updates,
      faults,
      cases = "turns,update,faults",
    } = integerOptions(args, {
      turns: 100_000,
      inFlight: 2000,
      samples: 128,
      megabytes: 10,
      updates: 5,
      faults: 1000,
    });
    const wanted = cases.split(",");
    const measured: Measured = {
      ...(wanted.includes("turns") && {
        rollouts: await onServer(samples, (there) => measureTurns(there, { turns, inFlight })),
      }),
      ...(wanted.includes("update") && {
        update: await onServer(samples, (there) => measureUpdates(there, { megabytes, updates })),
      }),
      ...(wanted.includes("faults") && {
        failures: await onServer(samples, (there) => measureFaults(there, faults)),
      }),
    };
    return { markdown: report(measured), data: measured };
  },
};

interface There {
  readonly server: Worker;
  readonly engine: TinkerEngine;
  /** Bytes of all request bodies so far. */
  readonly sentBytes: () => number;
}

/** Runs a part against a server and an engine of its own. */
async function onServer<T>(concurrency: number, work: (there: There) => Promise<T>): Promise<T> {
  const file = new URL("orchestration-server.ts", import.meta.url).pathname;
  const server = new Worker(process.execPath, ["--import", "tsx", file]);
  try {
    const { url } = (await server.request("start")) as { readonly url: string };
    const counted = countingWorld();
    const options = tinkerOptionsSchema.parse({ type: "tinker", url, concurrency, rank: 8, backoffMs: 50 });
    const session = await Session.open(new Connection(options, counted.world), { seed: 1 });
    const engine = await TinkerEngine.create({
      session,
      tokenizer: byteTokenizer(),
      contextLength: 16_384,
      baseModel: "null",
      rank: 8,
      location: { base_model_name_or_path: "null", revision: null },
    });
    const result = await work({ server, engine, sentBytes: counted.sentBytes });
    await engine.close();
    await server.request("close");
    return result;
  } finally {
    server.close();
  }
}

function countingWorld(): { readonly world: NetworkWorld; readonly sentBytes: () => number } {
  let sent = 0;
  const world = processWorld();
  const counted: typeof fetch = (input, init) => {
    sent += typeof init?.body === "string" ? Buffer.byteLength(init.body) : 0;
    return world.fetch(input, init);
  };
  return { world: { ...world, fetch: counted }, sentBytes: () => sent };
}

function stageOf(episodes: number, changes: object = {}): ReinforcementStage {
  return reinforcementStageSchema.parse({
    type: "reinforcement",
    name: "grpo",
    steps: 1_000_000,
    questionsPerStep: Math.max(1, Math.round(episodes / groupSize)),
    schedule: { learningRate: 1e-6 },
    algorithm: { groupSize },
    maxStaleness: 1,
    ...changes,
  });
}

const passage = "A fact that is long enough to be a passage of a hundred words in bytes. ".repeat(4);

/** Questions with a retriever that answers at once, or fails every `failsEvery`-th search. */
function lessonOf(engine: TinkerEngine, failsEvery = 0): SamplingLesson {
  let searches = 0;
  const train = Array.from({ length: 10_000 }, (_, i) => ({
    id: `${i}`,
    dataset: "bench",
    text: `is fact number ${i} true`,
    goldAnswers: ["yes"],
    goldPassages: [],
  }));
  const retriever = scriptedRetriever(() =>
    failsEvery > 0 && ++searches % failsEvery === 0
      ? new RetrieverError("injected")
      : [{ id: "p", title: "Fact", text: passage }],
  );
  const data = { train, evaluation: [], validation: [], split: "test", retriever, close: async () => {} };
  const environment = environmentOptionsSchema.parse({
    prompt: "bare",
    k: 1,
    maxSearches: 4,
    maxTurnTokens: 128,
    maxObservationTokens: 400,
  });
  return { engine, data, environment, seed: 3, now: () => performance.now() };
}

/** Steps are sampled one after the other, the next while one is taken, as in a training whose updates cost nothing. */
async function measureTurns(
  { engine, server }: There,
  { turns: wanted, inFlight }: { readonly turns: number; readonly inFlight: number },
) {
  const ahead = new SampleAhead(lessonOf(engine), stageOf(inFlight), { keepsSnapshots: true });
  const memory: number[] = [];
  let [turns, episodes, failed, started] = [0, 0, 0, 0];
  let processor = process.cpuUsage();
  const pauses = monitorEventLoopDelay({ resolution: 20 });
  for (let step = 0; turns < wanted; step++) {
    const { sampled } = await ahead.take(step);
    if (step === 0) {
      [started, processor] = [performance.now(), process.cpuUsage()];
      pauses.enable();
    } else {
      for (const { trajectory, reward } of sampled) {
        turns += trajectory.turns.length;
        episodes++;
        if (reward === undefined) failed++;
      }
    }
    memory.push(process.memoryUsage.rss());
    process.stderr.write(`\r${turns} turns, ${formatBytes(memory.at(-1) ?? 0)}   `);
  }
  const seconds = (performance.now() - started) / 1000;
  const { user, system } = process.cpuUsage(processor);
  pauses.disable();
  await ahead.close();
  const there = await server.request("stats");
  return {
    longestPauseMs: pauses.max / 1e6,
    turns,
    episodes,
    failed,
    seconds,
    turnsPerSecond: turns / seconds,
    processorShare: (user + system) / 1e6 / seconds,
    memoryAfterFirstStep: memory[1] ?? memory[0] ?? 0,
    memoryAtEnd: memory.at(-1) ?? 0,
    memoryMost: Math.max(...memory),
    serverProcessorSeconds: there.processorSeconds as number,
  };
}

/** Data of 4,096 tokens with weights on a third, `megabytes` of JSON in all. */
function batchOf(megabytes: number): Datum[] {
  const length = 4096;
  // Tokens and targets take some 8 bytes of JSON each pair, log-probabilities and advantages some 28.
  const count = Math.max(1, Math.round((megabytes * 1e6) / (length * 24)));
  return Array.from({ length: count }, (_, i) => {
    const inputs = Int32Array.from({ length }, (_, t) => (i * 31 + t * 7) % 258);
    const weights = Float32Array.from({ length }, (_, t) => (t % 3 === 0 ? 1 / (count * length) : 0));
    const some = (scale: number): Float32Array =>
      weights.map((weight, t) => (weight === 0 ? 0 : -scale * (1 + (t % 89) / 97)));
    return { inputs, targets: inputs.slice(), weights, logprobs: some(1), advantages: some(-0.3) };
  });
}

async function measureUpdates(
  { engine, server, sentBytes }: There,
  { megabytes, updates }: { readonly megabytes: number; readonly updates: number },
) {
  const batch = batchOf(megabytes);
  const rounds: { wall: number; processor: number; server: number; bytes: number }[] = [];
  for (let round = 0; round <= updates; round++) {
    const before = (await server.request("stats")).processorSeconds as number;
    const [bytes, started, processor] = [sentBytes(), performance.now(), process.cpuUsage()];
    await engine.forwardBackward(batch, { type: "ppo", clipLow: 0.2, clipHigh: 0.28 });
    await engine.step({
      learningRate: 1e-6,
      beta1: 0.9,
      beta2: 0.95,
      epsilon: 1e-8,
      weightDecay: 0,
      maxGradientNorm: 1,
    });
    const { user, system } = process.cpuUsage(processor);
    const wall = (performance.now() - started) / 1000;
    const after = (await server.request("stats")).processorSeconds as number;
    const row = {
      wall,
      processor: (user + system) / 1e6,
      server: after - before,
      bytes: sentBytes() - bytes,
    };
    if (round > 0) rounds.push(row); // the first warms up
  }
  const median = (of: (row: (typeof rounds)[number]) => number): number =>
    rounds.map(of).sort((a, b) => a - b)[Math.floor(rounds.length / 2)] as number;
  const wall = median((row) => row.wall);
  return {
    data: batch.length,
    bytes: median((row) => row.bytes),
    wallSeconds: wall,
    processorSeconds: median((row) => row.processor),
    serverProcessorSeconds: median((row) => row.server),
    shareOfPublishedUpdate: wall / updateSeconds,
    rounds,
  };
}

/** Whole steps until all faults were injected and two more. */
async function measureFaults({ engine, server }: There, count: number) {
  const stage = stageOf(200, { episodeRetries: 2 });
  const lesson = lessonOf(engine, 100);
  const ahead = new SampleAhead(lesson, stage, { keepsSnapshots: true });
  await server.request("count");
  await server.request("faults", { count, every: 7 });
  const asked = new Set<string>();
  const totals = { steps: 0, trajectories: 0, trained: 0, dropped: 0, retried: 0 };
  for (let extra = 2; extra > 0; ) {
    const step = totals.steps++;
    const { sampled, row } = await reinforcementStep(lesson, stage, { step, ahead });
    for (const { trajectory, advantage, reward } of sampled) {
      asked.add(`${trajectory.group}#${trajectory.sample}`);
      totals.trajectories++;
      if (reward === undefined) totals.dropped++;
      if (advantage !== undefined) totals.trained++;
    }
    totals.retried += row["group/retried"] ?? 0;
    if (((await server.request("stats")).faultsLeft as number) === 0) extra--;
    process.stderr.write(`\r${totals.steps} steps with faults   `);
  }
  await ahead.close();
  const { data, duplicates, steps, faults } = await server.request("stats");
  const expected = totals.steps * stage.questionsPerStep * groupSize;
  return {
    ...totals,
    injected: faults as Readonly<Record<string, number>>,
    missing: expected - asked.size,
    askedTwice: totals.trajectories - asked.size,
    trainedThere: data as number,
    trainedTwice: duplicates as number,
    stepsThere: steps as number,
    made: engine.counts,
  };
}

interface Measured {
  readonly rollouts?: Awaited<ReturnType<typeof measureTurns>>;
  readonly update?: Awaited<ReturnType<typeof measureUpdates>>;
  readonly failures?: Awaited<ReturnType<typeof measureFaults>>;
}

function report({ rollouts, update, failures }: Measured): string {
  return markdownTable(
    ["orchestration", "measured"],
    [
      ...(rollouts ? turnRows(rollouts) : []),
      ...(update ? updateRows(update) : []),
      ...(failures ? faultRows(failures) : []),
    ],
  );
}

function turnRows(rollouts: NonNullable<Measured["rollouts"]>): string[][] {
  const { memoryAfterFirstStep, memoryAtEnd, memoryMost } = rollouts;
  return [
    ["turns/s", `${formatNumber(rollouts.turnsPerSecond)} over ${rollouts.turns} turns`],
    [
      "processors in use here, longest pause of the event loop",
      `${formatNumber(rollouts.processorShare)}, ${formatNumber(rollouts.longestPauseMs)} ms`,
    ],
    [
      "memory after the first step, at the end, most",
      [memoryAfterFirstStep, memoryAtEnd, memoryMost].map(formatBytes).join(", "),
    ],
    ["episodes that failed", `${rollouts.failed} of ${rollouts.episodes}`],
  ];
}

function updateRows(update: NonNullable<Measured["update"]>): string[][] {
  const { wallSeconds, processorSeconds, serverProcessorSeconds, shareOfPublishedUpdate } = update;
  return [
    ["bytes of an update", formatBytes(update.bytes)],
    [
      "seconds of an update: wall, processor here, processor there",
      [wallSeconds, processorSeconds, serverProcessorSeconds].map(formatNumber).join(", "),
    ],
    [`share of a published update of ${updateSeconds} s`, `${(100 * shareOfPublishedUpdate).toFixed(2)} %`],
  ];
}

function faultRows(failures: NonNullable<Measured["failures"]>): string[][] {
  const injected = Object.values(failures.injected).reduce((sum, value) => sum + value, 0);
  return [
    ["faults injected", `${injected}, steps ${failures.steps}`],
    ["episodes played again, dropped", `${failures.retried}, ${failures.dropped}`],
    ["questions missing, asked twice", `${failures.missing}, ${failures.askedTwice}`],
    ["trained here, there, twice", `${failures.trained}, ${failures.trainedThere}, ${failures.trainedTwice}`],
  ];
}
