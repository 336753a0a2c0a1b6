/**
 * What others measured of reinforcement learning of search agents on GPUs, each with its source, and what a GPU costs. None
 * of it was measured by this project. `forager plan` scales these rows and says which; a row is never averaged with another.
 */

export interface MeasuredThroughput {
  readonly name: string;
  /** Nominal size of the model, in billions of parameters, as its name says. */
  readonly billions: number;
  readonly gpus: number;
  readonly gpu: "H100" | "H800" | "H20" | "A100";
  /** Trajectories of one step, or questions of an evaluation; undefined where the source does not say. */
  readonly trajectories?: number;
  /** What the seconds are of. */
  readonly part: "update" | "step" | "rollout and step" | "evaluation";
  /** Least and most that the source tells. */
  readonly seconds: readonly [least: number, most: number];
  /** Of a step, the seconds that its rollouts took. */
  readonly rolloutSeconds?: number;
  readonly source: string;
}

export const skyrlUpdate: MeasuredThroughput = {
  name: "SkyRL FSDP, Qwen2.5-7B, Search-R1-style",
  billions: 7,
  gpus: 8,
  gpu: "H100",
  trajectories: 512,
  part: "update",
  // About 100 s of training and 33 s of a forward pass; rollouts are not in it.
  seconds: [133, 133],
  source:
    "timing that SkyRL published of its Search-R1-style example (train about 100 s, forward about 33 s a step)",
};

export const skyrlRollouts: MeasuredThroughput = {
  name: "SkyRL, Qwen3.5-9B, mathematics",
  billions: 9,
  gpus: 8,
  gpu: "H100",
  part: "rollout and step",
  seconds: [400.7, 400.7],
  rolloutSeconds: 310.1,
  source: "SkyRL documentation, spec_decode.mdx (without speculative decoding); long answers, no searches",
};

export const verlEvaluation: MeasuredThroughput = {
  name: "verl, Search-R1-like, 3B, evaluation",
  billions: 3,
  gpus: 8,
  gpu: "H20",
  trajectories: 51_713,
  part: "evaluation",
  seconds: [6000, 6000],
  source: "search example in verl's documentation (validation on about 51,700 questions)",
};

/** Rows that nothing is scaled from, beside which an estimate can be held. */
export const measuredSteps: readonly MeasuredThroughput[] = [
  {
    name: "Search-R1, 3B",
    billions: 3,
    gpus: 8,
    gpu: "H100",
    part: "step",
    seconds: [36, 126],
    source: "github.com/PeterGriffinJin/Search-R1/issues/1 (200 steps: its author 2-3 h, a user 6-7 h)",
  },
  {
    name: "Search-R1, 3B, PPO",
    billions: 3,
    gpus: 4,
    gpu: "A100",
    trajectories: 512,
    part: "step",
    seconds: [1081, 1081],
    source: "github.com/PeterGriffinJin/Search-R1/issues/152",
  },
  {
    name: "ASearcher",
    billions: 7,
    gpus: 8,
    gpu: "H800",
    part: "step",
    seconds: [144, 180],
    source: "github.com/inclusionAI/ASearcher/issues/18 (200 steps in 8-10 h)",
  },
];

export interface GpuPrice {
  /** Dollars for one GPU and hour. */
  readonly dollars: number;
  readonly date: string;
  readonly source: string;
}

/** Asked of an H100 with 80 GB on demand: the middle of what specialised providers asked; it moves by a factor of two and more. */
export const defaultGpuPrice: GpuPrice = {
  dollars: 3,
  date: "2026-05",
  source:
    "mercatus-ai.com/blog/cloud-gpu-pricing (2.50 to 3.50 at specialised providers, 1.99 to 5.00 overall)",
};
