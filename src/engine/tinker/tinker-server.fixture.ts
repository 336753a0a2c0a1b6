/**
 * For tests: a Tinker server on 127.0.0.1 whose models are tiny embedded engines. It speaks as the profile it plays does (how a
 * question stays open, whether duplicates run once, what gradients are divided by), and anything can be said in the place of
 * an answer, before the request is carried out or after.
 */
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { Datum } from "../../algorithm/datum.ts";
import type { Loss } from "../../algorithm/loss.ts";
import { type Answer, type SeenRequest, startServer, type TestServer } from "../../shared/server.fixture.ts";
import type { EmbeddedEngine } from "../embedded-engine.ts";
import { tinyEngine, tinyTokenizer } from "../engine.fixture.ts";
import { type Profile, type ProfileName, profiles } from "./profiles.ts";
import type { ParsedRequest } from "./wire.ts";
import { type RequestPath, requestSchemas } from "./wire.ts";

export interface TinkerServerOptions {
  readonly profile?: ProfileName;
  /** Said instead of carrying a request out; `count` counts the requests to its path, from 1. */
  readonly instead?: (path: string, count: number, body: unknown) => Answer | undefined;
  /** Said after a request was carried out, as when its answer is lost. */
  readonly afterwards?: (path: string, count: number, body: unknown) => Answer | undefined;
  readonly layers?: number;
}

export interface TinkerServer extends TestServer {
  /** Training calls that were carried out, by path. */
  readonly carriedOut: Readonly<Record<string, number>>;
  /** Models that are loaded. */
  modelCount(): number;
}

interface Model {
  readonly engine: EmbeddedEngine;
  readonly rank: number;
  tail: Promise<unknown>;
  /** By seq_id: the future it got. */
  readonly seen: Map<number, string>;
  /** What waits for the step, where sequences are counted until then. */
  batches: { readonly data: readonly Datum[]; readonly loss: Loss }[];
}

type Result = { readonly json: unknown } | { readonly failed: string };

