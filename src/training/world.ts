/** What the rooms below need of the process: network, time, chance, keys and where models come from. */
import { availableParallelism, homedir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { RetrieverWorld } from "../retrieval/remote/world.ts";
import type { SearchWorld } from "../retrieval/search-folder.ts";
import { PUBLIC_HUB } from "../shared/hub.ts";

export type World = RetrieverWorld & SearchWorld;

/**
 * The world of this process. HF_ENDPOINT and HF_TOKEN are those of Hugging Face's tools; models are kept in
 * FORAGER_CACHE, by default `~/.cache/forager`.
 */
export function processWorld({ env }: Pick<NodeJS.Process, "env"> = process): World {
  const token = env.HF_TOKEN?.trim();
  return {
    fetch,
    now: () => Date.now(),
    sleep: async (ms, signal) => {
      await sleep(ms, undefined, signal && { signal });
    },
    random: () => Math.random(),
    keys: env,
    threads: availableParallelism(),
    hub: {
      endpoint: env.HF_ENDPOINT?.trim() || PUBLIC_HUB,
      cacheFolder: join(env.FORAGER_CACHE?.trim() || join(homedir(), ".cache", "forager"), "hub"),
      ...(token && { token }),
    },
  };
}
