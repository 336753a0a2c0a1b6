/**
 * Samples of the steps of a stage, drawn ahead of training: while step t is updated, the episodes of the steps up to
 * t + maxStaleness are played. Each turn is asked of the newest weights and records how many steps were behind them, so
 * that no token of step t is older than t - maxStaleness; the ratio of the loss corrects for the rest. At most
 * `maxInFlight` episodes are under way, those of earlier steps first, and samples wait for nobody but their step.
 *
 * What is in flight is lost with the process: a resumed run asks the same questions again, of the weights of then.
 */
import type { ReinforcementStage } from "../config/stage-options.ts";
import type { Engine } from "../engine/engine.ts";
import { assert } from "../errors.ts";
import type { Completion, Policy } from "../rollout/policy.ts";
import { createLimiter, type Limiter } from "../shared/concurrency.ts";
import { type SamplingLesson, type StepSample, sampleGroups } from "./sample-groups.ts";
import { StepGate, steppingThrough } from "./step-gate.ts";

export class SampleAhead {
  /** Updates train this one, whose steps wait for the turns under way where the engine cannot do both. */
  readonly engine: Engine;
  readonly #lesson: SamplingLesson;
  readonly #stage: ReinforcementStage;
  readonly #policy: Policy;
  /** Places of all episodes, whatever their step. */
  readonly #limiter: Limiter;
  readonly #stop = new AbortController();
  /** Samples that nobody has taken yet, by step. */
  readonly #pending = new Map<number, Promise<StepSample>>();
  /** Steps that are behind the weights, as far as is known here: they may be one step newer already. */
  #weightsStep = 0;

  /** `keepsSnapshots`: whether a turn may still be sampled with the weights of before a step while the step is carried out. */
  constructor(
    lesson: SamplingLesson,
    stage: ReinforcementStage,
    { keepsSnapshots }: { readonly keepsSnapshots: boolean },
  ) {
    const { signal, engine } = lesson;
    const gate = keepsSnapshots ? undefined : new StepGate();
    this.engine = gate === undefined ? engine : steppingThrough(gate, engine);
    this.#policy = newestPolicy(engine, { gate, weightsStep: () => this.#weightsStep });
    const stop = this.#stop.signal;
    this.#lesson = { ...lesson, signal: signal === undefined ? stop : AbortSignal.any([signal, stop]) };
    this.#stage = stage;
    this.#limiter = createLimiter(stage.maxInFlight ?? stage.questionsPerStep * stage.algorithm.groupSize);
  }

  /**
   * The sample of step `step`, to be called in order and when the weights of that step are in place; those of the steps
   * after it go on. Throws what sampling threw.
   */
  async take(step: number): Promise<StepSample> {
    const { steps, maxStaleness } = this.#stage;
    assert(step >= this.#weightsStep, `step ${step} is taken after step ${this.#weightsStep}`);
    this.#weightsStep = step;
    for (let next = step; next <= Math.min(step + maxStaleness, steps - 1); next++) this.#start(next);
    const sample = await (this.#pending.get(step) as Promise<StepSample>);
    this.#pending.delete(step);
    return sample;
  }

  #start(step: number): void {
    if (this.#pending.has(step)) return;
    const sample = sampleGroups(this.#lesson, this.#stage, {
      step,
      limiter: this.#limiter,
      policy: this.#policy,
    });
    // Thrown where it is taken; one that nobody takes any more is of no interest.
    sample.catch(() => undefined);
    this.#pending.set(step, sample);
  }

  /** Stops what is in flight and waits until it has stopped; the engine is then free for anything else. */
  async close(): Promise<void> {
    this.#stop.abort(new Error("the stage is over"));
    await Promise.allSettled(this.#pending.values());
    this.#pending.clear();
  }
}

/** Asks the weights of now for each turn, and says how many steps were behind them then, at least. */
function newestPolicy(
  engine: Engine,
  { gate, weightsStep }: { readonly gate: StepGate | undefined; readonly weightsStep: () => number },
): Policy {
  return {
    identity: engine.policy().identity,
    complete: async (contexts, options, signal) => {
      const complete = async (): Promise<Completion[]> => {
        const behind = weightsStep();
        const completions = await engine.policy().complete(contexts, options, signal);
        return completions.map((completion) => ({ ...completion, weightsStep: behind }));
      };
      return await (gate?.sample(complete) ?? complete());
    },
  };
}
