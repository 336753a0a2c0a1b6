/** One step of a supervised stage: demonstrations of the teacher, cross-entropy, one update. */
import { demonstrationDatum } from "../algorithm/batch.ts";
import { minibatches } from "../algorithm/minibatch.ts";
import { learningRate } from "../algorithm/schedule.ts";
import type { SupervisedStage } from "../config/stage-options.ts";
import type { Engine } from "../engine/engine.ts";
import { assert, ConfigError } from "../errors.ts";
import type { MetricRow } from "../reporting/metric-row.ts";
import { demonstrateRankings } from "../rollout/ranking-teacher.ts";
import type { RolloutRequest } from "../rollout/rollout.ts";
import { type Demonstrations, demonstrate } from "../rollout/teacher.ts";
import type { Trajectory } from "../rollout/trajectory.ts";
import { random } from "../shared/random.ts";
import { goldTitles } from "./gold-titles.ts";
import type { Lesson } from "./lesson.ts";
import { exploringRanker } from "./opened-ranker.ts";
import { questionsOfStep } from "./question-order.ts";
import { paddingShare } from "./update-metrics.ts";

/** Trains step `step` (from 0) and returns its metrics. */
export async function supervisedStep(
  lesson: Lesson,
  stage: SupervisedStage,
  step: number,
): Promise<MetricRow> {
  const { data, seed, now } = lesson;
  const started = now();
  const questions = questionsOfStep(data.train, { seed, stage: stage.name, step, count: stage.batchSize });
  const requests = questions.map((question, index) => ({
    question,
    group: `${stage.name}/${step}/${index}`,
    sample: 0,
    seed,
  }));
  const { engine, trajectories, dropped } = await demonstrations(lesson, stage, requests);
  const lessons = stage.firstTurnOnly ? trajectories.map(firstTurn) : trajectories;
  const demonstrated = now();
  const [batch] = minibatches(
    lessons.map((trajectory) => demonstrationDatum(trajectory, stage)),
    { size: stage.batchSize, epochs: 1, lossNormalization: "token", random: random(seed, stage.name, step) },
  );
  const counts = { "demonstration/count": lessons.length, "demonstration/dropped": dropped.length };
  if (lessons.length === 0 && dropped.every(({ reason }) => reason === "tooLong"))
    throw new ConfigError(
      `none of the ${dropped.length} demonstrations of step ${step + 1} fits into its episode; allow longer turns, or a longer context`,
      { path: "environment.maxTurnTokens" },
    );
  if (!batch) return { stage: stage.name, step: step + 1, "loss/tokens": 0, ...counts };
  const report = await engine.forwardBackward(batch.data, { type: "crossEntropy" });
  const rate = learningRate(step, { ...stage.schedule, totalSteps: stage.steps });
  const { gradientNorm } = await engine.step({ ...stage.optimizer, learningRate: rate });
  const seconds = (now() - demonstrated) / 1000;
  return {
    stage: stage.name,
    step: step + 1,
    ...counts,
    "loss/value": report.loss,
    "loss/tokens": batch.trainedTokens,
    "loss/padding": paddingShare(batch.tokens, report.paddedTokens),
    "gradient/norm": gradientNorm,
    "optimizer/learningRate": rate,
    "optimizer/updates": 1,
    "time/rollout": (demonstrated - started) / 1000,
    "time/update": seconds,
    "time/step": (now() - started) / 1000,
    "rate/tokens": batch.tokens / seconds,
  };
}

const greedy = { temperature: 0, topP: 1, topK: 0 } as const;

interface Shown extends Demonstrations {
  /** What learns from them. */
  readonly engine: Engine;
}

/** What the stage's teacher demonstrates, to the agent or to the ranker. */
async function demonstrations(
  { engine, data, environment, ranker, signal }: Lesson,
  { teacher }: SupervisedStage,
  requests: readonly RolloutRequest[],
): Promise<Shown> {
  const { retriever } = data;
  if (teacher.type === "ranking") {
    const opened = ranker?.opened;
    const shape = opened?.sampling(greedy);
    assert(opened?.engine && shape?.type === "generative", "the teacher ranking has a ranker to train");
    const { randomShare } = teacher;
    const setting = { retriever, ranker: shape, k: environment.k, randomShare, signal };
    return { engine: opened.engine, ...(await demonstrateRankings(requests, setting)) };
  }
  const setting = {
    retriever,
    ranker: exploringRanker(ranker?.opened, greedy),
    environment,
    tokenizer: engine.tokenizer,
    contextLength: engine.contextLength,
    signal,
    ...(teacher.type === "goldPassages" && { titles: goldTitles(data) }),
  };
  return { engine, ...(await demonstrate(requests, setting, teacher)) };
}

/** The trajectory up to the end of the policy's first turn. */
function firstTurn(trajectory: Trajectory): Trajectory {
  const end = trajectory.segments.findIndex(({ source }) => source === "policy") + 1;
  return { ...trajectory, segments: trajectory.segments.slice(0, end), turns: trajectory.turns.slice(0, 1) };
}
