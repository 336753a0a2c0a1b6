/**
 * What retrievers and policies that leave the program need of the world, handed in by the caller: network, time, chance
 * and API keys. Nothing here reads the environment; a key is named by its variable in the options and looked up in `keys`,
 * so that no key is ever part of options, identities or recordings.
 */
import { ConfigError } from "../errors.ts";

export interface NetworkWorld {
  readonly fetch: typeof fetch;
  /** Milliseconds since 1970. */
  now(): number;
  /** Resolves after `ms` milliseconds; rejects with the signal's reason when aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** A number in [0, 1), for the jitter of waiting times; results do not depend on it. */
  random(): number;
  /** API keys by the name of their environment variable. */
  readonly keys: Readonly<Record<string, string | undefined>>;
}

/** The key that the environment variable `variable` holds; throws `ConfigError`, which never shows a key. */
export function keyOf(variable: string, world: Pick<NetworkWorld, "keys">): string {
  const key = (Object.hasOwn(world.keys, variable) ? world.keys[variable] : undefined)?.trim();
  if (key === undefined || key === "")
    throw new ConfigError(
      `expected an API key in the environment variable ${variable}, got nothing; set it, or name another variable`,
    );
  if (!/^[\x21-\x7e]+$/.test(key))
    throw new ConfigError(
      `expected an API key of printable ASCII characters without spaces in ${variable}, got other characters`,
    );
  return key;
}
