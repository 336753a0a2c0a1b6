/** `forager serve engine`: a model to train and sample over the Tinker protocol (docs/engine-server.md). */
import { randomBytes, randomInt } from "node:crypto";
import { availableParallelism } from "node:os";
import { basename, join, resolve } from "node:path";
import { UsageError } from "../../errors.ts";
import { RunFolder } from "../../reporting/run-folder.ts";
import { lockRun, type RunLock } from "../../reporting/run-lock.ts";
import type { EngineLimits } from "../../serving/engine/engine-limits.ts";
import type { EngineService } from "../../serving/engine/engine-service.ts";
import { byteSize } from "../../shared/byte-size.ts";
import { Closers } from "../../shared/closers.ts";
import { exists, makeFolder } from "../../shared/files.ts";
import { machineMemory } from "../../training/engine-options.ts";
import { hubSettings } from "../../training/hub-settings.ts";
import type { CommandIo, OptionValues } from "../command.ts";
import { readWeights, weightsOption } from "../weights-option.ts";
import {
  failureText,
  keyFrom,
  type ServeHost,
  type ServerFlags,
  serveUntilStopped,
} from "./serve-until-stopped.ts";

export const engineFlags = {
  model: {
    type: "text",
    value: "MODEL",
    doc: "Base that is trained: a folder, GGUF file, run, hf:owner/name or short name.",
  },
  state: {
    type: "text",
    value: "FOLDER",
    doc: "Where checkpoints and what was promised to clients are kept; default runs/engine-PORT.",
  },
  threads: { type: "integer", value: "N", least: 1, doc: "Threads inside one operator; default: all cores." },
  slots: {
    type: "integer",
    value: "N",
    least: 1,
    doc: "Sequences decoded at once with the same weights; default 64.",
  },
  "cache-memory": {
    type: "text",
    value: "SIZE",
    doc: "Keys and values for each of the weights that are sampled at one time; default 2GB.",
  },
  weights: weightsOption,
  "memory-budget": {
    type: "text",
    value: "SIZE",
    doc: "Memory that training may take; default three quarters of the machine's.",
  },
  "max-models": { type: "integer", value: "N", least: 1, doc: "Models at one time; default 16." },
  "max-pending": {
    type: "integer",
    value: "N",
    least: 1,
    doc: "Requests that have not ended, before 429; default 20000.",
  },
  snapshots: {
    type: "integer",
    value: "N",
    least: 1,
    doc: "Newest nameless weights of a model that can be sampled from; default 8.",
  },
  samplers: {
    type: "integer",
    value: "N",
    least: 1,
    doc: "Weights that are ready to sample from at one time; default 3.",
  },
  "session-timeout": {
    type: "integer",
    value: "SECONDS",
    doc: "Silence after which a session ends and its models are unloaded; 0 = never; default 300.",
  },
  hold: {
    type: "integer",
    value: "SECONDS",
    least: 1,
    doc: "How long a poll waits for an outcome; default 30.",
  },
} as const;
type Options = OptionValues<typeof engineFlags> & ServerFlags;

interface Around {
  readonly host: ServeHost;
  readonly io: CommandIo;
}

/** Serves a base until it is told to stop. Throws what opening it throws, and `FileError` for a state that another server has. */
export async function serveEngine(
  options: Options,
  { host, io }: Around,
): Promise<{ readonly json: Readonly<Record<string, unknown>> }> {
  const { model } = options;
  if (model === undefined)
    throw new UsageError("serve engine: expected --model MODEL (see forager serve --help)");
  const apiKey = keyFrom(host.env, options["api-key-env"]);
  const start = performance.now();
  const opened = new Closers();
  try {
    const service = await openService(model, options, { host, io, opened });
    const { createEngineApp } = await import("../../serving/engine/engine-app.ts");
    const app = createEngineApp(service, apiKey === undefined ? {} : { apiKey });
    const sweeper = setInterval(() => service.sweep().catch((error) => io.note(failureText(error))), 5_000);
    opened.defer(() => clearInterval(sweeper));
    const { names, backend, folder } = service.parts;
    const ready = { base_model: names[0], parameters: backend.parameterCount, state: resolve(folder) };
    const afterwards = (): Promise<void> => service.close();
    return await serveUntilStopped(app.fetch, { host, io, options, ready, start, afterwards });
  } finally {
    await opened.close();
  }
}