export async function startTinkerServer(options: TinkerServerOptions = {}): Promise<TinkerServer> {
  const server = new FakeServer(options);
  const counts = new Map<string, number>();
  const listening = await startServer(async (request) => {
    const path = request.path.replace(/^\/api\/v1\//, "");
    const count = (counts.get(path) ?? 0) + 1;
    counts.set(path, count);
    const instead = options.instead?.(path, count, request.body);
    if (instead !== undefined) return instead;
    const answer = await server.answer(path, request);
    return options.afterwards?.(path, count, request.body) ?? answer;
  });
  onTestFinished(() => server.close());
  return { ...listening, carriedOut: server.carriedOut, modelCount: () => server.models.size };
}

class FakeServer {
  readonly models = new Map<string, Model>();
  readonly carriedOut: Record<string, number> = {};
  readonly #options: TinkerServerOptions;
  readonly #profile: Profile;
  readonly #futures = new Map<string, Promise<Result>>();
  readonly #checkpoints = new Map<string, { readonly folder: string; readonly rank: number }>();
  readonly #samplers = new Map<string, string>();
  readonly #sampling = new Map<string, Promise<EmbeddedEngine>>();
  readonly #engines: EmbeddedEngine[] = [];
  #numbers = 0;
  #folder: Promise<string> | undefined;

  constructor(options: TinkerServerOptions) {
    this.#options = options;
    this.#profile = profiles[options.profile ?? "forager"];
  }

  async close(): Promise<void> {
    await Promise.allSettled(this.#futures.values());
    for (const engine of this.#engines) await engine.close();
    if (this.#folder) await rm(await this.#folder, { recursive: true, force: true });
  }

  async answer(path: string, { body }: SeenRequest): Promise<Answer> {
    if (path === "get_server_capabilities")
      return { json: { supported_models: [{ model_name: "tiny", max_context_length: 640 }] } };
    if (!(path in requestSchemas)) return { status: 404, json: { detail: "Not Found" } };
    const parsed = requestSchemas[path as RequestPath].safeParse(body);
    if (!parsed.success)
      return {
        status: 422,
        json: {
          detail: parsed.error.issues.map(({ path: loc, message: msg }) => ({
            loc,
            msg,
            type: "value_error",
          })),
        },
      };
    return await this.#handle(path as RequestPath, parsed.data);
  }

  async #handle(path: RequestPath, data: unknown): Promise<Answer> {
    switch (path) {
      case "create_session":
        return { json: { session_id: `session_${++this.#numbers}` } };
      case "session_heartbeat":
        return { json: {} };
      case "create_model":
        return this.#pending(this.#createModel(data as ParsedRequest<"create_model">));
      case "retrieve_future":
        return await this.#retrieve(data as ParsedRequest<"retrieve_future">);
      case "unload_model":
        return this.#pending(this.#unload((data as ParsedRequest<"unload_model">).model_id));
      case "weights_info":
        return this.#weightsInfo((data as ParsedRequest<"weights_info">).tinker_path);
      case "create_sampling_session":
        return this.#samplingSession((data as ParsedRequest<"create_sampling_session">).model_path ?? "");
      case "asample":
        return this.#sample(data as ParsedRequest<"asample">);
      default:
        return this.#train(path, data as { readonly model_id: string; readonly seq_id?: number });
    }
  }

  #pending(work: Promise<Result>, id = `${++this.#numbers}`): Answer {
    this.#futures.set(
      id,
      work.catch((error: unknown) => ({ failed: String(error) })),
    );
    return { json: { request_id: id } };
  }

  async #retrieve({ request_id }: ParsedRequest<"retrieve_future">): Promise<Answer> {
    const future = this.#futures.get(request_id);
    if (future === undefined) return { status: 404, json: { detail: "Future not found" } };
    const result = await future;
    if (this.#profile.popsResults) this.#futures.delete(request_id);
    if ("json" in result) return { json: result.json };
    if (this.#profile.name.startsWith("skyrl")) return { status: 400, json: { detail: result.failed } };
    return { json: { error: result.failed, category: "user" } };
  }

  async #createModel({ lora_config }: ParsedRequest<"create_model">): Promise<Result> {
    const id = `model_${++this.#numbers}`;
    const seed = lora_config?.seed ?? 1;
    this.models.set(id, {
      engine: await this.#open(seed),
      rank: lora_config?.rank ?? 0,
      tail: Promise.resolve(),
      seen: new Map(),
      batches: [],
    });
    return { json: { model_id: id } };
  }

  async #open(seed: number): Promise<EmbeddedEngine> {
    const { layers } = this.#options;
    const engine = await tinyEngine({
      seed,
      ...(layers !== undefined && { model: { layers } }),
      options: { tokenBudget: 64 },
    });
    this.#engines.push(engine);
    return engine;
  }

  async #unload(id: string): Promise<Result> {
    await this.models.get(id)?.tail.catch(() => undefined);
    this.models.delete(id);
    return { json: { model_id: id } };
  }

  #weightsInfo(path: string): Answer {
    const found = this.#checkpoints.get(path);
    if (found === undefined) return { status: 404, json: { detail: `Checkpoint not found: ${path}` } };
    return { json: { base_model: "tiny", is_lora: found.rank > 0, lora_rank: found.rank } };
  }

  #samplingSession(path: string): Answer {
    const found = this.#checkpoints.get(path);
    if (found === undefined) return { status: 404, json: { detail: "Checkpoint not found" } };
    const id = `sampling_${++this.#numbers}`;
    this.#samplers.set(id, found.folder);
    return { json: { sampling_session_id: id } };
  }

  #train(path: RequestPath, request: { readonly model_id: string; readonly seq_id?: number }): Answer {
    const model = this.models.get(request.model_id);
    if (model === undefined) return { status: 404, json: { detail: "Model not found" } };
    const known = request.seq_id === undefined ? undefined : model.seen.get(request.seq_id);
    if (known !== undefined && this.#profile.runsDuplicatesOnce) return { json: { request_id: known } };
    this.carriedOut[path] = (this.carriedOut[path] ?? 0) + 1;
    const work = model.tail.then(() => this.#carryOut(path, model, request));
    model.tail = work.catch(() => undefined);
    const id = `${++this.#numbers}`;
    if (request.seq_id !== undefined) model.seen.set(request.seq_id, id);
    return this.#pending(work, id);
  }

  async #carryOut(path: RequestPath, model: Model, request: unknown): Promise<Result> {
    switch (path) {
      case "forward": {
        const { forward_input } = request as ParsedRequest<"forward">;
        return lossAnswer(await model.engine.logprobs(dataOf(forward_input)));
      }
      case "forward_backward":
        return await this.#forwardBackward(model, request as ParsedRequest<"forward_backward">);
      case "optim_step":
        return await this.#step(model, request as ParsedRequest<"optim_step">);
      case "save_weights":
      case "save_weights_for_sampler":
        return await this.#save(path, model, request as ParsedRequest<"save_weights_for_sampler">);
      case "load_weights": {
        const { path: place, optimizer } = request as ParsedRequest<"load_weights">;
        const found = this.#checkpoints.get(place);
        if (found === undefined) return { failed: `no checkpoint ${place}` };
        await model.engine.load(found.folder);
        if (!optimizer) await model.engine.resetOptimizer();
        return { json: { type: "load_weights" } };
      }
      default:
        return { failed: `${path} is not played` };
    }
  }

  async #forwardBackward(
    model: Model,
    { forward_backward_input: input }: ParsedRequest<"forward_backward">,
  ): Promise<Result> {
    const data = dataOf(input);
    const loss = lossOf(input);
    if (this.#profile.reduction === "sequenceMean") {
      model.batches.push({ data, loss });
      return lossAnswer(await model.engine.logprobs(data));
    }
    return lossAnswer((await model.engine.forwardBackward(data, loss)).logprobs);
  }

  async #step(model: Model, { adam_params }: ParsedRequest<"optim_step">): Promise<Result> {
    const count = model.batches.reduce((sum, { data }) => sum + data.length, 0);
    for (const { data, loss } of model.batches.splice(0)) {
      const divided = data.map((datum) => {
        const total = datum.weights.reduce((sum, weight) => sum + weight, 0);
        return { ...datum, weights: datum.weights.map((weight) => weight / Math.max(total, 1e-9) / count) };
      });
      await model.engine.forwardBackward(divided, loss);
    }
    const { gradientNorm } = await model.engine.step({
      learningRate: adam_params.learning_rate,
      beta1: adam_params.beta1,
      beta2: adam_params.beta2,
      epsilon: adam_params.eps,
      weightDecay: adam_params.weight_decay,
      maxGradientNorm: this.#profile.adam.includes("maxGradientNorm") ? adam_params.grad_clip_norm : 0,
    });
    return { json: { metrics: { "skyrl.ai/grad_norm": gradientNorm } } };
  }

  async #save(
    path: string,
    model: Model,
    { path: name, sampling_session_seq_id }: ParsedRequest<"save_weights_for_sampler">,
  ): Promise<Result> {
    this.#folder ??= mkdtemp(join(tmpdir(), "forager-tinker-"));
    const folder = join(await this.#folder, `${++this.#numbers}`);
    await mkdir(folder);
    await model.engine.save(folder);
    const place = `tinker://model/${path}/${name ?? this.#numbers}-${this.#numbers}`;
    this.#checkpoints.set(place, { folder, rank: model.rank });
    if (path === "save_weights" || typeof sampling_session_seq_id !== "number")
      return { json: { path: place } };
    const id = `sampling_${this.#numbers}`;
    this.#samplers.set(id, folder);
    return { json: { path: null, sampling_session_id: id } };
  }

  #sample(request: ParsedRequest<"asample">): Answer {
    const id = request.sampling_session_id ?? "";
    const folder = this.#samplers.get(id);
    if (folder === undefined) return { status: 404, json: { detail: "Sampling session not found" } };
    this.carriedOut.asample = (this.carriedOut.asample ?? 0) + 1;
    const opened = this.#sampling.get(id) ?? this.#openSampler(folder);
    this.#sampling.set(id, opened);
    return this.#pending(opened.then((engine) => this.#complete(engine, request)));
  }

  async #openSampler(folder: string): Promise<EmbeddedEngine> {
    const engine = await this.#open(1);
    await engine.load(folder);
    return engine;
  }

  async #complete(
    engine: EmbeddedEngine,
    { prompt, sampling_params: params, prompt_logprobs }: ParsedRequest<"asample">,
  ): Promise<Result> {
    const tokens = prompt.chunks.flatMap((chunk) => [...chunk.tokens]);
    const stop = Array.isArray(params.stop)
      ? params.stop.filter((one): one is string => typeof one === "string")
      : [];
    const [completion] = await engine.policy().complete([{ text: "", tokens, seed: params.seed ?? 0 }], {
      maxTokens: params.max_tokens,
      temperature: params.temperature,
      topP: params.top_p,
      topK: Math.max(0, params.top_k),
      // The ends of the text stop an embedded model by themselves.
      stop: stop.filter((text) => text !== tinyTokenizer.decode([tinyTokenizer.endOfTextId])),
    });
    const [row] = prompt_logprobs ? await engine.logprobs([textDatum(tokens)]) : [];
    const told = row && (this.#profile.promptLogprobs === "leadingNull" ? [null, ...row] : [...row]);
    const stop_reason = completion?.finishReason === "length" ? "length" : "stop";
    return {
      json: {
        sequences: [{ stop_reason, tokens: completion?.tokens, logprobs: completion?.logprobs }],
        prompt_logprobs: told ?? null,
      },
    };
  }
}

