/** Calls that train. Each is answered at once with the number of a future, and done when its model's turn comes. */
import type { ParsedRequest } from "../../../engine/tinker/wire.ts";
import { EngineError } from "../../../errors.ts";
import { HttpError } from "../../http-error.ts";
import type { ModelShape, TrainedModel } from "../backend.ts";
import type { EngineService, HostedModel } from "../engine-service.ts";
import { readLossCall, writeLossAnswer } from "../loss-call.ts";
import { ModelQueue } from "../model-queue.ts";
import { type CallContext, type Calls, pending } from "./call.ts";

/** Strength of adapters where a client names none: SkyRL's. */
const defaultAlpha = 32;

export const trainingCalls = {
  create_model: async (body, { service, arrival }) => {
    const { sessions, parts } = service;
    const { session_id, model_seq_id, base_model, lora_config } = body;
    const keys = service.keysOf(arrival, `model ${model_seq_id} of ${session_id}`);
    const id = `model_${parts.newId()}`;
    const known = await service.repeated(arrival, keys);
    if (known !== undefined) return known;
    sessions.hear(session_id);
    service.requireBase(base_model);
    const shape = shapeOf(lora_config, parts.newSeed);
    const acknowledgement = {
      model_id: id,
      base_model,
      lora_config: { rank: shape.rank, seed: lora_config?.seed ?? null },
      status: "created",
    };
    return await service.promise({ arrival, keys, acknowledgement }, ({ run, drop }) => {
      const model = addModel(service, { id, session: session_id, baseModel: base_model, shape, body });
      const create = async (): Promise<object> => {
        try {
          requireRoom(service);
          model.trained = await parts.backend.create(shape);
        } catch (error) {
          service.models.delete(id);
          throw error;
        }
        return createdAnswer(model);
      };
      model.queue.add({ number: undefined, run: () => run(create), drop: () => drop(gone(model)) });
    });
  },

  unload_model: async ({ model_id }, { service, arrival }) => {
    const keys = service.keysOf(arrival);
    const known = await service.repeated(arrival, keys);
    if (known !== undefined) return known;
    const model = service.model(model_id);
    const unload = async (): Promise<object> => {
      await service.unload(model);
      return { model_id, status: "unloaded", type: "unload_model" };
    };
    return await service.promise({ arrival, keys, acknowledgement: { model_id } }, ({ run }) => {
      // Not in the queue, which it closes: after all that was sent before.
      void model.queue.drained().then(() => run(unload));
    });
  },

  forward: async ({ model_id, seq_id, forward_input }, context) =>
    await inTurn({ model_id, seq_id }, context, (limits) => {
      const call = readLossCall(forward_input, limits);
      return { work: async (trained) => writeLossAnswer(call, await trained.logprobs(call.batch)) };
    }),

  forward_backward: async ({ model_id, seq_id, forward_backward_input }, context) =>
    await inTurn({ model_id, seq_id }, context, (limits) => {
      const call = readLossCall(forward_backward_input, limits);
      const work: Work = async (trained) => {
        const { logprobs } = await trained.forwardBackward(call.batch, call.loss);
        return writeLossAnswer(call, logprobs);
      };
      return { work };
    }),

  optim_step: async ({ model_id, seq_id, adam_params }, context) =>
    await inTurn({ model_id, seq_id }, context, () => ({
      work: async (trained) => {
        const { learning_rate: learningRate, beta1, beta2, eps, weight_decay, grad_clip_norm } = adam_params;
        const { gradientNorm } = await trained.step({
          learningRate,
          beta1,
          beta2,
          epsilon: eps,
          weightDecay: weight_decay,
          maxGradientNorm: grad_clip_norm,
        });
        return { metrics: { grad_norm: gradientNorm, learning_rate: learningRate } };
      },
    })),
} as const satisfies Partial<Calls>;

/** Which model, and the number of the request among those of the model. */
export interface Numbered {
  readonly model_id: string;
  readonly seq_id?: number | null | undefined;
}

export type Work = (trained: TrainedModel, model: HostedModel) => Promise<object>;

/** A request that was checked. */
export interface Prepared {
  readonly work: Work;
  /** Called where it will not be done after all. */
  readonly release?: () => void;
}

/**
 * Promises what a model does when its turn comes. `prepare` checks the request at once. A request that is refused is passed
 * over by those that come after it.
 */
