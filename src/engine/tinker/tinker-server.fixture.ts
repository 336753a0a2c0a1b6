/**
 * For tests: a Tinker server on 127.0.0.1 whose models are tiny embedded engines. It speaks as the profile it plays does (how a
 * question stays open, whether duplicates run once, what gradients are divided by), and anything can be said in the place of
 * an answer, before the request is carried out or after.
 */
import { onTestFinished } from "vitest";
import { type Answer, type SeenRequest, startServer, type TestServer } from "../../shared/server.fixture.ts";
import type { EmbeddedEngine } from "../embedded-engine.ts";
import { tinyEngine } from "../engine.fixture.ts";
import { type Result, sampled } from "./played-data.fixture.ts";
import { PlayedCheckpoints, PlayedModel } from "./played-model.fixture.ts";
import { type Profile, type ProfileName, profiles } from "./profiles.ts";
import { type ParsedRequest, type RequestPath, requestSchemas } from "./wire.ts";

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
  readonly models = new Map<string, PlayedModel>();
  readonly carriedOut: Record<string, number> = {};
  readonly #options: TinkerServerOptions;
  readonly #profile: Profile;
  readonly #futures = new Map<string, Promise<Result>>();
  readonly #checkpoints = new PlayedCheckpoints();
  /** Folders of the weights of sampling sessions, and what samples from them once it was asked. */
  readonly #samplers = new Map<string, string>();
  readonly #sampling = new Map<string, Promise<EmbeddedEngine>>();
  readonly #engines: EmbeddedEngine[] = [];
  #numbers = 0;

  constructor(options: TinkerServerOptions) {
    this.#options = options;
    this.#profile = profiles[options.profile ?? "forager"];
  }

  async close(): Promise<void> {
    await Promise.allSettled(this.#futures.values());
    for (const engine of this.#engines) await engine.close();
    await this.#checkpoints.remove();
  }

  async answer(path: string, { body }: SeenRequest): Promise<Answer> {
    if (path === "get_server_capabilities")
      return { json: { supported_models: [{ model_name: "tiny", max_context_length: 640 }] } };
    if (!(path in requestSchemas)) return { status: 404, json: { detail: "Not Found" } };
    const parsed = requestSchemas[path as RequestPath].safeParse(body);
    if (parsed.success) return await this.#handle(path as RequestPath, parsed.data);
    const detail = parsed.error.issues.map(({ path: loc, message: msg }) => ({
      loc,
      msg,
      type: "value_error",
    }));
    return { status: 422, json: { detail } };
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
    const model = new PlayedModel({
      engine: await this.#open(lora_config?.seed ?? 1),
      rank: lora_config?.rank ?? 0,
      profile: this.#profile,
      checkpoints: this.#checkpoints,
      newNumber: () => ++this.#numbers,
      onSampler: (sampler, folder) => this.#samplers.set(sampler, folder),
    });
    this.models.set(id, model);
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
    await this.models.get(id)?.tail;
    this.models.delete(id);
    return { json: { model_id: id } };
  }

  #weightsInfo(path: string): Answer {
    const found = this.#checkpoints.find(path);
    if (found === undefined) return { status: 404, json: { detail: `Checkpoint not found: ${path}` } };
    return { json: { base_model: "tiny", is_lora: found.rank > 0, lora_rank: found.rank } };
  }

  #train(path: RequestPath, request: { readonly model_id: string; readonly seq_id?: number }): Answer {
    const model = this.models.get(request.model_id);
    if (model === undefined) return { status: 404, json: { detail: "Model not found" } };
    const known = request.seq_id === undefined ? undefined : model.seen.get(request.seq_id);
    if (known !== undefined && this.#profile.runsDuplicatesOnce) return { json: { request_id: known } };
    this.carriedOut[path] = (this.carriedOut[path] ?? 0) + 1;
    const id = `${++this.#numbers}`;
    if (request.seq_id !== undefined) model.seen.set(request.seq_id, id);
    return this.#pending(model.run(path, request), id);
  }

  #samplingSession(path: string): Answer {
    const found = this.#checkpoints.find(path);
    if (found === undefined) return { status: 404, json: { detail: "Checkpoint not found" } };
    const id = `sampling_${++this.#numbers}`;
    this.#samplers.set(id, found.folder);
    return { json: { sampling_session_id: id } };
  }

  #sample(request: ParsedRequest<"asample">): Answer {
    const id = request.sampling_session_id ?? "";
    const folder = this.#samplers.get(id);
    if (folder === undefined) return { status: 404, json: { detail: "Sampling session not found" } };
    this.carriedOut.asample = (this.carriedOut.asample ?? 0) + 1;
    const opened = this.#sampling.get(id) ?? this.#openSampler(folder);
    this.#sampling.set(id, opened);
    return this.#pending(opened.then((engine) => sampled(engine, request, this.#profile)));
  }

  async #openSampler(folder: string): Promise<EmbeddedEngine> {
    const engine = await this.#open(1);
    await engine.load(folder);
    return engine;
  }
}
