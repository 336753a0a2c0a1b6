/** Calls about sampling. */
import type { ParsedRequest, WireAnswer } from "../../../engine/tinker/wire.ts";
import { EngineError } from "../../../errors.ts";
import { HttpError } from "../../http-error.ts";
import type { SampleOptions, Sampler } from "../backend.ts";
import { parseTinkerPath, tinkerPath } from "../checkpoints.ts";
import type { EngineService } from "../engine-service.ts";
import { invalidBody } from "../invalid-body.ts";
import { readPrompt } from "../loss-call.ts";
import type { SamplerSource } from "../samplers.ts";
import { type Calls, pending } from "./call.ts";

export const samplingCalls = {
  create_sampling_session: async (body, { service, arrival }) => {
    const { session_id, sampling_session_seq_id, base_model, model_path } = body;
    service.sessions.hear(session_id);
    const source = await sourceOf(service, { base_model, model_path });
    const key = `sampling session ${sampling_session_seq_id} of ${session_id}`;
    const sampling_session_id = service.once(
      arrival,
      () => {
        const id = `sampling_${service.parts.newId()}`;
        service.samplers.add({ id, session: session_id, source });
        return id;
      },
      key,
    );
    return { type: "create_sampling_session", sampling_session_id };
  },

  asample: async (body, { service, arrival }) => {
    const { sampling_session_id, seq_id, num_samples } = body;
    // Some clients give all turns of an episode one number, so that the body is a part of the name.
    const key =
      sampling_session_id && `asample ${seq_id} of ${sampling_session_id}: ${arrival.hash.slice(0, 16)}`;
    const keys = service.keysOf(arrival, key || undefined);
    const known = await service.repeated(arrival, keys);
    if (known !== undefined) return known;
    const source = await addressed(service, body);
    const prompt = readPrompt(body.prompt, service.modelLimits);
    if (num_samples > service.parts.limits.samples)
      throw invalidBody(["num_samples"], `at most ${service.parts.limits.samples} samples in one call`);
    const options = sampleOptions(body, service);
    const work = (): Promise<object> =>
      service.samplers.use(source, async (sampler) => {
        const sequences = await sampler.sample(prompt, options, service.impatience);
        return await sampleAnswer(sampler, { body, prompt, sequences });
      });
    return await service.promise({ arrival, keys, acknowledgement: pending }, ({ run }) => void run(work));
  },
} as const satisfies Partial<Calls>;

type SampleBody = ParsedRequest<"asample">;

/** What the request names to sample from. Throws `HttpError` (400, 404, 410, 422, 425). */
async function addressed(service: EngineService, body: SampleBody): Promise<SamplerSource> {
  const { sampling_session_id, seq_id, base_model, model_path } = body;
  if (!sampling_session_id) return await sourceOf(service, { base_model, model_path });
  if (base_model || model_path)
    throw invalidBody(["sampling_session_id"], "sampling_session_id goes without base_model and model_path");
  if (seq_id === undefined || seq_id === null)
    throw invalidBody(["seq_id"], "seq_id must be given with sampling_session_id");
  const { session, source } = service.samplers.find(sampling_session_id);
  service.sessions.touch(session);
  return source;
}

/** The base or a checkpoint, whichever is named. Throws `HttpError` (400, 404, 422, 425). */
async function sourceOf(
  service: EngineService,
  { base_model, model_path }: Pick<SampleBody, "base_model" | "model_path">,
): Promise<SamplerSource> {
  if (Boolean(base_model) === Boolean(model_path))
    throw invalidBody([], "exactly one of base_model and model_path must be given");
  if (base_model) {
    service.requireBase(base_model);
    return { type: "base" };
  }
  const checkpoint = await service.checkpoints.find(parseTinkerPath(model_path as string));
  return { type: "checkpoint", path: tinkerPath(checkpoint) };
}

function sampleOptions(
  { num_samples, sampling_params: { stop, top_k, ...params } }: SampleBody,
  { parts, modelLimits }: EngineService,
): SampleOptions {
  const first = params.seed ?? parts.newSeed();
  const stops = typeof stop === "string" ? [stop] : (stop ?? []);
  const stopTexts = stops.filter((entry) => typeof entry === "string");
  const stopTokens = stops.filter((entry) => typeof entry === "number");
  if (stopTexts.includes("")) throw invalidBody(["sampling_params", "stop"], "a stop text must not be empty");
  const wrong = stopTokens.find((token) => token >= modelLimits.vocabularySize);
  if (wrong !== undefined)
    throw new HttpError(400, {
      expected: `token ids below ${modelLimits.vocabularySize} in stop`,
      got: String(wrong),
      advice: "use the tokenizer of this model",
    });
  return {
    seeds: Array.from({ length: num_samples }, (_, index) => first + index),
    maxTokens: params.max_tokens,
    temperature: params.temperature,
    topP: params.top_p,
    topK: Math.max(0, top_k),
    stopTexts,
    stopTokens,
  };
}

async function sampleAnswer(
  sampler: Sampler,
  {
    body,
    prompt,
    sequences,
  }: {
    readonly body: SampleBody;
    readonly prompt: readonly number[];
    readonly sequences: Awaited<ReturnType<Sampler["sample"]>>;
  },
): Promise<WireAnswer<"asample">> {
  for (const { logprobs } of sequences)
    if (!logprobs.every(Number.isFinite))
      throw new EngineError(
        "the weights give log-probabilities that are no finite numbers; use earlier ones",
      );
  const { prompt_logprobs, topk_prompt_logprobs } = body;
  const k = topk_prompt_logprobs ?? 0;
  return {
    sequences: sequences.map(({ tokens, logprobs, reason }) => ({ stop_reason: reason, tokens, logprobs })),
    prompt_logprobs: prompt_logprobs ? [null, ...(await sampler.promptLogprobs(prompt))] : null,
    topk_prompt_logprobs:
      k === 0
        ? null
        : [
            null,
            ...(await sampler.topPromptLogprobs(prompt, k)).map((place) =>
              place.map(([token, logprob]): [number, number] => [token, logprob]),
            ),
          ],
  };
}
