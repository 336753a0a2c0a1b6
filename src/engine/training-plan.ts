/**
 * Chooses how a training uses the memory it may have: first fewer tokens at once, down to one sequence of the longest,
 * then one micro-batch at a time, then fewer layers that keep their insides. Up to `mostTokens` a larger micro-batch is
 * faster; two side by side, each with half of the threads, are faster than one after the other, since fewer threads
 * wait for each other, and cost gradients of their own; computing attention again costs a twentieth of a layer's time
 * there and back, and a layer a third. A small model is one graph, which keeps all that its way back
 * needs, and computes small micro-batches side by side, each with a thread of its own: what they hold stays in the
 * processor's caches, and no thread waits for another.
 */
import { bytesGivenBack, type TrainedShape, type TrainingMemory, trainingMemory } from "./memory-estimate.ts";

/** More tokens at once are no faster. */
export const mostTokens = 4096;
/** Most micro-batches of a large model at once. */
const mostLargeLanes = 2;
/** Most tokens of a micro-batch of a small model, and most micro-batches at once. */
const laneTokens = 512;
const mostLanes = 4;
/** Of the budget, what training may take with attention kept: it gains little, and a run needs memory beside training. */
const shareWithAttention = 2 / 3;

export interface MemoryLimits {
  /** Bytes that training may take; absent: no limit. */
  readonly memoryBudget?: number;
  /** Tokens of a micro-batch, padding included, where they are not to be chosen. */
  readonly tokenBudget?: number;
  /** Most tokens of one sequence that will come; absent: the context. */
  readonly longestSequence?: number;
  /** Threads that compute; absent: 1. */
  readonly threads?: number;
}

export interface TrainingPlan {
  /** Most tokens of one micro-batch, padding included; a longer sequence has one of its own. */
  readonly tokenBudget: number;
  /** Layers that keep what their way back needs; the others compute it again. */
  readonly keptLayers: number;
  /** Whether, where all layers keep what their way back needs, what attention computes is kept too. */
  readonly keepsAttention: boolean;
  /** Whether a micro-batch is one run of the whole network, rather than one of each layer. */
  readonly inOneRun: boolean;
  /** Micro-batches that are computed side by side. */
  readonly lanes: number;
  readonly memory: TrainingMemory;
  /** Whether the peak is within the budget. */
  readonly fits: boolean;
}

/** The fastest plan within the limits, or the smallest there is where none fits. */
export function planTraining(shape: TrainedShape, limits: MemoryLimits): TrainingPlan {
  const { layers, contextLength } = shape.model;
  const { memoryBudget = Number.POSITIVE_INFINITY } = limits;
  const time = Math.min(limits.longestSequence ?? contextLength, contextLength);
  const plan = (
    tokenBudget: number,
    keptLayers: number,
    way = { inOneRun: false, lanes: 1, keepsAttention: false },
  ): TrainingPlan => {
    const tokens = Math.max(tokenBudget, time);
    const memory = trainingMemory(shape, { tokens, time, keptLayers, ...way });
    const isExtra = way.keepsAttention && !way.inOneRun;
    const limit = isExtra ? shareWithAttention * memoryBudget : memoryBudget;
    return { tokenBudget, keptLayers, ...way, memory, fits: memory.peak <= limit };
  };
  const budgets = limits.tokenBudget === undefined ? tokenBudgets(time, 1) : [limits.tokenBudget];
  // No more than may stay while the model is sampled: a large model gains less by it than taking turns would cost.
  const lanes = Math.max(1, Math.min(mostLanes, limits.threads ?? 1));
  const small = plan(Math.min(laneTokens, budgets[0] as number), layers, {
    inOneRun: true,
    lanes,
    keepsAttention: true,
  });
  if (small.fits && bytesGivenBack(small.memory) === 0) return small;
  for (let side = Math.min(mostLargeLanes, lanes); side >= 1; side--) {
    for (const tokens of limits.tokenBudget === undefined ? tokenBudgets(time, side) : budgets) {
      for (const keepsAttention of [true, false]) {
        const whole = plan(tokens, layers, { inOneRun: false, lanes: side, keepsAttention });
        if (whole.fits) return whole;
      }
    }
  }
  const smallest = budgets.at(-1) as number;
  for (let kept = layers - 1; kept > 0; kept--) {
    const partial = plan(smallest, kept);
    if (partial.fits) return partial;
  }
  return plan(smallest, 0);
}

/** Numbers of the longest sequence that fit into the share of `mostTokens` of one of so many lanes, most first; at least one. */
function tokenBudgets(time: number, lanes: number): number[] {
  const budgets: number[] = [];
  for (
    let count = Math.max(1, Math.floor(mostTokens / lanes / time));
    count > 1;
    count = Math.ceil(count / 2)
  )
    budgets.push(count * time);
  return [...budgets, time];
}
