/** A batch of some megabytes through an update, held against how long an update takes where the model is real. */
import { performance } from "node:perf_hooks";
import type { Datum } from "../../src/algorithm/datum.ts";
import { formatBytes, formatNumber } from "../measure.ts";
import type { There } from "./setting.ts";

/** Published: SkyRL's timing of 512 trajectories of Qwen2.5-7B on eight H100, training 100 s and forward passes 33 s. */
const publishedUpdate = { seconds: 133, source: "512 trajectories of 7 B on 8 H100, SkyRL" };

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

const adam = {
  learningRate: 1e-6,
  beta1: 0.9,
  beta2: 0.95,
  epsilon: 1e-8,
  weightDecay: 0,
  maxGradientNorm: 1,
};

/** Medians over `updates` gradients with their step; one more before them warms up. */
export async function measureUpdates(
  { engine, server, sentBytes }: There,
  { megabytes, updates }: { readonly megabytes: number; readonly updates: number },
) {
  const batch = batchOf(megabytes);
  const rounds: { wall: number; processor: number; server: number; bytes: number }[] = [];
  for (let round = 0; round <= updates; round++) {
    const before = (await server.request("stats")).processorSeconds as number;
    const [bytes, started, processor] = [sentBytes(), performance.now(), process.cpuUsage()];
    await engine.forwardBackward(batch, { type: "ppo", clipLow: 0.2, clipHigh: 0.28 });
    await engine.step(adam);
    const { user, system } = process.cpuUsage(processor);
    const wall = (performance.now() - started) / 1000;
    const after = (await server.request("stats")).processorSeconds as number;
    if (round === 0) continue;
    rounds.push({
      wall,
      processor: (user + system) / 1e6,
      server: after - before,
      bytes: sentBytes() - bytes,
    });
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
    shareOfPublishedUpdate: wall / publishedUpdate.seconds,
    /** The shortest step of which this is at most 3 %. */
    secondsForThreePercent: wall / 0.03,
    rounds,
  };
}

export function updateRows(update: Awaited<ReturnType<typeof measureUpdates>>): string[][] {
  const { wallSeconds, processorSeconds, serverProcessorSeconds } = update;
  return [
    ["bytes of an update, data", `${formatBytes(update.bytes)}, ${update.data}`],
    [
      "seconds of an update: wall, processor here, processor there",
      [wallSeconds, processorSeconds, serverProcessorSeconds].map(formatNumber).join(", "),
    ],
    [
      `share of a published update of ${publishedUpdate.seconds} s (${publishedUpdate.source})`,
      `${(100 * update.shareOfPublishedUpdate).toFixed(2)} %`,
    ],
    [
      "at most 3 % of a training step that takes at least",
      `${formatNumber(update.secondsForThreePercent)} s`,
    ],
  ];
}
