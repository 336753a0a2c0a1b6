/**
 * From a recipe to an engine elsewhere: the connection, the tokenizer, which model the server has, and the probe, whose verdict
 * the contract of the run keeps; a run that is resumed does not ask again.
 */
import { join } from "node:path";
import { z } from "zod";
import type { Recipe } from "../config/recipe.ts";
import { readJson } from "../engine/read-json.ts";
import type { ModelWanted, Session } from "../engine/tinker/session.ts";
import type { TinkerEngine } from "../engine/tinker/tinker-engine.ts";
import type { TinkerOptions } from "../engine/tinker/tinker-options.ts";
import { ConfigError, EngineError } from "../errors.ts";
import { exists } from "../shared/files.ts";
import type { WritableTokenizer } from "../tokenizer/tokenizer-file.ts";
import { collectEarly } from "./collect-early.ts";
import type { Watcher } from "./hub-settings.ts";
import { processWorld } from "./world.ts";

export interface TinkerSetting extends Watcher {
  /**
   * The run folder, which may not be there yet: names of models to unload after a crash are kept in it, and what its checkpoints
   * hold on the server is its own.
   */
  readonly folder?: string;
  /** False: nothing will be trained, so that the server is not probed. */
  readonly isTraining?: boolean;
  /** Where the tokenizer lies if the recipe does not say: a checkpoint has its own. */
  readonly tokenizer?: string;
}

/** Beside `recipe.yaml`: models on the server that must be unloaded if this run crashes. */
const noteFile = "remote-models.json";

/** Throws `ConfigError` for what does not fit, `EngineError`, `FileError`, or the signal's reason. */
export async function openTinker(
  { engine: options, model, seed }: Recipe & { readonly engine: TinkerOptions },
  setting: TinkerSetting = {},
): Promise<TinkerEngine> {
  const { signal, note, folder, isTraining = true } = setting;
  collectEarly();
  const { Connection } = await import("../engine/tinker/connection.ts");
  const { Session } = await import("../engine/tinker/session.ts");
  const { TinkerEngine } = await import("../engine/tinker/tinker-engine.ts");
  const { probe, serverModel } = await import("../engine/tinker/probe.ts");
  const connection = new Connection(options, processWorld(setting), note);
  note?.(`connecting to ${connection.profile.title} at ${connection.url}`);
  const notePath = folder === undefined ? {} : { note: join(folder, noteFile) };
  const session = await Session.open(connection, { seed: seed % 2 ** 31, ...notePath }, signal ?? undefined);
  try {
    const told = await serverModel(connection, options.baseModel);
    const baseModel = told.name;
    const source = options.tokenizer ?? (model.type === "pretrained" ? model.source : setting.tokenizer);
    const wanted = { baseModel, rank: options.rank };
    const found = await findTokenizer(source, { session, wanted, setting });
    const contextLength = options.contextLength ?? told.contextLength ?? found.contextLength;
    if (contextLength === undefined)
      throw new ConfigError(
        "neither the server nor a config.json beside the tokenizer says how long a sequence may be; say it",
        { path: "engine.contextLength" },
      );
    const known = folder === undefined ? undefined : await probedBefore(folder, connection);
    const verdict = known ?? (isTraining ? await probe(session, wanted, found.tokenizer) : undefined);
    if (verdict !== undefined) requireSound(verdict, note);
    const location = await locationOf(options.tokenizer ?? found.folder, baseModel);
    const { tokenizer } = found;
    return await TinkerEngine.create({
      session,
      tokenizer,
      contextLength,
      ...wanted,
      location,
      run: folder,
      probe: verdict,
      note,
    });
  } catch (error) {
    await session.close();
    throw error;
  }
}

/** What the probe says of a server alone, without a recipe. Throws `EngineError`, `ConfigError`, or the signal's reason. */
export async function examineServer(
  options: TinkerOptions,
  setting: Watcher = {},
): Promise<{ readonly baseModel: string; readonly verdict: Verdict }> {
  const { Connection } = await import("../engine/tinker/connection.ts");
  const { Session } = await import("../engine/tinker/session.ts");
  const { probe, serverModel } = await import("../engine/tinker/probe.ts");
  const connection = new Connection(options, processWorld(setting), setting.note);
  const session = await Session.open(connection, { seed: 1 }, setting.signal ?? undefined);
  try {
    const { name: baseModel } = await serverModel(connection, options.baseModel);
    const wanted = { baseModel, rank: options.rank };
    const { serverTokenizer } = await import("../engine/tinker/remote-tokenizer.ts");
    const found =
      options.tokenizer === undefined
        ? await serverTokenizer(session, wanted)
        : await openTokenizer(options.tokenizer, setting);
    const verdict = await probe(session, wanted, found?.tokenizer);
    return { baseModel, verdict };
  } finally {
    await session.close();
  }
}

