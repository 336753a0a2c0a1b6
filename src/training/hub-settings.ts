/**
 * How this machine reaches a hub of models, from the environment: `HF_ENDPOINT`, `HF_TOKEN`, `HF_HUB_OFFLINE`, and
 * where models are kept: `FORAGER_CACHE`, else the user's cache folder. The token goes nowhere but to the hub.
 */
import { homedir } from "node:os";
import { basename, join } from "node:path";
import { formatMegabytes } from "../reporting/megabytes.ts";
import { type HubOptions, PUBLIC_HUB } from "../shared/hub.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** Who is told of downloads, and what stops them. */
export interface Watcher {
  readonly signal?: AbortSignal | undefined;
  readonly note?: ((text: string) => void) | undefined;
}

/** An empty variable counts as absent, as for other programs that read these. */
export function hubSettings(environment: Environment, { signal, note }: Watcher = {}): HubOptions {
  const value = (name: string): string | undefined => environment[name]?.trim() || undefined;
  const caches = value("XDG_CACHE_HOME") ?? join(homedir(), ".cache");
  const seen = new Set<string>();
  return {
    endpoint: value("HF_ENDPOINT") ?? PUBLIC_HUB,
    cacheFolder: join(value("FORAGER_CACHE") ?? join(caches, "forager"), "models"),
    token: value("HF_TOKEN"),
    offline: ["1", "true", "yes", "on"].includes((value("HF_HUB_OFFLINE") ?? "").toLowerCase()),
    signal,
    onProgress: ({ file, total }) => {
      if (seen.has(file)) return;
      seen.add(file);
      note?.(`fetching ${basename(file)}${total === undefined ? "" : ` (${formatMegabytes(total)})`}`);
    },
  };
}
