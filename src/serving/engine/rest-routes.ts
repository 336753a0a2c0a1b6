/** The GET and DELETE routes: what the server is, and the checkpoints it has. */
import type { WireAnswer } from "../../engine/tinker/wire.ts";
import { generationConfig, tokenizerFiles } from "../../tokenizer/tokenizer-file.ts";
import { HttpError } from "../http-error.ts";
import type { Answer } from "../pipeline.ts";
import { archiveOf } from "./archive.ts";
import {
  type CheckpointKind,
  type CheckpointName,
  checkpointKinds,
  type StoredCheckpoint,
  tinkerPath,
} from "./checkpoints.ts";
import type { EngineService } from "./engine-service.ts";

export interface RestCall {
  readonly service: EngineService;
  /** Where the client found the server, such as `http://127.0.0.1:8000`. */
  readonly origin: string;
  /** Of path and query string. */
  readonly parameters: Readonly<Record<string, string>>;
}

export interface RestRoute {
  readonly method: "GET" | "DELETE";
  /** Below the prefix of the protocol. */
  readonly path: string;
  /** Answers without the API key. */
  readonly isOpen?: boolean;
  readonly work: (call: RestCall) => Promise<object | Answer>;
}

const checkpointPath = "training_runs/:run/checkpoints/:kind/:name";

export const restRoutes: readonly RestRoute[] = [
  { method: "GET", path: "healthz", isOpen: true, work: async () => ({ status: "ok" }) },
  {
    method: "GET",
    path: "get_server_capabilities",
    work: async ({ service: { parts } }) => ({
      supported_models: [{ model_name: parts.names[0], max_context_length: parts.backend.contextLength }],
    }),
  },
  { method: "GET", path: "tokenizer", work: async (call) => tokenizerAnswer(call) },
  { method: "GET", path: "samplers/:id", work: async (call) => samplerAnswer(call) },
  { method: "GET", path: "training_runs", work: async (call) => await runsAnswer(call) },
  {
    method: "GET",
    path: "training_runs/:run",
    work: async ({ service, parameters: { run = "" } }) => {
      const found = (await allRuns(service)).find(({ training_run_id }) => training_run_id === run);
      if (found !== undefined) return found;
      throw new HttpError(404, {
        expected: "a training run",
        got: run.slice(0, 60),
        advice: "see training_runs",
      });
    },
  },
  {
    method: "GET",
    path: "training_runs/:run/checkpoints",
    work: async ({ service, parameters: { run = "" } }) => ({
      checkpoints: isName(run) ? (await service.checkpoints.list(run)).map(checkpointAnswer) : [],
    }),
  },
  {
    method: "GET",
    path: "checkpoints",
    work: async ({ service, parameters }) => {
      const all = (await service.checkpoints.list()).map(checkpointAnswer).reverse();
      const { page, cursor } = paged(all, parameters);
      return { checkpoints: page, cursor };
    },
  },
  {
    method: "DELETE",
    path: checkpointPath,
    work: async (call) => {
      const checkpoint = nameOf(call);
      await call.service.checkpoints.remove(checkpoint);
      call.service.samplers.forget(checkpoint);
      return { body: null, status: 204 };
    },
  },
  { method: "GET", path: `${checkpointPath}/archive`, work: async (call) => await archiveAnswer(call) },
  // SkyRL's paths of checkpoints do not say which kind they are.
  {
    method: "GET",
    path: "training_runs/:run/checkpoints/:name/archive",
    work: async (call) => {
      const { run = "", name = "" } = call.parameters;
      const all = isName(run) ? await call.service.checkpoints.list(run) : [];
      const { kind = "" } = all.findLast((checkpoint) => checkpoint.name === name) ?? {};
      return await archiveAnswer({ ...call, parameters: { ...call.parameters, kind } });
    },
  },
  {
    method: "GET",
    path: `${checkpointPath}/archive.tar.gz`,
    work: async (call) => {
      const checkpoint = await call.service.checkpoints.find(nameOf(call));
      const stream = await archiveOf(call.service.checkpoints.folderOf(checkpoint));
      return { body: stream, contentType: "application/gzip" };
    },
  },
  {
    method: "GET",
    path: "stats",
    work: async ({ service }) => ({
      sessions: service.sessions.count,
      models: [...service.models.values()].map(({ id, queue }) => ({ model_id: id, waiting: queue.length })),
      pending: service.futures.pending,
    }),
  },
];

/** Leads to where the archive is made. */
async function archiveAnswer(call: RestCall): Promise<Answer> {
  const { model, kind, name } = await call.service.checkpoints.find(nameOf(call));
  const location = `${call.origin}/api/v1/training_runs/${model}/checkpoints/${kind}/${name}/archive.tar.gz`;
  return { body: null, status: 302, headers: { location } };
}

