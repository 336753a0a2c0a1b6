/**
 * The models of one embedded base. Its weights are in memory once: every model with adapters reads them, and so does
 * sampling from the base; only a model of rank 0 has a copy. Models of one shape share the graphs they are trained with,
 * and one training call runs at a time, whichever model it is of, so that activations are there once.
 */
import type { Datum } from "../../algorithm/datum.ts";
import { initializeAdapters } from "../../engine/lora.ts";
import { type BaseLocation, locationOfBase } from "../../engine/lora-base.ts";
import { readAdapters } from "../../engine/lora-files.ts";
import type { LoraOptions } from "../../engine/lora-options.ts";
import { adaptedWeights, hashOnce } from "../../engine/lora-weights.ts";
import { openModelFiles } from "../../engine/model-files.ts";
import type { ModelOptions } from "../../engine/model-options.ts";
import { locateModel } from "../../engine/model-source.ts";
import { copyParameters, countParameters, type ParameterSet } from "../../engine/parameters.ts";
import { requireRoom } from "../../engine/require-room.ts";
import { SequenceRunner } from "../../engine/sequence-runner.ts";
import { type TrainedWeights, wholeWeights } from "../../engine/trained-weights.ts";
import { type MemoryLimits, planTraining } from "../../engine/training-plan.ts";
import type { SamplingWeights } from "../../engine/weight-quantization.ts";
import { EngineError } from "../../errors.ts";
import { allWritten } from "../../shared/files.ts";
import { canonicalJson } from "../../shared/hash.ts";
import type { HubOptions } from "../../shared/hub.ts";
import { type WritableTokenizer, writeTokenizer } from "../../tokenizer/tokenizer-file.ts";
import type { Backend, ModelShape, Sampler } from "./backend.ts";
import { EmbeddedModel, type RunOfShape } from "./embedded-model.ts";
import { EmbeddedSampler } from "./embedded-sampler.ts";

export interface EmbeddedBackendOptions extends MemoryLimits {
  /** Threads inside one operator. */
  readonly threads: number;
  /** Most sequences decoded at once with the same weights. */
  readonly maxSlots: number;
  /** Bytes that keys and values may take for each of the weights that are sampled at one time. */
  readonly cacheMemory: number;
  /** What completions are sampled with. Absent: f32. */
  readonly samplingWeights?: SamplingWeights | undefined;
  /** Bytes of the machine: a base that cannot be sampled in them is refused. Absent: unlimited. */
  readonly machineMemory?: number;
  readonly hub?: HubOptions;
}

/** What is read of a base once. */
interface Base {
  readonly model: ModelOptions;
  readonly tokenizer: WritableTokenizer;
  readonly parameters: ParameterSet;
  readonly location: BaseLocation;
}

/** The graphs of a shape, and how many models and samplers hold them. */
interface SharedRunner {
  readonly runner: SequenceRunner;
  users: number;
}

/** Opens what `EmbeddedEngine.open` opens, as the base of many models. Throws as that does, also where the machine is too small. */
export async function openEmbeddedBackend(
  source: string,
  options: EmbeddedBackendOptions,
): Promise<EmbeddedBackend> {
  const { machineMemory, hub, samplingWeights } = options;
  const files = await openModelFiles(await locateModel(source, hub), hub);
  try {
    if (machineMemory !== undefined)
      requireRoom(source, files.model, { machineMemory, ...(samplingWeights && { samplingWeights }) });
    const base = {
      model: files.model,
      tokenizer: await files.readTokenizer(),
      parameters: await files.readParameters(),
      location: await locationOfBase(source),
    };
    return new EmbeddedBackend(base, options);
  } finally {
    await files.close();
  }
}

export class EmbeddedBackend implements Backend {
  readonly tokenizer: WritableTokenizer;
  readonly vocabularySize: number;
  readonly contextLength: number;
  readonly parameterCount: number;
  readonly base: Sampler;
  readonly #base: Base;
  readonly #options: EmbeddedBackendOptions;
  readonly #hash: () => string;
  readonly #runners = new Map<string, SharedRunner>();
  #last: Promise<unknown> = Promise.resolve();

  constructor(base: Base, options: EmbeddedBackendOptions) {
    this.#base = base;
    this.#options = options;
    this.tokenizer = base.tokenizer;
    this.vocabularySize = base.model.vocabularySize;
    this.contextLength = base.model.contextLength;
    this.parameterCount = countParameters(base.parameters);
    this.#hash = hashOnce(base.parameters);
    this.base = this.#sampler(wholeWeights(base.model, base.parameters));
  }

