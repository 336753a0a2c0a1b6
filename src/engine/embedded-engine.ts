/**
 * The embedded engine: trains and samples a decoder of the Llama family or a relative of it inside this process with ONNX Runtime.
 * Graphs are built when a shape is first met and kept; weights, gradients and moments are arrays of this process
 * that all graphs share.
 */
import type { Datum } from "../algorithm/datum.ts";
import type { Loss } from "../algorithm/loss.ts";
import { CheckpointError, EngineError } from "../errors.ts";
import type { Policy } from "../rollout/policy.ts";
import { canonicalJson } from "../shared/hash.ts";
import type { HubOptions } from "../shared/hub.ts";
import { type WritableTokenizer, writeTokenizer } from "../tokenizer/tokenizer-file.ts";
import { AdamW, type OptimizerState } from "./adam-graph.ts";
import { readModel, readOptimizer, writeModel, writeOptimizer } from "./checkpoint.ts";
import { DecodingModel } from "./decoding-model.ts";
import { EmbeddedPolicy } from "./embedded-policy.ts";
import type { AdamOptions, Engine, LossReport, ReferencePolicy, StepReport } from "./engine.ts";
import { openModelFiles } from "./model-files.ts";
import { type ModelOptions, parameterCount } from "./model-options.ts";
import { locateModel } from "./model-source.ts";
import { copyParameters, initializeParameters, type Parameter, zerosLike } from "./parameters.ts";
import { SequenceRunner } from "./sequence-runner.ts";

export interface EmbeddedEngineOptions {
  /** Threads inside one operator. */
  readonly threads: number;
  /** Most tokens of one micro-batch in training, padding included. */
  readonly tokenBudget: number;
  /** Most sequences decoded at once. */
  readonly maxSlots: number;
  /** Where a model is fetched from that is not on this machine; absent: only paths can be opened. */
  readonly hub?: HubOptions;
}

interface Weights {
  readonly model: ModelOptions;
  readonly tokenizer: WritableTokenizer;
  readonly parameters: Map<string, Parameter>;
  readonly name: string;
}

export class EmbeddedEngine implements Engine {
  readonly model: ModelOptions;
  readonly tokenizer: WritableTokenizer;
  readonly contextLength: number;
  readonly parameterCount: number;
  readonly #parameters: Map<string, Parameter>;
  readonly #options: EmbeddedEngineOptions;
  readonly #sequences: SequenceRunner;
  readonly #decoding: DecodingModel;
  readonly #policy: EmbeddedPolicy;
  /** Made when they are first needed: a model that only samples has none. */
  #gradients: Map<string, Parameter> | undefined;
  #adam: AdamW | undefined;
  #optimizer: OptimizerState | undefined;

