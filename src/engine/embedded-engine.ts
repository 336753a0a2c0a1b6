/**
 * The embedded engine: trains and samples a decoder of the Llama family or a relative of it inside this process with ONNX Runtime,
 * as a whole or through adapters (`trained-weights.ts`). Graphs are built when a shape is first met and kept; weights
 * and gradients are arrays of this process that all graphs share.
 */
import type { Datum } from "../algorithm/datum.ts";
import type { Loss } from "../algorithm/loss.ts";
import { EngineError } from "../errors.ts";
import type { Policy } from "../rollout/policy.ts";
import { allWritten } from "../shared/files.ts";
import type { HubOptions } from "../shared/hub.ts";
import { returnFreeMemory } from "../shared/onnx-runtime/return-free-memory.ts";
import { type WritableTokenizer, writeTokenizer } from "../tokenizer/tokenizer-file.ts";
import { defaultCacheMemory } from "./cache-budget.ts";
import { DecodingModel } from "./decoding-model.ts";
import { type CriticHost, EmbeddedCritic } from "./embedded-critic.ts";
import { EmbeddedPolicy } from "./embedded-policy.ts";
import type {
  AdamOptions,
  Critic,
  CriticOptions,
  Engine,
  LossReport,
  ReferencePolicy,
  StepReport,
} from "./engine.ts";
import { type AdapterSetting, openAdapted } from "./lora-weights.ts";
import { bytesGivenBack } from "./memory-estimate.ts";
import { type ModelFiles, openModelFiles } from "./model-files.ts";
import type { ModelOptions } from "./model-options.ts";
import { locateModel } from "./model-source.ts";
import { momentsInFile, momentsInMemory } from "./moments.ts";
import { Optimizer, type OptimizerOptions } from "./optimizer.ts";
import {
  copyParameters,
  countParameters,
  initializeParameters,
  type Parameter,
  type ParameterSet,
} from "./parameters.ts";
import { requireRoom } from "./require-room.ts";
import { SequenceRunner } from "./sequence-runner.ts";
import { type TrainedWeights, wholeWeights } from "./trained-weights.ts";
import { type MemoryLimits, planTraining, type TrainingPlan } from "./training-plan.ts";
import { bitsOf, type SamplingWeights } from "./weight-quantization.ts";

export interface EmbeddedEngineOptions extends MemoryLimits {
  /** Threads inside one operator. */
  readonly threads: number;
  /** Most sequences decoded at once. */
  readonly maxSlots: number;
  /** Bytes that keys and values of all sequences may take while they are sampled; absent: `defaultCacheMemory`. */
  readonly cacheMemory?: number;
  /** Weights of linear layers while it samples; absent: `f32`, those that are trained. */
  readonly samplingWeights?: SamplingWeights;
  /** Bytes that this machine has: a model that needs more to be sampled is refused before it is read; absent: none is. */
  readonly machineMemory?: number;
  /** Where a model is fetched from that is not on this machine; absent: only paths can be opened. */
  readonly hub?: HubOptions;
  /** Where a nameless file holds the optimiser's moments; absent: they are in memory. */
  readonly momentsFolder?: string;
}

interface Parts {
  readonly weights: TrainedWeights;
  readonly tokenizer: WritableTokenizer;
  readonly name: string;
}

export class EmbeddedEngine implements Engine {
  readonly model: ModelOptions;
  readonly tokenizer: WritableTokenizer;
  readonly contextLength: number;
  readonly parameterCount: number;
  readonly trainableParameterCount: number;
  /** How training uses memory. */
  readonly trainingPlan: TrainingPlan;
  readonly #weights: TrainedWeights;
  readonly #sequences: SequenceRunner;
  readonly #decoding: DecodingModel;
  readonly #policy: EmbeddedPolicy;
  readonly #optimizerOptions: OptimizerOptions;
  readonly #optimizer: Optimizer;

