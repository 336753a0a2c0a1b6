/**
 * What servers of the OpenAI protocol offer beyond it, and where they differ, as data, checked against a stand-in only
 * (docs/policies.md says what was read). Where they say it: OpenAI (platform.openai.com/docs/api-reference), vLLM (docs.vllm.ai, serving), SGLang
 * (docs.sglang.io, basic usage), llama.cpp (tools/server/README.md), Ollama (docs.ollama.com/api/openai-compatibility).
 */

export const profileNames = ["openai", "vllm", "sglang", "llamacpp", "ollama"] as const;
export type ProfileName = (typeof profileNames)[number];

export const apiNames = ["completions", "chat"] as const;
export type ApiName = (typeof apiNames)[number];

/** Keys and values that are added to a request. */
export type ExtraFields = Readonly<Record<string, boolean | number>>;

export interface Profile {
  readonly name: string;
  /** The dialects that do what is needed here. */
  readonly apis: readonly ApiName[];
  /** How a chat names the most tokens of an answer. */
  readonly chatLimit: "max_tokens" | "max_completion_tokens";
  /** The value of `top_k` that keeps all tokens; absent: the server takes no `top_k`. */
  readonly allTokens?: number;
  /** Switches off what the server or the model's own settings would else change about sampling. */
  readonly neutral: ExtraFields;
  /** Lets a stop string stay part of the text. */
  readonly keepStop: ExtraFields;
  /** Where a choice says which stop string was met; absent: nowhere. */
  readonly stopField?: "stop_reason" | "matched_stop";
  /** Whether a prompt may be token ids. */
  readonly takesIds: boolean;
  /** By dialect, what asks for ids and log-probabilities of what was sampled; absent: the ids are not told. */
  readonly sampledIds: Readonly<Partial<Record<ApiName, ExtraFields>>>;
  /** Whether log-probabilities are taken before or after the temperature divides the logits. */
  readonly logprobs: "raw" | "afterTemperature";
  /** What makes a chat go on with its last message of the assistant; absent: the server cannot. */
  readonly prefix?: ExtraFields;
  /** Whether a chat may tell the model's template, in `chat_template_kwargs`, whether to think aloud. */
  readonly templateArguments?: true;
}

export const profiles: Readonly<Record<ProfileName, Profile>> = {
  openai: {
    name: "the OpenAI protocol",
    apis: ["completions", "chat"],
    chatLimit: "max_completion_tokens",
    neutral: {},
    keepStop: {},
    takesIds: true,
    sampledIds: {},
    logprobs: "raw",
  },
  vllm: {
    name: "vLLM",
    apis: ["completions", "chat"],
    chatLimit: "max_tokens",
    allTokens: 0,
    // Else the values of the model's generation_config.json count.
    neutral: { min_p: 0, repetition_penalty: 1 },
    keepStop: { include_stop_str_in_output: true },
    stopField: "stop_reason",
    takesIds: true,
    // Servers before 0.10.2 know the second field only.
    sampledIds: {
      completions: { logprobs: 1, return_token_ids: true, return_tokens_as_token_ids: true },
      chat: { logprobs: true, top_logprobs: 1, return_token_ids: true, return_tokens_as_token_ids: true },
    },
    logprobs: "raw",
    prefix: { add_generation_prompt: false, continue_final_message: true },
    templateArguments: true,
  },
  sglang: {
    name: "SGLang",
    apis: ["completions", "chat"],
    chatLimit: "max_tokens",
    allTokens: -1,
    neutral: { min_p: 0, repetition_penalty: 1 },
    keepStop: { no_stop_trim: true },
    stopField: "matched_stop",
    takesIds: true,
    sampledIds: { completions: { logprobs: 1, return_token_ids: true } },
    logprobs: "afterTemperature",
    prefix: { continue_final_message: true },
    templateArguments: true,
  },
  llamacpp: {
    name: "llama.cpp",
    apis: ["completions", "chat"],
    chatLimit: "max_tokens",
    allTokens: 0,
    // The server's own defaults are min_p 0.05 and top_k 40.
    neutral: { min_p: 0, repeat_penalty: 1 },
    keepStop: {},
    takesIds: true,
    sampledIds: {
      completions: { logprobs: 1 },
      chat: { logprobs: true, top_logprobs: 1 },
    },
    logprobs: "raw",
    // Its default for a last message of the assistant; a server started with --no-prefill-assistant does not.
    prefix: {},
    templateArguments: true,
  },
  ollama: {
    name: "Ollama",
    // Its /v1/completions puts the model's template around every prompt, so that no text can be continued.
    apis: ["chat"],
    chatLimit: "max_tokens",
    neutral: {},
    keepStop: {},
    takesIds: false,
    sampledIds: {},
    logprobs: "raw",
    prefix: {},
  },
};