function textDatum(tokens: readonly number[]): Datum {
  return {
    inputs: Int32Array.from(tokens.slice(0, -1)),
    targets: Int32Array.from(tokens.slice(1)),
    weights: new Float32Array(tokens.length - 1).fill(1),
  };
}

type Input = ParsedRequest<"forward">["forward_input"];

function dataOf({ data }: Input): Datum[] {
  return data.map(({ model_input, loss_fn_inputs: { target_tokens, weights, logprobs, advantages } }) => ({
    inputs: Int32Array.from(model_input.chunks.flatMap(({ tokens }) => [...tokens])),
    targets: Int32Array.from(target_tokens.data),
    weights: weights ? Float32Array.from(weights.data) : new Float32Array(target_tokens.data.length).fill(1),
    ...(logprobs && { logprobs: Float32Array.from(logprobs.data) }),
    ...(advantages && { advantages: Float32Array.from(advantages.data) }),
  }));
}

function lossOf({ loss_fn, loss_fn_config }: Input): Loss {
  if (loss_fn === "cross_entropy") return { type: "crossEntropy" };
  if (loss_fn !== "ppo") return { type: "importanceSampling" };
  const { clip_low_threshold: low = 0.8, clip_high_threshold: high = 1.2 } = loss_fn_config ?? {};
  return { type: "ppo", clipLow: 1 - low, clipHigh: high - 1 };
}

function lossAnswer(rows: readonly Float32Array[]): Result {
  return {
    json: {
      loss_fn_output_type: "scalar",
      loss_fn_outputs: rows.map((row) => ({
        logprobs: { data: [...row], dtype: "float32", shape: [row.length] },
      })),
      metrics: {},
    },
  };
}
