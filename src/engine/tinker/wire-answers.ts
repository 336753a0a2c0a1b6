/**
 * What a server of the Tinker protocol answers (`wire.ts`). A call that takes time is answered at once with
 * `pendingSchema`; its own answer comes from `retrieve_future`. Unknown keys are dropped.
 */
import { z } from "zod";
import { metadata, numbers, optionalText, tokenIds } from "./wire-values.ts";

const messages = { info_message: optionalText, warning_message: optionalText, error_message: optionalText };

export const pendingSchema = z.object({
  request_id: z.string(),
  model_id: z.string().optional(),
  /** Ours alone, for `Prefer: wait`: what `retrieve_future` would answer, where it is there already. */
  answer: z.unknown().optional(),
});

export type Acknowledged = z.infer<typeof pendingSchema>;

/** Errors outside futures, and of some servers those of futures: a text, or a list of what is wrong with a body (422). */
export const errorSchema = z.object({
  detail: z.union([
    z.string(),
    z.array(z.object({ loc: z.array(z.union([z.string(), z.number()])), msg: z.string(), type: z.string() })),
  ]),
});

const tensorAnswer = z.object({
  data: numbers,
  dtype: z.string().optional(),
  shape: z.array(z.int()).nullish(),
});

const lossAnswer = z.object({
  loss_fn_output_type: z.string(),
  /** One entry for each datum, in order; `logprobs` has one value for each target. */
  loss_fn_outputs: z.array(z.object({ logprobs: tensorAnswer, elementwise_loss: tensorAnswer.optional() })),
  /** Ours: `loss:sum`. SkyRL JAX: empty. */
  metrics: z.record(z.string(), z.number()).default({}),
});

const checkpointAnswer = z.object({
  checkpoint_id: z.string(),
  checkpoint_type: z.enum(["training", "sampler"]),
  time: z.string(),
  tinker_path: z.string(),
  size_bytes: z.int().nullish(),
  public: z.boolean().optional(),
});

const trainingRunAnswer = z.object({
  training_run_id: z.string(),
  base_model: z.string(),
  model_owner: z.string(),
  is_lora: z.boolean(),
  corrupted: z.boolean().optional(),
  lora_rank: z.int().nullish(),
  last_request_time: z.string(),
  last_checkpoint: checkpointAnswer.nullish(),
  last_sampler_checkpoint: checkpointAnswer.nullish(),
  user_metadata: metadata,
});

/** Answers by path; those of futures are what `retrieve_future` gives for a call of that path. */
export const answerSchemas = {
  "client/config": z.object({ pjwt_auth_enabled: z.boolean().optional() }),
  healthz: z.object({ status: z.string() }),
  get_server_capabilities: z.object({
    supported_models: z.array(
      z.object({ model_name: z.string().nullish(), max_context_length: z.int().nullish() }),
    ),
  }),
  create_session: z.object({ session_id: z.string(), ...messages }),
  session_heartbeat: z.object({}),
  get_info: z.object({
    model_id: z.string(),
    status: optionalText,
    model_data: z.object({ base_model: optionalText, model_name: optionalText, tokenizer_id: optionalText }),
    is_lora: z.boolean().nullish(),
    lora_rank: z.int().nullish(),
  }),
  create_model: z.object({ model_id: z.string() }),
  unload_model: z.object({ model_id: z.string() }),
  forward: lossAnswer,
  forward_backward: lossAnswer,
  /** `grad_norm` of the metrics: ours `grad_norm`, SkyRL's `skyrl.ai/grad_norm`; before clipping. */
  optim_step: z.object({ metrics: z.record(z.string(), z.number()).nullish() }),
  save_weights: z.object({ path: z.string() }),
  save_weights_for_sampler: z.object({
    path: z.string().nullish(),
    sampling_session_id: z.string().nullish(),
  }),
  load_weights: z.object({}),
  weights_info: z.object({ base_model: z.string(), is_lora: z.boolean(), lora_rank: z.int().nullish() }),
  create_sampling_session: z.object({ sampling_session_id: z.string() }),
  samplers: z.object({ sampler_id: z.string(), base_model: z.string(), model_path: optionalText }),
  asample: z.object({
    sequences: z.array(
      z.object({ stop_reason: z.enum(["stop", "length"]), tokens: tokenIds, logprobs: numbers.nullish() }),
    ),
    /** Ours and hosted: one entry for each token, the first null; SkyRL: without the first. */
    prompt_logprobs: z.array(z.number().nullable()).nullish(),
    topk_prompt_logprobs: z.array(z.array(z.tuple([z.int(), z.number()])).nullable()).nullish(),
  }),
  training_runs: z.object({
    training_runs: z.array(trainingRunAnswer),
    cursor: z.object({ offset: z.int(), limit: z.int(), total_count: z.int() }),
  }),
  training_run: trainingRunAnswer,
  checkpoints: z.object({ checkpoints: z.array(checkpointAnswer) }),
  /** Ours alone: the files of the base's tokenizer as `writeTokenizer` writes them, and its hash. */
  tokenizer: z.object({
    hash: z.string(),
    /** `tokenizer.json` */
    model: z.looseObject({}),
    /** `tokenizer_config.json` */
    config: z.looseObject({}),
    /** `generation_config.json`, where there are several ends of a text. */
    generation: z.looseObject({}).nullish(),
  }),
} as const;

export type AnswerPath = keyof typeof answerSchemas;
export type WireAnswer<Path extends AnswerPath> = z.infer<(typeof answerSchemas)[Path]>;