  async create(shape: ModelShape): Promise<EmbeddedModel> {
    const { model, parameters } = this.#base;
    if (shape.rank === 0) return this.#train(wholeWeights(model, copyParameters(parameters)));
    const lora = loraOf(shape);
    return this.#train(this.#adapted(lora, initializeAdapters(model, lora, shape.seed)));
  }

  async open(folder: string, shape: ModelShape): Promise<Sampler> {
    const { model } = this.#base;
    if (shape.rank === 0) {
      const whole = await wholeWeights(model, new Map()).read(folder);
      return this.#sampler(wholeWeights(model, whole));
    }
    const lora = loraOf(shape);
    return this.#sampler(this.#adapted(lora, await readAdapters(folder, model, lora)));
  }

  async close(): Promise<void> {
    await this.base.close();
    for (const { runner } of this.#runners.values()) await runner.close();
  }

  #adapted(lora: LoraOptions, adapters: ParameterSet): TrainedWeights {
    const { model, parameters: base, location } = this.#base;
    const { threads } = this.#options;
    return adaptedWeights({ model, base, adapters, config: { lora, location }, threads, hash: this.#hash });
  }

  #train(weights: TrainedWeights): EmbeddedModel {
    const run = this.#borrow(weights);
    const save = (folder: string): Promise<void> => this.#save(weights, folder);
    return new EmbeddedModel({
      threads: this.#options.threads,
      weights,
      run,
      save,
      snapshot: () => {
        const { lora } = weights.adapted;
        const trained = copyParameters(weights.trained);
        return this.#sampler(lora ? this.#adapted(lora, trained) : wholeWeights(this.#base.model, trained));
      },
    });
  }

  async #save(weights: TrainedWeights, folder: string): Promise<void> {
    await allWritten([weights.save(folder, this.tokenizer), writeTokenizer(folder, this.tokenizer)]);
  }

  #sampler(weights: TrainedWeights): EmbeddedSampler {
    const { threads, maxSlots, cacheMemory, samplingWeights } = this.#options;
    const logprobs = async (all: ParameterSet, batch: readonly Datum[]): Promise<Float32Array[]> => {
      const run = this.#borrow(weights);
      try {
        return await run.alone((runner) => runner.logprobs(all, batch));
      } finally {
        run.giveBack();
      }
    };
    const save = (folder: string): Promise<void> => this.#save(weights, folder);
    return new EmbeddedSampler({
      weights,
      tokenizer: this.tokenizer,
      threads,
      maxSlots,
      cacheMemory,
      samplingWeights,
      logprobs,
      save,
    });
  }

  /** The graphs for models of a shape. Those that nobody has are kept until another shape is wanted. */
  #borrow({ adapted, all, trained }: TrainedWeights): RunOfShape {
    const key = canonicalJson(adapted.lora ?? null);
    const entry = this.#runners.get(key) ?? this.#addRunner(key, { adapted, all, trained });
    entry.users++;
    return {
      alone: (work) => this.#alone(() => work(entry.runner)),
      giveBack: () => {
        entry.users--;
      },
    };
  }

  #addRunner(
    key: string,
    { adapted, all, trained }: Pick<TrainedWeights, "adapted" | "all" | "trained">,
  ): SharedRunner {
    for (const [idle, { runner, users }] of this.#runners) {
      if (users > 0) continue;
      this.#runners.delete(idle);
      // Nobody waits for it; the next call makes its graphs anew whatever became of these.
      this.#alone(() => runner.close()).catch(() => undefined);
    }
    const parameters = countParameters(all);
    const shape = { model: adapted.model, parameters, trained: countParameters(trained) };
    const plan = planTraining(shape, this.#options);
    const runner = new SequenceRunner(adapted, { threads: this.#options.threads, ...plan });
    const entry = { runner, users: 0 };
    this.#runners.set(key, entry);
    return entry;
  }

  async #alone<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work);
    this.#last = result.catch(() => undefined);
    return await result;
  }
}

/** Throws `EngineError` for a shape without anything to train. */
function loraOf({ rank, alpha, trainsAttention, trainsFeedForward }: ModelShape): LoraOptions {
  const targets = [
    ...(trainsAttention ? (["q_proj", "k_proj", "v_proj", "o_proj"] as const) : []),
    ...(trainsFeedForward ? (["gate_proj", "up_proj", "down_proj"] as const) : []),
  ];
  if (targets.length === 0)
    throw new EngineError(
      "nothing would be trained; set train_attn or train_mlp, the output layer has no adapters here",
    );
  return { rank, alpha, targets };
}
