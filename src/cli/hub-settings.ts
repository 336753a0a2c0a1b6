/**
 * How this machine reaches a hub of models, from the environment: `HF_ENDPOINT`, `HF_TOKEN`, `HF_HUB_OFFLINE`, and
 * where models are kept: `FORAGER_CACHE`, else the user's cache folder. The token goes nowhere but to the hub.
 */
import { homedir } from "node:os";
import { basename, join } from "node:path";
import type { HubOptions } from "../shared/hub.ts";
import { PUBLIC_HUB } from "../shared/hub.ts";
import type { CommandIo } from "./command.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** An empty variable counts as absent, as for other programs that read these. */
export function hubSettings(environment: Environment, io: Pick<CommandIo, "signal" | "note">): HubOptions {
  const value = (name: string): string | undefined => environment[name]?.trim() || undefined;
  const caches = value("XDG_CACHE_HOME") ?? join(homedir(), ".cache");
  const seen = new Set<string>();
  return {
    endpoint: value("HF_ENDPOINT") ?? PUBLIC_HUB,
    cacheFolder: join(value("FORAGER_CACHE") ?? join(caches, "forager"), "models"),
    token: value("HF_TOKEN"),
    offline: ["1", "true", "yes", "on"].includes((value("HF_HUB_OFFLINE") ?? "").toLowerCase()),
    signal: io.signal,
    onProgress: ({ file, total }) => {
      if (seen.has(file)) return;
      seen.add(file);
      io.note(`fetching ${basename(file)}${total === undefined ? "" : ` (${megabytes(total)})`}`);
    },
  };
}

/** A size in megabytes or gigabytes of powers of ten, as hubs show it. */
export function megabytes(bytes: number): string {
  return bytes < 1e9 ? `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB` : `${(bytes / 1e9).toFixed(1)} GB`;
}
