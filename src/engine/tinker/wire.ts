/**
 * The Tinker protocol in its JSON dialect as schemas, shared by the client (`engine: tinker`) and the server
 * (`forager serve engine`). Requests are strict, so that nothing a client asks for is ignored in silence; of answers
 * unknown keys are dropped, since servers add to them. Field names are the protocol's. What lies below `/api/v1/` only:
 * the protobuf dialect is not spoken.
 */
import { z } from "zod";
import { metadata, numbers, optionalText, tokenIds } from "./wire-values.ts";

export {
  type Acknowledged,
  type AnswerPath,
  answerSchemas,
  errorSchema,
  pendingSchema,
  type WireAnswer,
} from "./wire-answers.ts";

export const apiPrefix = "/api/v1";

const optionalCount = z.int().nonnegative().nullish();
const typed = <const Name extends string>(name: Name) => z.literal(name).optional();

export const modelInputSchema = z.strictObject({
  /** Joined in order. Images are refused. */
  chunks: z.array(z.strictObject({ type: typed("encoded_text"), tokens: tokenIds })).min(1),
});
export type ModelInput = z.infer<typeof modelInputSchema>;

export const tensorSchema = z.strictObject({
  data: numbers,
  dtype: z.enum(["int64", "float32"]).optional(),
  /** Of one dimension. */
  shape: z.array(z.int().nonnegative()).nullish(),
  sparse_crow_indices: z.null().optional(),
  sparse_col_indices: z.null().optional(),
});
export type TensorData = z.infer<typeof tensorSchema>;

export const lossNames = ["cross_entropy", "importance_sampling", "ppo", "cispo", "dro"] as const;
export type LossName = (typeof lossNames)[number];

/** One sequence, shifted: entry t of each tensor belongs to the prediction of `target_tokens[t]` from the input up to t. */
export const datumSchema = z.strictObject({
  model_input: modelInputSchema,
  loss_fn_inputs: z.strictObject({
    target_tokens: tensorSchema,
    weights: tensorSchema.optional(),
    logprobs: tensorSchema.optional(),
    advantages: tensorSchema.optional(),
  }),
});
export type WireDatum = z.infer<typeof datumSchema>;

export const forwardInputSchema = z.strictObject({
  data: z.array(datumSchema).min(1),
  loss_fn: z.enum(lossNames),
  /** Bounds of the ratio (0.8 and 1.2, not 0.2): `clip_low_threshold`, `clip_high_threshold`; of dro `beta`. */
  loss_fn_config: z
    .strictObject({
      clip_low_threshold: z.number().nonnegative().optional(),
      clip_high_threshold: z.number().positive().optional(),
      beta: z.number().positive().optional(),
    })
    .nullish(),
});
export type ForwardInput = z.infer<typeof forwardInputSchema>;

/** Defaults are the official client's. */
export const adamSchema = z.strictObject({
  learning_rate: z.number().nonnegative().default(1e-4),
  beta1: z.number().min(0).lt(1).default(0.9),
  beta2: z.number().min(0).lt(1).default(0.95),
  eps: z.number().nonnegative().default(1e-12),
  weight_decay: z.number().nonnegative().default(0),
  grad_clip_norm: z.number().nonnegative().default(0),
});

export const samplingParamsSchema = z.strictObject({
  max_tokens: z.int().min(1),
  seed: z.int().nonnegative().nullish(),
  stop: z.union([z.string(), z.array(z.string()), tokenIds]).nullish(),
  temperature: z.number().nonnegative().default(1),
  /** -1 or 0: all. */
  top_k: z.int().min(-1).default(-1),
  top_p: z.number().gt(0).max(1).default(1),
});

const loraConfigSchema = z.strictObject({
  /** 0: all weights. */
  rank: z.int().nonnegative(),
  seed: z.int().nonnegative().nullish(),
  train_unembed: z.boolean().default(true),
  train_mlp: z.boolean().default(true),
  train_attn: z.boolean().default(true),
  alpha: z.number().positive().optional(),
});

