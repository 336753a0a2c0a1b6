/** The ranker's part of a reinforcement step: what it learns from the agents' trajectories, and the update of its weights. */
import type { GrpoOptions } from "../algorithm/options.ts";
import type { ReinforcementStage } from "../config/stage-options.ts";
import { assert } from "../errors.ts";
import type { MetricRow } from "../reporting/metric-row.ts";
import type { Trajectory } from "../rollout/trajectory.ts";
import { random } from "../shared/random.ts";
import { updateOn } from "./group-update.ts";
import type { Lesson } from "./lesson.ts";
import { policyData } from "./policy-data.ts";
import { type RankerLessons, rankerLessons } from "./ranker-lessons.ts";
import { asRankerMetrics, rankerMetrics } from "./ranker-metrics.ts";
import { gradeRankings } from "./ranking-grader.ts";

type GroupStage = ReinforcementStage & { readonly algorithm: GrpoOptions };

/** What the ranker learns from a step; undefined where there is no generative ranker. Asks its judge, where it has one. */
export async function lessonsOfRanker(
  { ranker, seed, signal }: Lesson,
  stage: ReinforcementStage,
  { step, agents: played }: { readonly step: number; readonly agents: readonly Trajectory[] },
): Promise<RankerLessons | undefined> {
  if (ranker?.opened.options.type !== "generative") return undefined;
  const { judge } = ranker.opened;
  const agents = judge ? await gradeRankings(played, { ...judge, seed }, signal) : played;
  const advantage =
    stage.algorithm.type === "grpo" ? stage.algorithm.advantage : ({ normalize: "std" } as const);
  const chance = random(seed, stage.name, "ranker groups", step);
  return rankerLessons(agents, ranker.opened.options, { advantage, random: chance });
}

/** Whether this step changes the ranker's weights, and whether they are the agent's. */
export function trainedRanker({ ranker }: Lesson): "own" | "shared" | undefined {
  const options = ranker?.opened.options;
  return options?.type === "generative" && options.trainable ? options.weights : undefined;
}

/** Trains a ranker that has its own weights, and measures every ranker. */
export async function rankerUpdate(
  lesson: Lesson,
  stage: ReinforcementStage,
  work: { readonly step: number; readonly agents: readonly Trajectory[]; readonly lessons: RankerLessons },
): Promise<Partial<MetricRow>> {
  const { lessons, agents, step } = work;
  const measured = rankerMetrics(agents, lessons);
  const { ranker, now } = lesson;
  if (trainedRanker(lesson) !== "own") return measured;
  const { algorithm } = stage;
  assert(algorithm.type === "grpo" && ranker?.opened.engine !== undefined, "only grpo trains a ranker");
  const options = ranker.opened.options;
  const schedule = (options.type === "generative" ? options.schedule : undefined) ?? stage.schedule;
  const own: Lesson = { ...lesson, engine: ranker.opened.engine, reference: ranker.reference };
  const trained: GroupStage = { ...stage, algorithm, schedule, name: `${stage.name}/ranker` };
  const started = now();
  const data = await policyData(own, { maskRetrieved: true }, lessons.groups.trajectories);
  const row = await updateOn(own, trained, { step, data });
  const seconds = (now() - started) / 1000;
  return { ...measured, ...asRankerMetrics(row(seconds)), "time/rankerUpdate": seconds };
}

/** Every call that was judged, with its reward and, where it was trained on, advantage. */
export function rankingsOf({ judged, groups }: RankerLessons) {
  const advantages = new Map(
    groups.trajectories.map(({ trajectory, advantage }) => [trajectory.segments, advantage]),
  );
  return judged.map(({ ranking, judgement }) => ({
    trajectory: ranking,
    reward: judgement.value,
    advantage: advantages.get(ranking.segments),
  }));
}
