/**
 * What a recipe with an engine elsewhere may take: GPUs, hours and money, scaled from what others measured
 * (`measured-throughputs.ts`) by parameters, trajectories and GPUs. An estimate with a wide range: rollouts of search agents
 * have no published timing, so that they are taken between none and the share they had in a run without searches.
 */
import type { Recipe } from "../config/recipe.ts";
import type { ReinforcementStage } from "../config/stage-options.ts";
import { ConfigError } from "../errors.ts";
import {
  type MeasuredThroughput,
  skyrlRollouts,
  skyrlUpdate,
  verlEvaluation,
} from "./measured-throughputs.ts";

export type Range = readonly [least: number, most: number];

export interface RemoteStage {
  readonly name: string;
  readonly steps: number;
  readonly trajectoriesPerStep: number;
  readonly updateSeconds: number;
  readonly rolloutSeconds: Range;
  /** Of a step: the sum of both, or the longer one where sampling runs ahead. */
  readonly stepSeconds: Range;
}

export interface RemotePlan {
  /** Of the model, in billions of parameters. */
  readonly billions: number;
  readonly gpus: number;
  /** GPUs of 80 GB that weights, gradients, moments and the sampler's copy need. */
  readonly leastGpus: number;
  readonly stages: readonly RemoteStage[];
  /** Supervised stages, of which nothing that was published tells the time. */
  readonly leftOut: readonly string[];
  /** Evaluations before, after and between, and the seconds of all of them. */
  readonly evaluations: number;
  readonly evaluationSeconds: number;
  readonly hours: Range;
  readonly dollars: Range;
  /** What was scaled. */
  readonly rows: readonly MeasuredThroughput[];
}

export interface RemoteSetting {
  /** Absent: 8, or as many as the model needs. */
  readonly gpus?: number | undefined;
  readonly dollarsPerGpuHour: number;
}

/** Plans a recipe whose engine is elsewhere. Throws `ConfigError` where the size of its model is not in its name. */
export function planRemote(recipe: Recipe, { gpus: given, dollarsPerGpuHour }: RemoteSetting): RemotePlan {
  const { engine, stages, evaluation } = recipe;
  if (engine.type !== "tinker")
    throw new ConfigError("the embedded engine is planned by its memory and speed", { path: "engine.type" });
  const billions = modelBillions(recipe);
  const leastGpus = gpusNeeded(billions, engine.rank);
  const gpus = given ?? Math.max(skyrlUpdate.gpus, leastGpus);
  const scale = { billions, gpus };
  const planned = stages.flatMap((stage) =>
    stage.type === "reinforcement" ? [planStage(stage, scale)] : [],
  );
  const evaluations = countEvaluations(recipe);
  const evaluationSeconds =
    evaluations *
    evaluation.n *
    (verlEvaluation.seconds[0] / (verlEvaluation.trajectories as number)) *
    sizeFactor(verlEvaluation, scale);
  const hours = ([0, 1] as const).map(
    (end) =>
      (evaluationSeconds + sum(planned.map(({ steps, stepSeconds }) => steps * stepSeconds[end]))) / 3600,
  ) as unknown as Range;
  return {
    billions,
    gpus,
    leastGpus,
    stages: planned,
    leftOut: stages.filter(({ type }) => type === "supervised").map(({ name }) => name),
    evaluations,
    evaluationSeconds,
    hours,
    dollars: [hours[0] * gpus * dollarsPerGpuHour, hours[1] * gpus * dollarsPerGpuHour],
    rows: [skyrlUpdate, skyrlRollouts, verlEvaluation],
  };
}

function planStage(
  { name, steps, questionsPerStep, algorithm, maxStaleness }: ReinforcementStage,
  scale: Scale,
): RemoteStage {
  const trajectoriesPerStep = questionsPerStep * algorithm.groupSize;
  const share = trajectoriesPerStep / (skyrlUpdate.trajectories as number);
  const updateSeconds = skyrlUpdate.seconds[0] * share * algorithm.epochs * sizeFactor(skyrlUpdate, scale);
  const { rolloutSeconds: sampled, seconds } = skyrlRollouts;
  const rolloutsToUpdate = (sampled as number) / (seconds[0] - (sampled as number));
  const rolloutSeconds: Range = [0, (updateSeconds / algorithm.epochs) * rolloutsToUpdate];
  const together = (rollout: number): number =>
    maxStaleness > 0 ? Math.max(rollout, updateSeconds) : rollout + updateSeconds;
  const stepSeconds: Range = [together(rolloutSeconds[0]), together(rolloutSeconds[1])];
  return { name, steps, trajectoriesPerStep, updateSeconds, rolloutSeconds, stepSeconds };
}

interface Scale {
  readonly billions: number;
  readonly gpus: number;
}

/** Work grows with parameters and shrinks with GPUs; both taken as proportional, whatever the kind of GPU. */
function sizeFactor(row: MeasuredThroughput, { billions, gpus }: Scale): number {
  return (billions / row.billions) * (row.gpus / gpus);
}

/** The size that the name of the model says, such as 7 of Qwen2.5-7B-Instruct. */
function modelBillions({ engine, model }: Recipe): number {
  const name =
    (engine.type === "tinker" ? engine.baseModel : undefined) ??
    (model.type === "pretrained" ? model.source : "");
  const size = /(?:^|[-_/ ])(\d+(?:\.\d+)?)b(?![a-z0-9])/i.exec(name)?.[1];
  if (size !== undefined) return Number(size);
  throw new ConfigError(
    `the name of the model (${name === "" ? "none is given" : name}) does not say how many parameters it has, by which a plan is scaled; give engine.baseModel one such as Qwen/Qwen2.5-7B-Instruct`,
    { path: "engine.baseModel" },
  );
}

/** Bytes of an 80 GB GPU that weights and moments may take; the rest is for activations and the sampler's cache. */
const usableBytes = 0.6 * 80e9;
/** bf16 weights and gradients, and in float32 the master copy and two moments (AdamW in mixed precision). */
const fullBytes = 16;
const frozenBytes = 2;
/** The sampler's own copy in bf16. */
const sampledBytes = 2;

/** A power of two, as servers are split. */
function gpusNeeded(billions: number, rank: number): number {
  const bytes = billions * 1e9 * ((rank === 0 ? fullBytes : frozenBytes) + sampledBytes);
  return 2 ** Math.max(0, Math.ceil(Math.log2(bytes / usableBytes)));
}

function countEvaluations({ stages, evaluation: { everySteps } }: Recipe): number {
  const between = stages.map(({ type, steps }) =>
    type === "reinforcement" && everySteps !== undefined ? Math.ceil(steps / everySteps) - 1 : 0,
  );
  return 2 + sum(between);
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