type Verdict = Awaited<ReturnType<typeof import("../engine/tinker/probe.ts").probe>>;

/** Says what the probe found. Throws `EngineError` where the server does not do what its profile says. */
function requireSound(verdict: Verdict, note: Watcher["note"]): void {
  note?.(`probe: ${probeText(verdict)}`);
  if (verdict.ok) return;
  throw new EngineError(
    `the server is not what engine.profile says: ${verdict.problems.join("; ")}; choose the profile of the program that serves`,
    { kind: "rejected" },
  );
}

/** The verdict in a sentence. */
export function probeText(verdict: Verdict): string {
  const { maskWithoutEffect, reduction, samplingDifference, sameTokenizer } = verdict;
  const tokenizer = sameTokenizer === null ? "not compared" : sameTokenizer ? "equal" : "different";
  return `masked positions ${maskWithoutEffect ? "have no effect" : "change the gradient"}, reduction ${reduction}, sampling differs from a forward pass by ${samplingDifference.toExponential(1)}, tokenizer ${tokenizer}`;
}

const contractSchema = z.looseObject({
  engine: z.looseObject({
    url: z.string(),
    profile: z.string(),
    probe: z.looseObject({ ok: z.literal(true) }),
  }),
});

/** What the contract of a run that is resumed says of this server; of another one it says nothing. */
async function probedBefore(
  folder: string,
  { url, profile }: { readonly url: string; readonly profile: { readonly name: string } },
): Promise<Verdict | undefined> {
  const path = join(folder, "contract.json");
  if (!(await exists(path))) return undefined;
  const parsed = contractSchema.safeParse(await readJson(path));
  if (!parsed.success) return undefined;
  const { engine } = parsed.data;
  return engine.url === url && engine.profile === profile.name
    ? (engine.probe as unknown as Verdict)
    : undefined;
}

interface FoundTokenizer {
  readonly tokenizer: WritableTokenizer;
  /** Of a `config.json` beside it. */
  readonly contextLength?: number;
  /** The model it was read with, on this machine or a hub. */
  readonly folder?: string;
}

interface TokenizerPlace {
  readonly session: Session;
  readonly wanted: ModelWanted;
  readonly setting: Watcher;
}

/** The tokenizer at `source`, else the server's own. Throws `ConfigError` where there is neither. */
async function findTokenizer(
  source: string | undefined,
  { session, wanted, setting }: TokenizerPlace,
): Promise<FoundTokenizer> {
  if (source !== undefined) return await openTokenizer(source, setting);
  const { serverTokenizer } = await import("../engine/tinker/remote-tokenizer.ts");
  const told = await serverTokenizer(session, wanted);
  if (told?.folder !== undefined) return { ...told, ...(await contextOf(join(told.folder, "config.json"))) };
  if (told !== undefined) return told;
  throw new ConfigError(
    `${session.connection.url} does not hand out its tokenizer; name the one of its model: a folder, or hf:owner/name`,
    { path: "engine.tokenizer" },
  );
}

async function openTokenizer(source: string, setting: Watcher): Promise<FoundTokenizer> {
  const { locateTokenizer } = await import("../engine/model-source.ts");
  const { readTokenizer } = await import("../tokenizer/tokenizer-file.ts");
  const path = await locateTokenizer(source, processWorld(setting).hub);
  return {
    tokenizer: await readTokenizer(path),
    folder: source,
    ...(await contextOf(join(path, "config.json"))),
  };
}

const configSchema = z.looseObject({ max_position_embeddings: z.int().min(2) });

async function contextOf(path: string): Promise<{ readonly contextLength?: number }> {
  if (!(await exists(path))) return {};
  const parsed = configSchema.safeParse(await readJson(path));
  return parsed.success ? { contextLength: parsed.data.max_position_embeddings } : {};
}

/** Where the base of the adapters lies, for `adapter_config.json`: as the tokenizer was found, else as the server names it. */
async function locationOf(source: string | undefined, baseModel: string) {
  if (source === undefined) return { base_model_name_or_path: baseModel, revision: null };
  const { locationOfBase } = await import("../engine/lora-base.ts");
  return await locationOfBase(source);
}
