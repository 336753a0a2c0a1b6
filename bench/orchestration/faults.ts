/** A run with faults of every kind, after which every question must be accounted for and nothing trained twice. */
import { reinforcementStep } from "../../src/training/reinforcement-step.ts";
import { SampleAhead } from "../../src/training/sample-ahead.ts";
import { groupSize, lessonOf, stageOf, type There } from "./setting.ts";

/** Whole steps until all faults were injected and two more. */
export async function measureFaults({ engine, server }: There, count: number) {
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

export function faultRows(failures: Awaited<ReturnType<typeof measureFaults>>): string[][] {
  const injected = Object.values(failures.injected).reduce((sum, value) => sum + value, 0);
  return [
    ["faults injected", `${injected}, steps ${failures.steps}`],
    ["episodes played again, dropped", `${failures.retried}, ${failures.dropped}`],
    ["questions missing, asked twice", `${failures.missing}, ${failures.askedTwice}`],
    ["trained here, there, twice", `${failures.trained}, ${failures.trainedThere}, ${failures.trainedTwice}`],
  ];
}