  private constructor(weights: Weights, options: EmbeddedEngineOptions, decoding: DecodingModel) {
    const { model, tokenizer, parameters, name } = weights;
    this.model = model;
    this.tokenizer = tokenizer;
    this.contextLength = model.contextLength;
    this.parameterCount = parameterCount(model);
    this.#parameters = parameters;
    this.#options = options;
    this.#sequences = new SequenceRunner({ model }, options);
    this.#decoding = decoding;
    this.#policy = new EmbeddedPolicy({
      identity: { type: "embedded", model: name },
      model: decoding,
      tokenizer,
      maxSlots: options.maxSlots,
    });
  }

  /** A model with fresh weights from `seed`. Throws `EngineError` when it cannot hold the tokenizer's ids. */
  static async create(
    model: ModelOptions,
    setting: { readonly tokenizer: WritableTokenizer; readonly seed: number },
    options: EmbeddedEngineOptions,
  ): Promise<EmbeddedEngine> {
    const parameters = initializeParameters(model, setting.seed);
    return await EmbeddedEngine.#open(
      { model, parameters, tokenizer: setting.tokenizer, name: "fresh" },
      options,
    );
  }

  /**
   * A model without optimiser state: a folder as Hugging Face's libraries write it, a GGUF file, `hf:owner/name[@revision]`
   * or a short name such as `smollm2-135m`. Throws `CheckpointError`, `FileError`, `DataFormatError`, or `HubError`.
   */
  static async open(source: string, options: EmbeddedEngineOptions): Promise<EmbeddedEngine> {
    const files = await openModelFiles(await locateModel(source, options.hub));
    try {
      const tokenizer = await files.readTokenizer();
      const parameters = await files.readParameters();
      const { model } = files;
      return await EmbeddedEngine.#open({ model, parameters, tokenizer, name: source }, options);
    } finally {
      await files.close();
    }
  }

  static async #open(weights: Weights, options: EmbeddedEngineOptions): Promise<EmbeddedEngine> {
    const { model, tokenizer, parameters } = weights;
    if (tokenizer.vocabularySize > model.vocabularySize) {
      throw new EngineError(
        `the tokenizer has ${tokenizer.vocabularySize} ids, the model ${model.vocabularySize}; use the tokenizer that belongs to the model`,
      );
    }
    return new EmbeddedEngine(weights, options, new DecodingModel(model, parameters, options));
  }

  policy(): Policy {
    return this.#policy;
  }

  async logprobs(batch: readonly Datum[]): Promise<Float32Array[]> {
    return await this.#sequences.logprobs(this.#parameters, batch);
  }

  async forwardBackward(batch: readonly Datum[], loss: Loss): Promise<LossReport> {
    this.#gradients ??= zerosLike(this.#parameters);
    return await this.#sequences.forwardBackward(this.#parameters, batch, {
      loss,
      gradients: this.#gradients,
    });
  }

  async step(options: AdamOptions): Promise<StepReport> {
    this.#adam ??= await AdamW.create(this.#parameters, this.#options);
    this.#optimizer ??= freshOptimizer(this.#parameters);
    this.#gradients ??= zerosLike(this.#parameters);
    const gradientNorm = await this.#adam.step(this.#parameters, this.#gradients, this.#optimizer, options);
    this.#forgetGradients();
    this.#policy.invalidate();
    return { gradientNorm };
  }

  async resetOptimizer(): Promise<void> {
    this.#optimizer = undefined;
  }

  async save(folder: string): Promise<void> {
    // At once: most of the time goes into waiting for the disk, file after file.
    await Promise.all([
      writeModel(folder, this, this.#parameters),
      writeTokenizer(folder, this.tokenizer),
      ...(this.#optimizer ? [writeOptimizer(folder, this.#optimizer)] : []),
    ]);
  }

  async load(folder: string): Promise<void> {
    const { model, parameters } = await readModel(folder);
    if (canonicalJson(model) !== canonicalJson(this.model)) {
      throw new CheckpointError(
        `${folder} holds a model of another shape (${canonicalJson(model)}) than this one (${canonicalJson(this.model)}); use a checkpoint of the same model`,
      );
    }
    // All is read before anything changes, so that a damaged folder leaves the engine as it was.
    const optimizer = await readOptimizer(folder, this.#parameters);
    for (const [name, { data }] of this.#parameters) data.set((parameters.get(name) as Parameter).data);
    this.#optimizer = optimizer;
    this.#forgetGradients();
    this.#policy.invalidate();
  }

  async snapshot(): Promise<ReferencePolicy> {
    const frozen = copyParameters(this.#parameters);
    return { logprobs: (batch) => this.#sequences.logprobs(frozen, batch) };
  }

  #forgetGradients(): void {
    for (const { data } of this.#gradients?.values() ?? []) data.fill(0);
  }

  async close(): Promise<void> {
    await this.#sequences.close();
    await this.#decoding.close();
    await this.#adam?.close();
  }
}

function freshOptimizer(parameters: ReadonlyMap<string, Parameter>): OptimizerState {
  return { step: 0, firstMoments: zerosLike(parameters), secondMoments: zerosLike(parameters) };
}
