/** What the rooms below need of the process: network, time, chance, keys and where models come from. */
import { availableParallelism } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import type { SearchWorld } from "../retrieval/encoder-reference.ts";
import type { Fetch, NetworkWorld } from "../shared/network-world.ts";
import { hubSettings, type Watcher } from "./hub-settings.ts";

export interface World extends NetworkWorld, SearchWorld {
  /** Remarks for people. */
  note(text: string): void;
}

/** Connections that all calls of this process share; the client is loaded with the first of them. */
let connections: Promise<Fetch> | undefined;
const processFetch: Fetch = async (url, init) => {
  connections ??= import("../shared/persistent-fetch.ts").then(({ persistentFetch }) => persistentFetch());
  return await (await connections)(url, init);
};

/** The world of this process. `watcher` is told of downloads, and its signal stops them. */
export function processWorld(watcher: Watcher = {}): World {
  return {
    fetch: processFetch,
    now: () => Date.now(),
    sleep: async (ms, signal) => {
      await sleep(ms, undefined, signal && { signal });
    },
    random: () => Math.random(),
    keys: process.env,
    threads: availableParallelism(),
    hub: hubSettings(process.env, watcher),
    note: (text) => watcher.note?.(text),
  };
}
