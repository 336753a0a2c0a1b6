/** For tests: an engine on a server that plays a profile, with waiting that takes no time. */
import type { NetworkWorld } from "../../shared/network-world.ts";
import { persistentFetch } from "../../shared/persistent-fetch.ts";
import { testWorld } from "../../shared/server.fixture.ts";
import { tinyTokenizer } from "../engine.fixture.ts";
import { Connection } from "./connection.ts";
import type { ProfileName } from "./profiles.ts";
import { Session } from "./session.ts";
import { TinkerEngine } from "./tinker-engine.ts";
import { type TinkerOptions, tinkerOptionsSchema } from "./tinker-options.ts";

const sharedFetch = persistentFetch();

/** Options for `url`, with their defaults. */
export function tinkerOptions(url: string, given: Readonly<Record<string, unknown>> = {}): TinkerOptions {
  return tinkerOptionsSchema.parse({ type: "tinker", url, downloadAdapters: false, rank: 8, ...given });
}

export interface EngineSetting {
  readonly profile?: ProfileName;
  readonly seed?: number;
  readonly options?: Readonly<Record<string, unknown>>;
  readonly world?: NetworkWorld;
  readonly note?: string;
  readonly baseModel?: string;
  readonly run?: string;
}

/** An engine with a fresh model on the server at `url`. */
export async function openTinkerEngine(url: string, setting: EngineSetting = {}): Promise<TinkerEngine> {
  const {
    profile = "forager",
    seed = 1,
    options = {},
    world = { ...testWorld(), fetch: sharedFetch },
    note,
    baseModel = "tiny",
    run,
  } = setting;
  const parsed = tinkerOptions(url, { profile, ...options });
  const session = await Session.open(new Connection(parsed, world), {
    seed,
    ...(note !== undefined && { note }),
  });
  return await TinkerEngine.create({
    session,
    tokenizer: tinyTokenizer,
    contextLength: 640,
    baseModel,
    rank: parsed.rank,
    run,
    location: { base_model_name_or_path: "tiny", revision: null },
  });
}
