/**
 * The engine contract over the Tinker protocol: a model that is trained and sampled on a server elsewhere. What is trained lies
 * there; a checkpoint holds its place there and, where the server hands them out, the adapters. There is no critic.
 */
import type { Datum } from "../../algorithm/datum.ts";
import type { Loss } from "../../algorithm/loss.ts";
import { assert, EngineError } from "../../errors.ts";
import type { Policy } from "../../rollout/policy.ts";
import { createLimiter, type Limiter } from "../../shared/concurrency.ts";
import { JoinedSignals } from "../../shared/joined-signals.ts";
import { type WritableTokenizer, writeTokenizer } from "../../tokenizer/tokenizer-file.ts";
import type {
  AdamOptions,
  Engine,
  EngineCounts,
  LossReport,
  ReferencePolicy,
  StepReport,
} from "../engine.ts";
import type { BaseLocation } from "../lora-base.ts";
import { fetchAdapters } from "./adapter-archive.ts";
import type { Connection } from "./connection.ts";
import { carriedBatch, directBatch, isDirect } from "./loss-plan.ts";
import { reportOf } from "./loss-report.ts";
import { optimStep, requireKnown } from "./optim-step.ts";
import {
  discardOwn,
  readCheckpoint,
  removeOnServer,
  requireOnServer,
  runIdentity,
  writeCheckpoint,
} from "./remote-checkpoint.ts";
import { computeLogprobs, logprobRows, modelReference, snapshotReference } from "./remote-logprobs.ts";
import type { RemoteModel } from "./remote-model.ts";
import { SamplerSource } from "./sampler-source.ts";
import type { Session } from "./session.ts";
import { TinkerPolicy } from "./tinker-policy.ts";
import { chunked, requireSound, type WireBatch } from "./wire-data.ts";

export interface TinkerParts {
  readonly session: Session;
  readonly tokenizer: WritableTokenizer;
  readonly contextLength: number;
  /** The server's name of the model. */
  readonly baseModel: string;
  readonly rank: number;
  /** Where the base lies for whoever loads the adapters elsewhere. */
  readonly location: BaseLocation;
  /** Folder of the run that is trained, whose checkpoints are its own to discard; absent: there is none. */
  readonly run?: string | undefined;
  /** What the probe found, for the contract of the run; absent: it was not asked. */
  readonly probe?: object | undefined;
  /** Told at the end what went wrong and was made up for. */
  readonly note?: ((text: string) => void) | undefined;
}

export class TinkerEngine implements Engine {
  readonly tokenizer: WritableTokenizer;
  readonly contextLength: number;
  readonly parameterCount = undefined;
  readonly trainableParameterCount = undefined;
  readonly #parts: TinkerParts;
  readonly #connection: Connection;
  readonly #limiter: Limiter;
  readonly #stopping: JoinedSignals;
  readonly #samplers: SamplerSource;
  #model: RemoteModel;
  /** Batches since the last step, where the server divides by their number. */
  #pendingBatches = 0;
  /** Whether moments may be other than zero. */
  #hasMoments = false;
  #saves = 0;

  private constructor(model: RemoteModel, parts: TinkerParts) {
    this.#parts = parts;
    this.#connection = parts.session.connection;
    this.#model = model;
    this.#samplers = new SamplerSource(parts.session, () => this.#model);
    this.tokenizer = parts.tokenizer;
    this.contextLength = parts.contextLength;
    this.#limiter = createLimiter(this.#connection.options.concurrency);
    this.#stopping = new JoinedSignals(parts.session.signal);
  }

  /** An engine with a fresh model on the server; it closes the session. Throws `EngineError`. */
  static async create(parts: TinkerParts): Promise<TinkerEngine> {
    return new TinkerEngine(await parts.session.createModel(parts), parts);
  }

