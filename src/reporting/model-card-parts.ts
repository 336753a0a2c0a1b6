/** What a model card tells of a model that is handed on; `model-card.ts` writes it, the command line gathers it. */
import type { StoredEvaluation } from "./run-folder.ts";

export const exportTargets = ["hf", "peft", "gguf", "merged"] as const;
export type ExportTarget = (typeof exportTargets)[number];

/** A model that a training or a conversion started from. */
export interface CardBase {
  /** `owner/name` on a hub, else the last part of its path. */
  readonly name: string;
  readonly isOnHub: boolean;
  readonly revision?: string;
  /** SHA-256 of its files. */
  readonly hash?: string;
}

export interface CardEvaluation extends StoredEvaluation {
  /** Whether the weights that were scored are those of this card. */
  readonly isOfTheseWeights: boolean;
}

/** What is known of the training. */
export interface CardRun {
  readonly recipeName: string;
  /** The resolved recipe without the paths of the machine it ran on. */
  readonly recipeYaml: string;
  /** Steps of all stages that made these weights, and that the recipe has. */
  readonly step: number;
  readonly totalSteps: number;
  /** Such as `grpo: 40 steps of reinforcement`, in order. */
  readonly stages: readonly string[];
  /** What it was trained and scored on, a name and a value each. */
  readonly data: readonly (readonly [string, string])[];
  readonly evaluations: readonly CardEvaluation[];
  readonly prompt: {
    /** What opens an episode, with `{question}` in its place. */
    readonly opening: string;
    /** Texts that end a turn of the model. */
    readonly stopStrings: readonly string[];
    /** A search and its observation, as the model sees them. */
    readonly example: string;
  };
}

export interface ModelCard {
  readonly name: string;
  readonly target: ExportTarget;
  /** Type of the weights, such as F32 or Q8_0. */
  readonly type: string;
  /** The weights' file. */
  readonly file: string;
  readonly family: string;
  readonly parameters: number;
  readonly context: number;
  /** SPDX identifier of the base's licence; absent where it is not known, or where there is no base. */
  readonly licence?: string;
  /** Absent for a model trained from nothing. */
  readonly base?: CardBase;
  readonly run?: CardRun;
  /** Of Forager. */
  readonly version: string;
}
