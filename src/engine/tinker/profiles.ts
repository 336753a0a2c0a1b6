/**
 * What is known of each server that speaks the Tinker protocol, as data: how it answers, what it honours, and how its sum
 * over tokens must be read. Sources: SkyRL 0.3.0 (JAX) by running and reading it; the others by reading their code and
 * documentation (docs/remote-engine.md says which is which).
 */
import type { LossName } from "./wire.ts";

export const profileNames = ["forager", "skyrl-jax", "skyrl-fsdp", "verl-tinker"] as const;
export type ProfileName = (typeof profileNames)[number];

/** Adam fields as recipes name them. */
export type AdamField = "beta1" | "beta2" | "epsilon" | "weightDecay" | "maxGradientNorm";

export interface Profile {
  readonly name: ProfileName;
  /** In messages. */
  readonly title: string;
  /** A result can be read once only: a reply that was lost is lost for good. */
  readonly popsResults: boolean;
  /** A POST with a `seq_id` that came before runs once; else a lost acknowledgement must never be sent again. */
  readonly runsDuplicatesOnce: boolean;
  /** `seq_id` of samples: a new one for each call, or one for each episode, by which a router finds its cache. */
  readonly sampleIds: "fresh" | "sticky";
  /** Sends the mask of the loss as `weights` beside policy-gradient losses. */
  readonly sendsWeights: boolean;
  /**
   * `sum`: gradients are plain sums. `sequenceMean`: the loss of a sequence is divided by the sum of its weights, the gradient
   * by the number of sequences since the last step.
   */
  readonly reduction: "sum" | "sequenceMean";
  /** Losses whose meaning there is exactly ours; others are carried by one of these (`loss-plan.ts`). */
  readonly losses: readonly LossName[];
  /** The loss that carries a gradient which was computed here. */
  readonly carrier: "cross_entropy" | "importance_sampling";
  /** Fields of Adam that a call may set; the others are what the server was started with, or nothing. */
  readonly adam: readonly AdamField[];
  /** Fields that no setting of the server brings back. */
  readonly adamMissing: readonly AdamField[];
  /** Whether weights can be loaded without the optimiser's moments, which is how they are reset. */
  readonly resetsOptimizer: boolean;
  /** Rank 0 trains all weights. */
  readonly ranks: "lora" | "full" | "both";
  /** Models that can be trained at one time. */
  readonly models: "one" | "many";
  /** What a frozen reference policy is: a model that is never stepped, a snapshot for sampling, or not possible. */
  readonly reference: "model" | "snapshot" | "none";
  /** Whether older snapshots can be sampled from after a step. SkyRL on JAX overwrites the trained weights by them. */
  readonly keepsSnapshots: boolean;
  /** Sampled log-probabilities are those at temperature 1 over the whole vocabulary, or of what was sampled from. */
  readonly sampledLogprobs: "raw" | "tempered";
  /** How a sampler of its own rounds weights, so that it differs from training; absent: they agree to float32. */
  readonly samplerPrecision?: string;
  /** Entries of `prompt_logprobs` for a prompt of n tokens: n with a leading null, or n - 1. */
  readonly promptLogprobs: "leadingNull" | "withoutFirst";
  /** An end of the text must be named as a stop, since the server does not stop there by itself. */
  readonly needsEnds: boolean;
  /** A gradient that was accumulated stays in the slot of an unloaded model until a step. */
  readonly leavesGradients: boolean;
  /** Where a snapshot can be fetched as an archive in PEFT's layout: by its kind and name, by its name, or nowhere. */
  readonly archive: "byKind" | "byName" | "none";
  /** Whether a checkpoint can be removed from the server by its path, `tinker://MODEL/KIND/NAME`. */
  readonly removesCheckpoints: boolean;
  /** Most bytes and data of one POST of a batch. */
  readonly chunkBytes: number;
  readonly chunkDatums: number;
  /** How long one poll waits for an answer here: above what a server that pops results holds it. */
  readonly pollTimeoutMs: number;
}

