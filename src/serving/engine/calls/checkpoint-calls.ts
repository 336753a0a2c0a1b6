/** Calls that save and load weights, and that say what there is. */
import { HttpError } from "../../http-error.ts";
import { type CheckpointFacts, type CheckpointName, parseTinkerPath, tinkerPath } from "../checkpoints.ts";
import type { EngineService, HostedModel } from "../engine-service.ts";
import { invalidBody } from "../invalid-body.ts";
import type { CallContext, Calls } from "./call.ts";
import { inTurn, type Numbered, type Work } from "./training-calls.ts";

export const checkpointCalls = {
  get_info: async ({ model_id }, { service }) => {
    const { id, baseModel, shape } = service.model(model_id);
    const { names, tokenizerId } = service.parts;
    return {
      type: "get_info",
      model_id: id,
      status: "created",
      model_data: {
        base_model: baseModel,
        model_name: baseModel,
        lora_config: { rank: shape.rank, seed: shape.seed },
        tokenizer_id: tokenizerId ?? names[0],
      },
      is_lora: shape.rank > 0,
      lora_rank: shape.rank > 0 ? shape.rank : null,
      model_name: baseModel,
    };
  },

  save_weights: async (body, context) => {
    const { service } = context;
    const { path, overwrite } = body;
    const named = { kind: "weights", name: path ?? `state-${service.parts.newId()}` } as const;
    return await saved(body, context, { named, overwrite, type: "save_weights" });
  },

  save_weights_for_sampler: async (body, context) => {
    const { path, sampling_session_seq_id } = body;
    if (path && sampling_session_seq_id !== undefined && sampling_session_seq_id !== null)
      throw invalidBody(["path"], "either path or sampling_session_seq_id may be given, not both");
    const type = "save_weights_for_sampler";
    if (path) return await saved(body, context, { named: { kind: "sampler_weights", name: path }, type });
    return await inTurn(body, context, () => ({
      work: async (trained, model) => {
        const { service } = context;
        const id = `sampling_${service.parts.newId()}`;
        const sampler = await trained.snapshot();
        const source = { type: "snapshot", model: model.id, sampler } as const;
        service.samplers.add({ id, session: model.session, source });
        return { path: null, sampling_session_id: id, type };
      },
    }));
  },

  load_weights: async (body, context) => {
    const { path, optimizer } = body;
    const { service } = context;
    return await inTurn(body, context, async (_limits, model) => {
      const name = parseTinkerPath(path);
      if (name.kind !== "weights")
        throw new HttpError(400, {
          expected: "a path such as tinker://MODEL/weights/NAME, which save_weights gives",
          got: path.slice(0, 200),
          advice: "weights for sampling have no state to train on from",
        });
      requireSameShape(model, (await service.checkpoints.find(name)).facts);
      const work: Work = async (trained) => {
        await trained.load(service.checkpoints.folderOf(name), { optimizer });
        return { type: "load_weights" };
      };
      return { work };
    });
  },

  weights_info: async ({ tinker_path }, { service }) => {
    const { facts } = await service.checkpoints.find(parseTinkerPath(tinker_path));
    const { rank, trainsAttention, trainsFeedForward } = facts.shape;
    return {
      base_model: facts.base_model,
      is_lora: rank > 0,
      lora_rank: rank > 0 ? rank : null,
      train_unembed: rank === 0,
      train_mlp: trainsFeedForward,
      train_attn: trainsAttention,
    };
  },
} as const satisfies Partial<Calls>;

interface Saving {
  readonly named: Pick<CheckpointName, "kind" | "name">;
  readonly type: "save_weights" | "save_weights_for_sampler";
  readonly overwrite?: boolean;
}

/** Writes a checkpoint in the model's turn. */
async function saved(body: Numbered, context: CallContext, saving: Saving): Promise<object> {
  const { service } = context;
  const checkpoint = { model: body.model_id, ...saving.named };
  const path = tinkerPath(checkpoint);
  return await inTurn(body, context, async () => {
    const release = await service.checkpoints.reserve(checkpoint, saving.overwrite ?? false);
    const work: Work = async (trained, model) => {
      try {
        await service.checkpoints.write(checkpoint, factsOf(service, model), async (folder) => {
          if (saving.type === "save_weights") return await trained.save(folder);
          const sampler = await trained.snapshot();
          await sampler.save(folder);
          await sampler.close();
        });
      } finally {
        release();
      }
      service.samplers.forget(checkpoint);
      const { type } = saving;
      return type === "save_weights" ? { path, type } : { path, sampling_session_id: null, type };
    };
    return { work, release };
  });
}

function factsOf({ parts }: EngineService, { baseModel, shape, metadata }: HostedModel): CheckpointFacts {
  return {
    base_model: baseModel,
    shape,
    time: parts.date().toISOString(),
    ...(metadata && { user_metadata: metadata }),
  };
}

function requireSameShape({ shape }: HostedModel, { shape: saved }: CheckpointFacts): void {
  const text = ({ rank, alpha, trainsAttention, trainsFeedForward }: HostedModel["shape"]): string =>
    rank === 0
      ? "all weights"
      : `rank ${rank}, alpha ${alpha}, train_attn ${trainsAttention}, train_mlp ${trainsFeedForward}`;
  if (text(shape) === text(saved)) return;
  throw new HttpError(400, {
    expected: `a checkpoint of a model with ${text(shape)}`,
    got: `one with ${text(saved)}`,
    advice: "create the model with the options that weights_info names",
  });
}