async function lockState(folder: string): Promise<RunLock> {
  await makeFolder(folder);
  return await lockRun(folder);
}

async function openService(
  model: string,
  options: Options,
  { host, io, opened }: Around & { readonly opened: Closers },
): Promise<EngineService> {
  const { openEmbeddedBackend } = await import("../../serving/engine/embedded-backend.ts");
  const { EngineService } = await import("../../serving/engine/engine-service.ts");
  const { engineLimitsWith } = await import("../../serving/engine/engine-limits.ts");
  const limits = engineLimitsWith(limitsOf(options));
  const sizes = {
    cacheMemory: sizeOf(options, "cache-memory") ?? defaultCacheMemory,
    memoryBudget: sizeOf(options, "memory-budget") ?? Math.floor(defaultShare * machineMemory()),
    machineMemory: machineMemory(),
  };
  const source = await sourceOf(model);
  const hub = hubSettings(host.env, io);
  const threads = options.threads ?? availableParallelism();
  const backend = await openEmbeddedBackend(source, {
    threads,
    maxSlots: options.slots ?? 64,
    samplingWeights: readWeights(options.weights),
    ...sizes,
    hub,
  });
  opened.defer(() => backend.close());
  const folder = options.state ?? join("runs", `engine-${options.port ?? 8000}`);
  const lock = await lockState(folder);
  opened.defer(() => lock.release());
  const isLocal = await exists(source);
  return await EngineService.open({
    backend,
    names: namesOf(model, options.name),
    ...(isLocal && { tokenizerId: resolve(source) }),
    folder,
    limits,
    stopping: io.signal,
    now: () => performance.now(),
    date: () => io.now(),
    newId: () => randomBytes(6).toString("hex"),
    newSeed: () => randomInt(2 ** 31),
    onFailure: (error) => io.note(failureText(error)),
  });
}

/** The part of the machine's memory that training may take where nobody says. */
const defaultShare = 0.75;
/** Keys and values for each of the weights that are sampled at one time. */
const defaultCacheMemory = 2e9;

function sizeOf(options: Options, name: "cache-memory" | "memory-budget"): number | undefined {
  const text = options[name];
  if (text === undefined) return undefined;
  const bytes = byteSize(text);
  if (bytes !== undefined) return bytes;
  throw new UsageError(`serve engine: expected a size such as 4GB or 500MiB as --${name}, got "${text}"`);
}

/** The newest checkpoint of a run; other sources as they are. */
async function sourceOf(model: string): Promise<string> {
  if (!(await exists(join(model, "recipe.yaml")))) return model;
  const checkpoint = await (await RunFolder.open(model)).latestCheckpoint();
  if (checkpoint !== undefined) return checkpoint.path;
  throw new UsageError(`${model} has no checkpoint yet; train it first (forager train --resume ${model})`);
}

/** What clients may call the base: its name if it was given one, else the source, its absolute path or its last part. */
function namesOf(model: string, name: string | undefined): readonly [string, ...string[]] {
  const others = [model, resolve(model), basename(resolve(model))];
  return name === undefined ? [model, ...others.slice(1)] : [name, ...others];
}

function limitsOf(options: Options): Partial<EngineLimits> {
  const seconds = (value: number | undefined): number | undefined =>
    value === undefined ? undefined : value * 1000;
  const given = {
    bodyBytes: options["max-body-bytes"],
    pending: options["max-pending"],
    models: options["max-models"],
    snapshots: options.snapshots,
    readySamplers: options.samplers,
    holdMs: seconds(options.hold),
    requestMs: seconds(options.timeout),
  };
  const silence = options["session-timeout"];
  return {
    ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)),
    ...(silence !== undefined && { sessionMs: silence === 0 ? undefined : silence * 1000 }),
  };
}
