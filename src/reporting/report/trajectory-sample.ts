/**
 * Which trajectories a report shows: an even sample, chosen by position alone so that it flatters nobody. Half of
 * the room goes to questions that were answered both before and after, the rest to everything else.
 */
import { questionKey } from "../../corpus/question.ts";
import type { TrajectoryRecord } from "../trajectory-record.ts";
import { type TrajectoryView, viewTrajectory } from "./trajectory-view.ts";

export interface TrajectorySet {
  readonly name: string;
  readonly records: readonly TrajectoryRecord[];
}

export interface TrajectorySample {
  /** How many there are in all. */
  readonly total: number;
  readonly trajectories: readonly TrajectoryView[];
}

/** Most trajectories, and most characters of their JSON, that go into a report. */
const maxTrajectories = 200;
const maxCharacters = 3_000_000;

export function sampleTrajectories(sets: readonly TrajectorySet[]): TrajectorySample {
  const before = sets.find(({ name }) => name === "before")?.records ?? [];
  const after = new Map(
    sets.find(({ name }) => name === "after")?.records.map((record) => [keyOf(record), record]),
  );
  const pairs = before.flatMap((record) => {
    const partner = after.get(keyOf(record));
    return partner ? [{ before: record, after: partner }] : [];
  });
  const isPaired = new Set(pairs.flatMap((pair) => [pair.before, pair.after]));
  const others = sets.flatMap(({ name, records }) =>
    records.filter((record) => !isPaired.has(record)).map((record) => ({ name, record })),
  );
  const pairRoom = Math.max(maxTrajectories / 4, Math.floor((maxTrajectories - others.length) / 2));
  const shownPairs = evenSample(pairs, pairRoom);
  const shownOthers = evenSample(others, maxTrajectories - 2 * shownPairs.length);
  const views = [
    ...shownPairs.flatMap((pair) => [
      viewTrajectory("before", pair.before),
      viewTrajectory("after", pair.after),
    ]),
    ...shownOthers.map(({ name, record }) => viewTrajectory(name, record)),
  ];
  const total = sets.reduce((sum, { records }) => sum + records.length, 0);
  return { total, trajectories: limitCharacters(views) };
}

/** `count` elements at equal distances, the first included; all when there are fewer. */
export function evenSample<T>(values: readonly T[], count: number): T[] {
  if (values.length <= count) return [...values];
  return Array.from(
    { length: count },
    (_, index) => values[Math.floor((index * values.length) / count)] as T,
  );
}

function limitCharacters(views: readonly TrajectoryView[]): TrajectoryView[] {
  let room = maxCharacters;
  return views.filter((view) => {
    room -= JSON.stringify(view).length;
    return room >= 0;
  });
}

function keyOf({ trajectory }: TrajectoryRecord): string {
  return questionKey(trajectory.question);
}
