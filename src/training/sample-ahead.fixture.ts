/** For tests of stages that sample ahead of training: a stage, what it is taught with, and all its steps one after the other. */
import { type ReinforcementStage, reinforcementStageSchema } from "../config/stage-options.ts";
import type { Engine } from "../engine/engine.ts";
import { environmentOptionsSchema } from "../environment/environment-options.ts";
import type { Retriever } from "../retrieval/retriever.ts";
import { scriptedRetriever } from "../retrieval/scripted-retriever.ts";
import { type ReinforcementResult, reinforcementStep } from "./reinforcement-step.ts";
import { SampleAhead } from "./sample-ahead.ts";
import type { SamplingLesson } from "./sample-groups.ts";

/** Waits for so many turns of the event loop. */
export async function ticks(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise(setImmediate);
}

/** GRPO, six steps of five questions four times each where `changes` say nothing else. */
export function stageOf(changes: object = {}): ReinforcementStage {
  return reinforcementStageSchema.parse({
    type: "reinforcement",
    name: "grpo",
    steps: 6,
    questionsPerStep: 5,
    schedule: { learningRate: 0.1 },
    algorithm: { groupSize: 4, rejectGroupsWithoutSignal: false },
    ...changes,
  });
}

interface Taught {
  readonly goldAnswer: string;
  readonly seed: number;
  /** Absent: one that finds nothing. */
  readonly retriever?: Retriever;
}

/** Thirty questions with one gold answer, asked of `engine`. */
export function lessonOf(engine: Engine, { goldAnswer, seed, retriever }: Taught): SamplingLesson {
  const train = Array.from({ length: 30 }, (_, i) => ({
    id: `${i}`,
    dataset: "test",
    text: `question ${i}`,
    goldAnswers: [goldAnswer],
    goldPassages: [],
  }));
  const data = {
    train,
    evaluation: [],
    validation: [],
    split: "test",
    retriever: retriever ?? scriptedRetriever(() => []),
    close: async () => {},
  };
  const environment = environmentOptionsSchema.parse({ prompt: "bare" });
  return { engine, data, environment, seed, now: () => performance.now() };
}

/** Trains all steps of a stage, ahead where it says so. */
export async function trainStage(
  lesson: SamplingLesson,
  stage: ReinforcementStage,
  { keepsSnapshots = true }: { readonly keepsSnapshots?: boolean | undefined } = {},
): Promise<ReinforcementResult[]> {
  const ahead = stage.maxStaleness === 0 ? undefined : new SampleAhead(lesson, stage, { keepsSnapshots });
  const results: ReinforcementResult[] = [];
  for (let step = 0; step < stage.steps; step++)
    results.push(await reinforcementStep(lesson, stage, { step, ahead }));
  await ahead?.close();
  return results;
}
