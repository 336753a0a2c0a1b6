/** Turns a second and memory of the process that drives thousands of episodes. */
import { monitorEventLoopDelay, performance } from "node:perf_hooks";
import { SampleAhead } from "../../src/training/sample-ahead.ts";
import { formatBytes, formatNumber } from "../measure.ts";
import { lessonOf, stageOf, type There } from "./setting.ts";

/** What the process held when a step was done. */
interface Moment {
  readonly turns: number;
  /** Since the first step was done. */
  readonly seconds: number;
  readonly resident: number;
  /** Objects of JavaScript, garbage included. */
  readonly heap: number;
}

/**
 * Steps are sampled one after the other, the next while one is taken, as in a training whose updates cost nothing, until
 * `turns` turns were played. The first step, in which code is compiled and connections are opened, counts for memory alone.
 */
export async function measureTurns(
  { engine, server }: There,
  { turns: wanted, inFlight }: { readonly turns: number; readonly inFlight: number },
) {
  const ahead = new SampleAhead(lessonOf(engine), stageOf(inFlight), { keepsSnapshots: true });
  const moments: Moment[] = [];
  let [turns, episodes, failed, started] = [0, 0, 0, 0];
  let processor = process.cpuUsage();
  const pauses = monitorEventLoopDelay({ resolution: 20 });
  const before = await server.request("stats");
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
    const { rss: resident, heapUsed: heap } = process.memoryUsage();
    moments.push({ turns, seconds: (performance.now() - started) / 1000, resident, heap });
    process.stderr.write(`\r${turns} turns, ${formatBytes(resident)}   `);
  }
  const seconds = (performance.now() - started) / 1000;
  const { user, system } = process.cpuUsage(processor);
  pauses.disable();
  await ahead.close();
  const after = await server.request("stats");
  const processorSeconds = (user + system) / 1e6;
  return {
    longestPauseMs: pauses.max / 1e6,
    turns,
    episodes,
    failed,
    seconds,
    turnsPerSecond: turns / seconds,
    processorShare: processorSeconds / seconds,
    processorMsPerTurn: (1000 * processorSeconds) / turns,
    /** Of the server, its first step included. */
    serverProcessorSeconds: (after.processorSeconds as number) - (before.processorSeconds as number),
    serverResident: after.rss as number,
    tenths: tenthsOf(moments, wanted),
    residentMost: Math.max(...moments.map(({ resident }) => resident)),
    counts: engine.counts,
  };
}

/** The last moment of each tenth of the run, after the first step. */
function tenthsOf(moments: readonly Moment[], wanted: number): Moment[] {
  const tenths = Array.from({ length: 10 }, (_, i) =>
    moments.findLast(({ turns }) => turns <= ((i + 1) * wanted) / 10),
  );
  const last = moments.at(-1);
  const known = [...tenths.slice(0, 9), last].filter((moment) => moment !== undefined && moment.turns > 0);
  return [...new Set(known)] as Moment[];
}

/** Turns a second from each moment to the next. */
function ratesOf(moments: readonly Moment[]): number[] {
  return moments.map(({ turns, seconds }, index) => {
    const before = moments[index - 1] ?? { turns: 0, seconds: 0 };
    return (turns - before.turns) / (seconds - before.seconds);
  });
}

export function turnRows(measured: Awaited<ReturnType<typeof measureTurns>>): string[][] {
  const { turns, seconds, tenths, residentMost } = measured;
  const perTurn = (processorSeconds: number): string => formatNumber((1000 * processorSeconds) / turns);
  return [
    ["turns/s", `${formatNumber(measured.turnsPerSecond)} over ${turns} turns in ${formatNumber(seconds)} s`],
    [
      "processor of a turn, here and there",
      `${formatNumber(measured.processorMsPerTurn)} and ${perTurn(measured.serverProcessorSeconds)} ms`,
    ],
    [
      "processors in use here, longest pause of the event loop",
      `${formatNumber(measured.processorShare)}, ${formatNumber(measured.longestPauseMs)} ms`,
    ],
    ["turns/s by tenths of the run", ratesOf(tenths).map(formatNumber).join(", ")],
    ["memory by tenths of the run", tenths.map(({ resident }) => formatBytes(resident)).join(", ")],
    ["of that objects, garbage included", tenths.map(({ heap }) => formatBytes(heap)).join(", ")],
    ["most memory, here and there", [residentMost, measured.serverResident].map(formatBytes).join(", ")],
    ["episodes that failed", `${measured.failed} of ${measured.episodes}`],
    ["calls sent again, polls without a result", `${measured.counts.retries}, ${measured.counts.polls}`],
  ];
}
