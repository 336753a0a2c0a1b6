/**
 * For tests: one model of the server that tests play (`tinker-server.fixture.ts`), an embedded engine that is trained as the
 * profile says: what its gradients are divided by, which fields of Adam it honours.
 */
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Datum } from "../../algorithm/datum.ts";
import type { Loss } from "../../algorithm/loss.ts";
import type { EmbeddedEngine } from "../embedded-engine.ts";
import { dataOf, lossAnswer, lossOf, type Result } from "./played-data.fixture.ts";
import type { Profile } from "./profiles.ts";
import type { ParsedRequest, RequestPath } from "./wire.ts";

/** Checkpoints of a server, by their `tinker://` place. */
export class PlayedCheckpoints {
  readonly #places = new Map<string, { readonly folder: string; readonly rank: number }>();
  #root: Promise<string> | undefined;
  #saved = 0;

  find(place: string): { readonly folder: string; readonly rank: number } | undefined {
    return this.#places.get(place);
  }

  /** Saves a model under a place of its own. */
  async add(model: PlayedModel, place: string): Promise<string> {
    this.#root ??= mkdtemp(join(tmpdir(), "forager-tinker-"));
    const folder = join(await this.#root, `${++this.#saved}`);
    await mkdir(folder);
    await model.engine.save(folder);
    this.#places.set(place, { folder, rank: model.rank });
    return folder;
  }

  async remove(): Promise<void> {
    if (this.#root) await rm(await this.#root, { recursive: true, force: true });
  }
}

export interface PlayedModelParts {
  readonly engine: EmbeddedEngine;
  readonly rank: number;
  readonly profile: Profile;
  readonly checkpoints: PlayedCheckpoints;
  /** A number that no other has. */
  readonly newNumber: () => number;
  /** Told of weights that can be sampled from. */
  readonly onSampler: (id: string, folder: string) => void;
}

export class PlayedModel {
  readonly engine: EmbeddedEngine;
  readonly rank: number;
  /** The last request, after which the next is carried out. */
  tail: Promise<unknown> = Promise.resolve();
  /** By seq_id: the future it got. */
  readonly seen = new Map<number, string>();
  readonly #parts: PlayedModelParts;
  /** What waits for the step, where sequences are counted until then. */
  readonly #batches: { readonly data: readonly Datum[]; readonly loss: Loss }[] = [];

  constructor(parts: PlayedModelParts) {
    this.#parts = parts;
    this.engine = parts.engine;
    this.rank = parts.rank;
  }

  /** Carries a request out after those before it. */
  run(path: RequestPath, request: unknown): Promise<Result> {
    const work = this.tail.then(() => this.#carryOut(path, request));
    this.tail = work.catch(() => undefined);
    return work;
  }

  async #carryOut(path: RequestPath, request: unknown): Promise<Result> {
    switch (path) {
      case "forward": {
        const { forward_input } = request as ParsedRequest<"forward">;
        return lossAnswer(await this.engine.logprobs(dataOf(forward_input)));
      }
      case "forward_backward":
        return await this.#forwardBackward(request as ParsedRequest<"forward_backward">);
      case "optim_step":
        return await this.#step(request as ParsedRequest<"optim_step">);
      case "save_weights":
      case "save_weights_for_sampler":
        return await this.#save(path, request as ParsedRequest<"save_weights_for_sampler">);
      case "load_weights":
        return await this.#load(request as ParsedRequest<"load_weights">);
      default:
        return { failed: `${path} is not played` };
    }
  }

  async #forwardBackward({
    forward_backward_input: input,
  }: ParsedRequest<"forward_backward">): Promise<Result> {
    const data = dataOf(input);
    const loss = lossOf(input);
    if (this.#parts.profile.reduction === "sequenceMean") {
      this.#batches.push({ data, loss });
      return lossAnswer(await this.engine.logprobs(data));
    }
    return lossAnswer((await this.engine.forwardBackward(data, loss)).logprobs);
  }

  async #step({ adam_params }: ParsedRequest<"optim_step">): Promise<Result> {
    const count = this.#batches.reduce((sum, { data }) => sum + data.length, 0);
    for (const { data, loss } of this.#batches.splice(0)) {
      const divided = data.map((datum) => {
        const total = datum.weights.reduce((sum, weight) => sum + weight, 0);
        return { ...datum, weights: datum.weights.map((weight) => weight / Math.max(total, 1e-9) / count) };
      });
      await this.engine.forwardBackward(divided, loss);
    }
    const { adam } = this.#parts.profile;
    const { gradientNorm } = await this.engine.step({
      learningRate: adam_params.learning_rate,
      beta1: adam_params.beta1,
      beta2: adam_params.beta2,
      epsilon: adam_params.eps,
      weightDecay: adam_params.weight_decay,
      maxGradientNorm: adam.includes("maxGradientNorm") ? adam_params.grad_clip_norm : 0,
    });
    return { json: { metrics: { "skyrl.ai/grad_norm": gradientNorm } } };
  }

  async #save(
    path: string,
    { path: name, sampling_session_seq_id }: ParsedRequest<"save_weights_for_sampler">,
  ): Promise<Result> {
    const { checkpoints, newNumber, onSampler } = this.#parts;
    const number = newNumber();
    const place = `tinker://model/${path}/${name ?? number}-${number}`;
    const folder = await checkpoints.add(this, place);
    if (path === "save_weights" || typeof sampling_session_seq_id !== "number")
      return { json: { path: place } };
    const id = `sampling_${number}`;
    onSampler(id, folder);
    return { json: { path: null, sampling_session_id: id } };
  }

  async #load({ path: place, optimizer }: ParsedRequest<"load_weights">): Promise<Result> {
    const found = this.#parts.checkpoints.find(place);
    if (found === undefined) return { failed: `no checkpoint ${place}` };
    await this.engine.load(found.folder);
    if (!optimizer) await this.engine.resetOptimizer();
    return { json: { type: "load_weights" } };
  }
}
