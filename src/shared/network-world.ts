/**
 * What retrievers and policies that leave the program need of the world, handed in by the caller: network, time, chance
 * and API keys. Nothing here reads the environment; a key is named by its variable in the options and looked up in `keys`,
 * so that no key is ever part of options, identities or recordings.
 */
import { ConfigError } from "../errors.ts";

/** What is used of `fetch`: that of `persistent-fetch.ts` is made for it, the global one fits too. */
export type Fetch = (url: string | URL, init: FetchInit) => Promise<FetchReply>;

export interface FetchInit {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Redirects are never followed unseen. */
  readonly redirect: "manual";
  readonly signal?: AbortSignal;
}

export interface FetchReply {
  readonly status: number;
  /** A status of 200 to 299. */
  readonly ok: boolean;
  readonly headers: { get(name: string): string | null };
  /** The bytes in parts; null: there are none. */
  readonly body: { getReader(): { read(): Promise<BodyPart> } } | null;
  arrayBuffer(): Promise<ArrayBuffer>;
}

export interface BodyPart {
  readonly done: boolean;
  /** Absent when done. */
  readonly value?: Uint8Array | undefined;
}

/** The code of an error for a connection that did not come about in time, so that the request was surely not served. */
export const connectTimeout = "FORAGER_CONNECT_TIMEOUT";

/** What `fetch` rejects with where a server answered in a way that asking again cannot mend; the message says how to. */
export class UnusableReplyError extends Error {}

export interface NetworkWorld {
  readonly fetch: Fetch;
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
