/**
 * The workloads of the GRPO benchmark. Weights are random, so what is sampled means nothing; how much is sampled is
 * fixed in advance and the same for both sides: a schedule of turns and observations with the lengths that a search
 * agent's episodes have.
 */
import { type ModelOptions, modelOptionsSchema } from "../src/engine/model-options.ts";
import { random } from "../src/shared/random.ts";

/** One turn: tokens that the policy writes, and tokens of the passages that come back; 0 after the last. */
export interface TurnPlan {
  readonly completion: number;
  readonly observation: number;
}

export interface GrpoWork {
  /** Tokens of each prompt; rollouts of one question share theirs. */
  readonly prompt: number;
  readonly questions: number;
  readonly group: number;
  /** Turns of each rollout, (questions * group). */
  readonly rollouts: readonly (readonly TurnPlan[])[];
}

export interface GrpoCase {
  readonly name: "single" | "multi" | "multi-sorted";
  readonly about: string;
  readonly work: GrpoWork;
}

export interface GrpoSize {
  readonly questions: number;
  readonly group: number;
  /** Divides the lengths of everything, for a quick look. */
  readonly shrink: number;
}

const shapes = {
  tiny: { vocabularySize: 512, width: 128, layers: 4, heads: 4, keyValueHeads: 4, feedForward: 512 },
  "135m": { vocabularySize: 49152, width: 576, layers: 30, heads: 9, keyValueHeads: 3, feedForward: 1536 },
};
export type ShapeName = keyof typeof shapes;
export const shapeNames = Object.keys(shapes) as ShapeName[];

export function shapeOf(name: ShapeName): ModelOptions {
  return modelOptionsSchema.parse({ ...shapes[name], contextLength: 1024, ropeBase: 100_000 });
}

/** Most tokens of an episode, all in all. */
const mostTokens = 1024;

export function grpoCases({ questions, group, shrink }: GrpoSize): readonly GrpoCase[] {
  const count = questions * group;
  const less = (tokens: number): number => Math.max(4, Math.round(tokens / shrink));
  const single = Array.from({ length: count }, () => [{ completion: less(192), observation: 0 }]);
  const multi = Array.from({ length: count }, (_, index) => episode(index, less));
  const multiWork = { prompt: less(128), questions, group, rollouts: multi };
  const multiAbout = `${questions} questions × ${group} rollouts, one to four turns with the three best passages, at most ${less(mostTokens)} tokens`;
  return [
    {
      name: "single",
      about: `${count} rollouts of ${less(48)} + ${less(192)} tokens, one turn`,
      work: { prompt: less(48), questions, group, rollouts: single },
    },
    { name: "multi", about: multiAbout, work: multiWork },
    {
      name: "multi-sorted",
      about: `${multiAbout}, the peer's update in PyTorch alone with sequences of like length together`,
      work: multiWork,
    },
  ];
}

/**
 * One to four turns, the last an answer. A query takes 16 to 64 tokens with its thought, an answer 8 to 48; three passages of
 * a hundred words are 120 to 200 tokens after shortening. An episode of four turns stays below 1,024 tokens:
 * 128 + 3 (64 + 200) + 48 = 968.
 */
function episode(index: number, less: (tokens: number) => number): TurnPlan[] {
  const chance = random(1, "grpo-bench", index);
  const between = (low: number, high: number): number => less(low + chance.below(high - low + 1));
  const searches = chance.below(4);
  const turns = Array.from({ length: searches }, () => ({
    completion: between(16, 64),
    observation: between(120, 200),
  }));
  return [...turns, { completion: between(8, 48), observation: 0 }];
}