  private constructor({ weights, tokenizer, name }: Parts, options: EmbeddedEngineOptions) {
    const { adapted, all, trained } = weights;
    this.model = adapted.model;
    this.tokenizer = tokenizer;
    this.contextLength = this.model.contextLength;
    this.parameterCount = countParameters(all);
    this.trainableParameterCount = countParameters(trained);
    this.#weights = weights;
    const { momentsFolder, threads } = options;
    const createMoments = momentsFolder === undefined ? momentsInMemory : momentsInFile(momentsFolder);
    this.#optimizerOptions = { createMoments, threads };
    this.#optimizer = new Optimizer(trained, this.#optimizerOptions);
    this.trainingPlan = planTraining(
      {
        model: this.model,
        parameters: this.parameterCount,
        trained: this.trainableParameterCount,
        momentsOnDisk: momentsFolder !== undefined,
      },
      options,
    );
    this.#sequences = new SequenceRunner(adapted, { threads, ...this.trainingPlan });
    const precision = options.samplingWeights ?? "f32";
    const bits = bitsOf(precision);
    this.#decoding = new DecodingModel(this.model, () => this.#weightsToSample(), {
      threads,
      bits,
      forget: (merged) => {
        weights.forgetMerged(merged);
        if (this.#takesTurns) returnFreeMemory();
      },
    });
    this.#policy = new EmbeddedPolicy({
      identity: { type: "embedded", model: name, ...(bits && { weights: precision }) },
      model: this.#decoding,
      tokenizer,
      maxSlots: options.maxSlots,
      cacheMemory: options.cacheMemory ?? defaultCacheMemory,
    });
  }

  /** A model with fresh weights from `seed`. Throws `EngineError` when it cannot hold the tokenizer's ids. */
  static async create(
    model: ModelOptions,
    setting: { readonly tokenizer: WritableTokenizer; readonly seed: number },
    options: EmbeddedEngineOptions,
  ): Promise<EmbeddedEngine> {
    const weights = wholeWeights(model, initializeParameters(model, setting.seed));
    return EmbeddedEngine.#open({ weights, tokenizer: setting.tokenizer, name: "fresh" }, options);
  }

  /**
   * A model without optimiser state: a folder as Hugging Face's libraries write it, a GGUF file, `hf:owner/name[@revision]`
   * or a short name such as `smollm2-135m`; adapters, as of a checkpoint, are merged into their model. Throws `CheckpointError`, `FileError`, `DataFormatError`, `HubError`, or
   * `EngineError` for one that the machine cannot hold.
   */
  static async open(source: string, options: EmbeddedEngineOptions): Promise<EmbeddedEngine> {
    return await EmbeddedEngine.#read(source, options, async (files) =>
      wholeWeights(files.model, await files.readParameters()),
    );
  }

  /**
   * A model whose weights stay as they are, with fresh adapters that are trained; or the adapters that `source` holds, to be
   * trained further. Throws as `open`, and `EngineError` for a rank larger than a matrix.
   */
  static async adapt(
    source: string,
    setting: AdapterSetting,
    options: EmbeddedEngineOptions,
  ): Promise<EmbeddedEngine> {
    return await EmbeddedEngine.#read(source, options, (files) =>
      openAdapted(files, { ...setting, source, threads: options.threads }),
    );
  }

  static async #read(
    source: string,
    options: EmbeddedEngineOptions,
    readWeights: (files: ModelFiles) => Promise<TrainedWeights>,
  ): Promise<EmbeddedEngine> {
    const files = await openModelFiles(await locateModel(source, options.hub), options.hub);
    try {
      const { machineMemory, samplingWeights = "f32" } = options;
      if (machineMemory !== undefined) requireRoom(source, files.model, { machineMemory, samplingWeights });
      const tokenizer = await files.readTokenizer();
      return EmbeddedEngine.#open({ weights: await readWeights(files), tokenizer, name: source }, options);
    } finally {
      await files.close();
    }
  }

  static #open(parts: Parts, options: EmbeddedEngineOptions): EmbeddedEngine {
    const { tokenizer } = parts;
    const { model } = parts.weights.adapted;
    if (tokenizer.vocabularySize > model.vocabularySize) {
      throw new EngineError(
        `the tokenizer has ${tokenizer.vocabularySize} ids, the model ${model.vocabularySize}; use the tokenizer that belongs to the model`,
      );
    }
    return new EmbeddedEngine(parts, options);
  }

  policy(): Policy {
    return this.#policy;
  }

  /** Training and sampling take turns where both together would take much more memory. */
  async #weightsToSample(): Promise<ParameterSet> {
    if (this.#takesTurns) {
      await this.#sequences.rest();
      returnFreeMemory();
    }
    return await this.#weights.merged();
  }

  async #restSampler(): Promise<void> {
    if (this.#takesTurns) await this.#policy.rest();
  }

  get #takesTurns(): boolean {
    return bytesGivenBack(this.trainingPlan.memory) > 0;
  }

  async logprobs(batch: readonly Datum[]): Promise<Float32Array[]> {
    await this.#restSampler();
    return await this.#sequences.logprobs(this.#weights.all, batch);
  }

  async forwardBackward(batch: readonly Datum[], loss: Loss): Promise<LossReport> {
    // Of no use after the step that follows, and the way back needs the memory.
    await this.#policy.rest();
    const { gradients } = this.#optimizer;
    return await this.#sequences.forwardBackward(this.#weights.all, batch, { loss, gradients });
  }

  async step(options: AdamOptions): Promise<StepReport> {
    // A step that fails leaves weights that are new in part: the sampler must not go on with those of before.
    this.#policy.invalidate();
    return await this.#optimizer.step(options);
  }

  async resetOptimizer(): Promise<void> {
    await this.#optimizer.reset();
  }

  async save(folder: string): Promise<void> {
    // At once: most of the time goes into waiting for the disk, file after file.
    await allWritten([
      this.#weights.save(folder, this.tokenizer),
      writeTokenizer(folder, this.tokenizer),
      this.#optimizer.save(folder),
    ]);
  }

  async load(folder: string): Promise<void> {
    const { trained } = this.#weights;
    // All is read before anything changes, so that a damaged folder leaves the engine as it was.
    const saved = await this.#weights.read(folder);
    const state = await this.#optimizer.read(folder);
    for (const [name, { data }] of trained) data.set((saved.get(name) as Parameter).data);
    await this.#optimizer.replace(state);
    this.#policy.invalidate();
  }

  async snapshot(): Promise<ReferencePolicy> {
    const { all, trained } = this.#weights;
    // Only what is trained can change; frozen weights are shared.
    const frozen = new Map([...all, ...copyParameters(trained)]);
    return {
      logprobs: async (batch) => {
        await this.#restSampler();
        return await this.#sequences.logprobs(frozen, batch);
      },
    };
  }

  async critic(options: CriticOptions): Promise<Critic> {
    const host: CriticHost = {
      weights: this.#weights,
      sequences: this.#sequences,
      gradients: () => this.#optimizer.gradients,
      rest: () => this.#restSampler(),
      optimizer: this.#optimizerOptions,
    };
    return new EmbeddedCritic(host, options);
  }

  async close(): Promise<void> {
    await this.#sequences.close();
    await this.#decoding.close();
    await this.#optimizer.close();
  }
}