function tokenizerAnswer({ service }: RestCall): WireAnswer<"tokenizer"> {
  const { tokenizer } = service.parts.backend;
  if (tokenizer === undefined)
    throw new HttpError(404, {
      expected: "a server with a tokenizer",
      got: "one without",
      advice: "bring your own",
    });
  const { model, config } = tokenizerFiles(tokenizer);
  const generation = generationConfig(tokenizer) ?? null;
  return { hash: tokenizer.hash, model, config, generation } as WireAnswer<"tokenizer">;
}

function samplerAnswer({ service, parameters: { id = "" } }: RestCall): WireAnswer<"samplers"> {
  const { source } = service.samplers.find(id);
  return {
    sampler_id: id,
    base_model: service.parts.names[0],
    model_path: source.type === "checkpoint" ? source.path : null,
  };
}

async function runsAnswer({ service, parameters }: RestCall): Promise<WireAnswer<"training_runs">> {
  const { page, cursor } = paged(await allRuns(service), parameters);
  return { training_runs: page, cursor };
}

/** Models that are loaded, and those of which only checkpoints are left. */
async function allRuns(service: EngineService): Promise<WireAnswer<"training_run">[]> {
  const stored = await service.checkpoints.list();
  const ids = new Set([...service.models.keys(), ...stored.map(({ model }) => model)]);
  return [...ids].map((id) =>
    runAnswer(
      service,
      id,
      stored.filter(({ model }) => model === id),
    ),
  );
}

function runAnswer(
  service: EngineService,
  id: string,
  checkpoints: readonly StoredCheckpoint[],
): WireAnswer<"training_run"> {
  const model = service.models.get(id);
  const newest = checkpoints.at(-1);
  const shape = model?.shape ?? newest?.facts.shape;
  const last = (kind: CheckpointKind): WireAnswer<"checkpoints">["checkpoints"][number] | null => {
    const found = checkpoints.findLast((checkpoint) => checkpoint.kind === kind);
    return found ? checkpointAnswer(found) : null;
  };
  const rank = shape?.rank ?? 0;
  return {
    training_run_id: id,
    base_model: model?.baseModel ?? newest?.facts.base_model ?? service.parts.names[0],
    model_owner: "default",
    is_lora: rank > 0,
    corrupted: false,
    lora_rank: rank > 0 ? rank : null,
    last_request_time: model?.lastRequest.toISOString() ?? newest?.facts.time ?? "",
    last_checkpoint: last("weights"),
    last_sampler_checkpoint: last("sampler_weights"),
    user_metadata: model?.metadata ?? newest?.facts.user_metadata ?? null,
  };
}

function checkpointAnswer(checkpoint: StoredCheckpoint): WireAnswer<"checkpoints">["checkpoints"][number] {
  const { kind, name, facts, bytes } = checkpoint;
  return {
    checkpoint_id: `${kind}/${name}`,
    checkpoint_type: kind === "weights" ? "training" : "sampler",
    time: facts.time,
    tinker_path: tinkerPath(checkpoint),
    size_bytes: bytes,
    public: false,
  };
}

/** Throws `HttpError` (404) for names that no checkpoint can have. */
function nameOf({ parameters: { run = "", kind = "", name = "" } }: RestCall): CheckpointName {
  const known = checkpointKinds.find((candidate) => candidate === kind);
  if (known !== undefined && isName(run) && isName(name)) return { model: run, kind: known, name };
  throw new HttpError(404, {
    expected: "training_runs/MODEL/checkpoints/weights/NAME or …/sampler_weights/NAME",
    got: `${run}/${kind}/${name}`.slice(0, 120),
    advice: "see GET /api/v1/checkpoints",
  });
}

function isName(text: string): boolean {
  return /^[\w-]+$/.test(text);
}

/** A part of a list by `limit` (default 20, at most 1000) and `offset`. */
function paged<T>(
  all: readonly T[],
  { limit = "20", offset = "0" }: Readonly<Record<string, string>>,
): { page: T[]; cursor: { offset: number; limit: number; total_count: number } } {
  const [most, start] = [limit, offset].map((text) => (/^\d{1,9}$/.test(text) ? Number(text) : Number.NaN));
  if (most === undefined || start === undefined || Number.isNaN(most + start))
    throw new HttpError(400, {
      expected: "whole numbers as limit and offset",
      got: `${limit.slice(0, 20)}, ${offset.slice(0, 20)}`,
      advice: "correct them",
    });
  const count = Math.min(1000, most);
  return {
    page: all.slice(start, start + count),
    cursor: { offset: start, limit: count, total_count: all.length },
  };
}
