/**
 * Chooses how a training uses the memory it may have: first fewer tokens at once, down to one sequence of the longest,
 * then fewer layers that keep their insides. Up to `mostTokens` a larger micro-batch is faster; computing a layer again
 * costs a third of its time there and back. A small model keeps its attention weights too, a quarter of its time.
 */
import { bytesGivenBack, type TrainedShape, type TrainingMemory, trainingMemory } from "./memory-estimate.ts";

/** Larger micro-batches are no faster. */
export const mostTokens = 4096;

export interface MemoryLimits {
  /** Bytes that training may take; absent: no limit. */
  readonly memoryBudget?: number;
  /** Tokens of a micro-batch, padding included, where they are not to be chosen. */
  readonly tokenBudget?: number;
  /** Most tokens of one sequence that will come; absent: the context. */
  readonly longestSequence?: number;
}

export interface TrainingPlan {
  /** Most tokens of one micro-batch, padding included; a longer sequence has one of its own. */
  readonly tokenBudget: number;
  /** Layers that keep what their way back needs; the others compute it again. */
  readonly keptLayers: number;
  /** Whether the layers that are kept keep their attention weights too. */
  readonly keepsAttention: boolean;
  readonly memory: TrainingMemory;
  /** Whether the peak is within the budget. */
  readonly fits: boolean;
}

/** The fastest plan within the limits, or the smallest there is where none fits. */
export function planTraining(shape: TrainedShape, limits: MemoryLimits): TrainingPlan {
  const { layers, contextLength } = shape.model;
  const { memoryBudget = Number.POSITIVE_INFINITY } = limits;
  const time = Math.min(limits.longestSequence ?? contextLength, contextLength);
  const plan = (tokenBudget: number, keptLayers: number, keepsAttention = false): TrainingPlan => {
    const tokens = Math.max(tokenBudget, time);
    const memory = trainingMemory(shape, { tokens, time, keptLayers, keepsAttention });
    return { tokenBudget, keptLayers, keepsAttention, memory, fits: memory.peak <= memoryBudget };
  };
  const budgets = limits.tokenBudget === undefined ? tokenBudgets(time) : [limits.tokenBudget];
  // No more than may stay while the model is sampled: a large model gains less by it than taking turns would cost.
  const everything = plan(budgets[0] as number, layers, true);
  if (everything.fits && bytesGivenBack(everything.memory) === 0) return everything;
  for (const tokens of budgets) {
    const whole = plan(tokens, layers);
    if (whole.fits) return whole;
  }
  const smallest = budgets.at(-1) as number;
  for (let kept = layers - 1; kept > 0; kept--) {
    const partial = plan(smallest, kept);
    if (partial.fits) return partial;
  }
  return plan(smallest, 0);
}

/** Numbers of the longest sequence that fit into `mostTokens`, most first; at least one. */
function tokenBudgets(time: number): number[] {
  const budgets: number[] = [];
  for (let count = Math.max(1, Math.floor(mostTokens / time)); count > 1; count = Math.ceil(count / 2))
    budgets.push(count * time);
  return [...budgets, time];
}