export async function inTurn(
  { model_id, seq_id }: Numbered,
  { service, arrival }: CallContext,
  prepare: (limits: EngineService["modelLimits"], model: HostedModel) => Prepared | Promise<Prepared>,
): Promise<object> {
  const number = seq_id ?? undefined;
  const keys = service.keysOf(arrival, number === undefined ? undefined : `seq_id ${number} of ${model_id}`);
  const known = await service.repeated(arrival, keys);
  if (known !== undefined) return known;
  const model = service.model(model_id);
  if (number !== undefined && model.queue.hasBegun(number)) throw forgotten(model_id, number);
  let release: Prepared["release"];
  try {
    const prepared = await prepare(service.modelLimits, model);
    ({ release } = prepared);
    return await service.promise({ arrival, keys, acknowledgement: pending }, ({ run, drop }) =>
      model.queue.add({
        number,
        run: () => run(() => workOf(model, prepared)),
        drop: () => {
          release?.();
          drop(gone(model));
        },
      }),
    );
  } catch (error) {
    release?.();
    if (number !== undefined && error instanceof HttpError && isFinal(error)) model.queue.passed(number);
    throw error;
  }
}

/** For a request that ran and whose outcome the journal has given up: run again, it could train twice. */
function forgotten(model: string, number: number): HttpError {
  return new HttpError(410, {
    expected: `seq_id of ${model} that was not used before`,
    got: `${number}, which was carried out; its outcome is not kept any more`,
    advice: "go on from a checkpoint",
  });
}

/** Whether the same request would be refused again, so that nobody will send it. */
function isFinal({ status }: HttpError): boolean {
  return status === 400 || status === 404 || status === 422;
}

async function workOf(model: HostedModel, { work, release }: Prepared): Promise<object> {
  const { trained, id } = model;
  if (trained !== undefined) return await work(trained, model);
  release?.();
  throw new EngineError(
    `${id} could not be created, so that it can do nothing; see the answer of create_model`,
  );
}

function addModel(
  service: EngineService,
  made: Pick<HostedModel, "id" | "session" | "baseModel" | "shape"> & {
    readonly body: ParsedRequest<"create_model">;
  },
): HostedModel {
  const { body, ...facts } = made;
  const model: HostedModel = {
    ...facts,
    metadata: body.user_metadata,
    queue: new ModelQueue(),
    trained: undefined,
    lastRequest: service.parts.date(),
  };
  service.models.set(model.id, model);
  return model;
}

/** Throws `EngineError` beyond the server's limit of models. */
function requireRoom({ models, parts }: EngineService): void {
  const loaded = [...models.values()].filter(({ trained }) => trained !== undefined).length;
  if (loaded >= parts.limits.models)
    throw new EngineError(
      `this server has ${loaded} models, as many as it may; unload one, or start it with a larger --max-models`,
    );
}

function shapeOf(config: ParsedRequest<"create_model">["lora_config"], newSeed: () => number): ModelShape {
  if (!config)
    throw new HttpError(400, {
      expected: "lora_config with the rank of the adapters, 0 for all weights",
      got: "none",
      advice: 'send {"lora_config": {"rank": 8}}',
    });
  const { rank, alpha = defaultAlpha, train_attn, train_mlp } = config;
  if (rank > 0 && !train_attn && !train_mlp)
    throw new HttpError(400, {
      expected: "train_attn or train_mlp; the output layer has no adapters here",
      got: "neither",
      advice: "set one of them",
    });
  const seed = config.seed ?? newSeed();
  return { rank, alpha, trainsAttention: train_attn, trainsFeedForward: train_mlp, seed };
}

/** What was made, in SkyRL's words; `train_unembed` is false, whatever was asked for. */
function createdAnswer({ id, baseModel, shape }: HostedModel): object {
  const { rank, alpha, seed, trainsAttention, trainsFeedForward } = shape;
  const lora_config = {
    rank,
    alpha,
    seed,
    train_attn: trainsAttention,
    train_mlp: trainsFeedForward,
    train_unembed: rank === 0,
  };
  return { model_id: id, base_model: baseModel, lora_config, type: "create_model" };
}

function gone({ id }: HostedModel): string {
  return `${id} was unloaded, or its session ended, before this was done; create a model and load a checkpoint`;
}