/** Names of checkpoints, as SkyRL allows them. */
const checkpointName = z
  .string()
  .max(255)
  .regex(/^[a-zA-Z0-9_-]+$/, "only letters, digits, _ and - are allowed in a checkpoint's name");

const ofModel = { model_id: z.string().min(1) };
const sequenced = { ...ofModel, seq_id: optionalCount };

/** Of every POST, by its path below `apiPrefix`. */
export const requestSchemas = {
  "client/config": z.looseObject({ sdk_version: z.string() }),
  create_session: z.strictObject({
    tags: z.array(z.string()).default([]),
    user_metadata: metadata,
    sdk_version: z.string().default("unknown"),
    project_id: optionalText,
    type: typed("create_session"),
  }),
  session_heartbeat: z.strictObject({ session_id: z.string(), type: typed("session_heartbeat") }),
  telemetry: z.looseObject({}),
  get_info: z.strictObject({ ...ofModel, type: typed("get_info") }),
  create_model: z.strictObject({
    session_id: z.string(),
    model_seq_id: z.int().nonnegative(),
    base_model: z.string(),
    user_metadata: metadata,
    lora_config: loraConfigSchema.nullish(),
    type: typed("create_model"),
  }),
  unload_model: z.strictObject({ ...ofModel, type: typed("unload_model") }),
  forward: z.strictObject({ ...sequenced, forward_input: forwardInputSchema, type: typed("forward") }),
  forward_backward: z.strictObject({
    ...sequenced,
    forward_backward_input: forwardInputSchema,
    type: typed("forward_backward"),
  }),
  optim_step: z.strictObject({ ...sequenced, adam_params: adamSchema, type: typed("optim_step") }),
  save_weights: z.strictObject({
    ...sequenced,
    path: checkpointName.nullish(),
    ttl_seconds: z.null().optional(),
    overwrite: z.boolean().default(false),
    type: typed("save_weights"),
  }),
  save_weights_for_sampler: z.strictObject({
    ...sequenced,
    /** A name to keep the weights under, or `sampling_session_seq_id` for weights that go with the newer ones. */
    path: checkpointName.nullish(),
    sampling_session_seq_id: optionalCount,
    ttl_seconds: z.null().optional(),
    type: typed("save_weights_for_sampler"),
  }),
  load_weights: z.strictObject({
    ...sequenced,
    path: z.string(),
    optimizer: z.boolean().default(false),
    weights_access_token: z.null().optional(),
    session_id: z.null().optional(),
    model_seq_id: z.null().optional(),
    base_model: z.null().optional(),
    user_metadata: z.null().optional(),
    type: typed("load_weights"),
  }),
  weights_info: z.strictObject({ tinker_path: z.string() }),
  create_sampling_session: z.strictObject({
    session_id: z.string(),
    sampling_session_seq_id: z.int().nonnegative(),
    base_model: optionalText,
    model_path: optionalText,
    type: typed("create_sampling_session"),
  }),
  asample: z.strictObject({
    /** One of `sampling_session_id` with `seq_id`, `base_model` and `model_path`. */
    sampling_session_id: optionalText,
    seq_id: optionalCount,
    base_model: optionalText,
    model_path: optionalText,
    num_samples: z.int().min(1).default(1),
    prompt: modelInputSchema,
    sampling_params: samplingParamsSchema,
    prompt_logprobs: z.boolean().nullish(),
    topk_prompt_logprobs: z.int().nonnegative().nullish(),
    type: typed("sample"),
  }),
  retrieve_future: z.strictObject({ request_id: z.string(), allow_metadata_only: z.boolean().optional() }),
} as const;

export type RequestPath = keyof typeof requestSchemas;
/** What a client writes: fields with a default may be left out. */
export type WireRequest<Path extends RequestPath> = z.input<(typeof requestSchemas)[Path]>;
/** What a server reads. */
export type ParsedRequest<Path extends RequestPath> = z.output<(typeof requestSchemas)[Path]>;