  /** What the contract of a run says of it. */
  describe(): Readonly<Record<string, unknown>> {
    const { baseModel, rank, probe } = this.#parts;
    const { url, profile } = this.#connection;
    return { type: "tinker", url, profile: profile.name, baseModel, rank, ...(probe && { probe }) };
  }

  get counts(): EngineCounts {
    return this.#connection.counts;
  }

  policy(): Policy {
    const { tokenizer, contextLength } = this;
    const { baseModel } = this.#parts;
    return new TinkerPolicy({
      connection: this.#connection,
      tokenizer,
      contextLength,
      limiter: this.#limiter,
      model: `${baseModel} at ${this.#connection.url}`,
      samplers: this.#samplers,
      stopping: this.#stopping,
    });
  }

  async logprobs(batch: readonly Datum[]): Promise<Float32Array[]> {
    this.#requireSound(batch);
    return await computeLogprobs(this.#model, batch, this.#limits);
  }

  async forwardBackward(batch: readonly Datum[], loss: Loss): Promise<LossReport> {
    this.#requireSound(batch);
    const { profile } = this.#connection;
    const trained = batch.filter(({ weights }) => weights.some((weight) => weight !== 0));
    if (trained.length === 0)
      return {
        loss: 0,
        logprobs: batch.map(({ targets }) => new Float32Array(targets.length)),
        paddedTokens: 0,
      };
    this.#requireOneBatch();
    await this.#parts.session.remember();
    const model = this.#model;
    const wire = isDirect(loss, trained, profile)
      ? directBatch(loss, trained, profile)
      : carriedBatch(
          loss,
          { batch: trained, current: await computeLogprobs(model, trained, this.#limits) },
          profile,
        );
    this.#pendingBatches++;
    const rows = await this.#post(model, wire, trained);
    return reportOf(batch, { trained, rows, loss });
  }

  /** Chunk after chunk is posted; their results are waited for together. */
  async #post(model: RemoteModel, wire: WireBatch, trained: readonly Datum[]): Promise<Float32Array[]> {
    const answers = await Promise.all(
      chunked(wire, this.#limits).map((forward_backward_input) =>
        model.run("forward_backward", {
          forward_backward_input: { ...forward_backward_input, data: [...forward_backward_input.data] },
        }),
      ),
    );
    return logprobRows(this.#connection, answers, trained);
  }

  get #limits() {
    const { profile, options } = this.#connection;
    return { chunkBytes: options.chunkBytes ?? profile.chunkBytes, chunkDatums: profile.chunkDatums };
  }

  #requireSound(batch: readonly Datum[]): void {
    const { vocabularySize } = this.tokenizer;
    for (const [index, datum] of batch.entries())
      requireSound(datum, index, { vocabularySize, contextLength: this.contextLength });
  }

  /** Where the gradient is divided by the number of sequences of a step, it must be known when the first is sent. */
  #requireOneBatch(): void {
    const { reduction, title } = this.#connection.profile;
    if (reduction === "sum" || this.#pendingBatches === 0) return;
    throw new EngineError(
      `${title} averages the gradient over all sequences of a step, so that one step has one batch here; call step between two`,
    );
  }

  async step(options: AdamOptions): Promise<StepReport> {
    this.#samplers.requireNoSampling("a step");
    requireKnown(options, this.#connection.profile);
    this.#samplers.changed();
    this.#hasMoments = true;
    this.#pendingBatches = 0;
    return { gradientNorm: await optimStep(this.#model, options) };
  }

  async resetOptimizer(): Promise<void> {
    if (!this.#hasMoments) return;
    const { profile } = this.#connection;
    if (!profile.resetsOptimizer)
      throw new EngineError(
        `${profile.title} cannot reset the optimiser; carry it over between stages (carry: [optimizer])`,
      );
    const path = await this.#saveWeights("reset");
    await this.#replaceModel(path, { optimizer: false });
    await removeOnServer(this.#connection, path);
    this.#hasMoments = false;
  }

  /** Keeps weights and moments on the server; a name that is taken, as after a lost acknowledgement, gives way to the next. */
  async #saveWeights(label: string): Promise<string> {
    const { retries } = this.#connection.options;
    for (let attempt = 0; ; attempt++) {
      try {
        return (await this.#model.run("save_weights", { path: `${label}-${++this.#saves}` })).path;
      } catch (error) {
        const isTaken = error instanceof EngineError && (error.kind === "conflict" || error.kind === "lost");
        if (!isTaken || attempt >= retries) throw error;
        this.#connection.count("retries");
      }
    }
  }

  async save(folder: string): Promise<void> {
    const { baseModel, rank, location, run } = this.#parts;
    const { profile, url, options } = this.#connection;
    const path = await this.#saveWeights("checkpoint");
    if (options.downloadAdapters && profile.archive !== "none" && rank > 0) {
      const checkpoint = `adapters-${this.#saves}`;
      const kept = await this.#model.run("save_weights_for_sampler", { path: checkpoint });
      await fetchAdapters(this.#connection, { modelId: this.#model.id, checkpoint, folder, location });
      await removeOnServer(this.#connection, kept.path ?? "");
    }
    await writeTokenizer(folder, this.tokenizer);
    // Last: with it the folder is a checkpoint.
    await writeCheckpoint(folder, {
      path,
      url,
      profile: profile.name,
      baseModel,
      rank,
      hasMoments: this.#hasMoments,
      ...(run !== undefined && { run: await runIdentity(run) }),
    });
  }

  async discard(folder: string): Promise<void> {
    await discardOwn(this.#connection, folder, this.#parts.run);
  }

  async load(folder: string): Promise<void> {
    const { baseModel, rank } = this.#parts;
    const saved = await readCheckpoint(folder, { baseModel, rank });
    await requireOnServer(this.#connection, folder, saved);
    this.#samplers.requireNoSampling("loading");
    await this.#replaceModel(saved.path, { optimizer: true });
    this.#hasMoments = saved.hasMoments;
  }

  /** A new model with what lies at `path` takes the place of the one before. */
  async #replaceModel(path: string, { optimizer }: { readonly optimizer: boolean }): Promise<void> {
    const { session } = this.#parts;
    const before = this.#model;
    const isAlone = this.#connection.profile.models === "one";
    this.#samplers.changed();
    if (isAlone) await session.unload(before);
    const model = await session.createModel(this.#parts);
    try {
      await model.run("load_weights", { path, optimizer });
    } catch (error) {
      await session.unload(model).catch(() => undefined);
      throw error;
    }
    this.#model = model;
    this.#pendingBatches = 0;
    if (!isAlone) await session.unload(before);
  }

  async snapshot(): Promise<ReferencePolicy> {
    const { reference, title } = this.#connection.profile;
    const { session } = this.#parts;
    if (reference === "none") throw new EngineError(`${title} has no frozen reference policy; leave kl out`);
    if (reference === "model") {
      const path = await this.#saveWeights("reference");
      const frozen = await session.createModel(this.#parts);
      await frozen.run("load_weights", { path, optimizer: false });
      await removeOnServer(this.#connection, path);
      return modelReference(frozen, (batch) => this.#requireSound(batch), this.#limits);
    }
    const name = `reference-${++this.#saves}`;
    const kept = await this.#model.run("save_weights_for_sampler", { path: name });
    assert(typeof kept.path === "string", "a snapshot with a name has a path");
    return await snapshotReference(session, kept.path, {
      requireSound: (batch) => this.#requireSound(batch),
      limiter: this.#limiter,
    });
  }

  async close(): Promise<void> {
    const { retries, resampled } = this.counts;
    if (retries + resampled > 0)
      this.#parts.note?.(
        `the server was asked again ${retries} times, and ${resampled} samples were drawn anew`,
      );
    await this.#parts.session.close();
  }
}