const everyLoss: readonly LossName[] = ["cross_entropy", "importance_sampling", "ppo", "cispo"];
const everyField: readonly AdamField[] = ["beta1", "beta2", "epsilon", "weightDecay", "maxGradientNorm"];
const chunks = { chunkBytes: 5_000_000, chunkDatums: 1024, pollTimeoutMs: 45_000 };

const forager: Profile = {
  name: "forager",
  title: "forager serve engine",
  popsResults: false,
  runsDuplicatesOnce: true,
  sampleIds: "fresh",
  sendsWeights: false,
  reduction: "sum",
  losses: everyLoss,
  carrier: "cross_entropy",
  adam: everyField,
  adamMissing: [],
  resetsOptimizer: true,
  ranks: "both",
  models: "many",
  reference: "model",
  keepsSnapshots: true,
  sampledLogprobs: "raw",
  promptLogprobs: "leadingNull",
  needsEnds: true,
  leavesGradients: false,
  archive: "byKind",
  removesCheckpoints: true,
  ...chunks,
};

const skyrlJax: Profile = {
  name: "skyrl-jax",
  title: "SkyRL on JAX",
  popsResults: false,
  runsDuplicatesOnce: false,
  sampleIds: "sticky",
  sendsWeights: true,
  reduction: "sequenceMean",
  losses: ["importance_sampling", "ppo", "cispo"],
  carrier: "importance_sampling",
  adam: ["beta1", "beta2", "epsilon", "weightDecay"],
  adamMissing: ["maxGradientNorm"],
  resetsOptimizer: false,
  ranks: "lora",
  models: "many",
  reference: "model",
  keepsSnapshots: false,
  sampledLogprobs: "raw",
  promptLogprobs: "withoutFirst",
  needsEnds: true,
  leavesGradients: true,
  archive: "byName",
  removesCheckpoints: false,
  ...chunks,
};

const skyrlFsdp: Profile = {
  name: "skyrl-fsdp",
  title: "SkyRL on FSDP or Megatron",
  popsResults: false,
  runsDuplicatesOnce: false,
  sampleIds: "sticky",
  sendsWeights: true,
  reduction: "sum",
  losses: everyLoss,
  carrier: "cross_entropy",
  adam: [],
  adamMissing: [],
  resetsOptimizer: false,
  ranks: "both",
  models: "one",
  reference: "none",
  keepsSnapshots: false,
  sampledLogprobs: "tempered",
  samplerPrecision: "bfloat16",
  promptLogprobs: "withoutFirst",
  needsEnds: false,
  leavesGradients: false,
  archive: "byName",
  removesCheckpoints: false,
  ...chunks,
};

const verlTinker: Profile = {
  name: "verl-tinker",
  title: "VeRL-Tinker",
  popsResults: true,
  runsDuplicatesOnce: false,
  sampleIds: "fresh",
  sendsWeights: true,
  reduction: "sum",
  // Its importance sampling caps the ratio of a token at 2.
  losses: ["cross_entropy", "ppo", "cispo"],
  carrier: "cross_entropy",
  adam: ["beta1", "beta2", "epsilon", "weightDecay"],
  adamMissing: [],
  resetsOptimizer: false,
  ranks: "full",
  models: "one",
  reference: "snapshot",
  keepsSnapshots: false,
  sampledLogprobs: "tempered",
  samplerPrecision: "bfloat16",
  promptLogprobs: "leadingNull",
  needsEnds: false,
  leavesGradients: false,
  archive: "none",
  removesCheckpoints: false,
  ...chunks,
};

export const profiles: Readonly<Record<ProfileName, Profile>> = {
  forager,
  "skyrl-jax": skyrlJax,
  "skyrl-fsdp": skyrlFsdp,
  "verl-tinker": verlTinker,
};
