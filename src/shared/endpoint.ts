/** A server behind a base URL: how it is called with its key or credentials, and the URL as it may be shown. */
import { ConfigError } from "../errors.ts";
import { shownUrl } from "./http.ts";
import { keyOf, type NetworkWorld } from "./network-world.ts";

export interface EndpointOptions {
  readonly url: string;
  readonly keyVariable?: string | undefined;
  readonly keyHeader: string;
}

export interface Endpoint {
  /** Without credentials and without a slash at its end. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** What no message may show. */
  readonly secrets: readonly string[];
}

/** The endpoint of `options`; `path` is taken off the end of its URL. Throws `ConfigError`. */
export function endpointOf(
  options: EndpointOptions,
  world: Pick<NetworkWorld, "keys">,
  path: string,
): Endpoint {
  const parsed = new URL(options.url);
  const user = decoded(parsed.username);
  const password = decoded(parsed.password);
  const whole = shownUrl(options.url).replace(/\/+$/, "");
  const url = path !== "" && whole.endsWith(path) ? whole.slice(0, -path.length) : whole;
  const hasCredentials = user !== "" || password !== "";
  if (options.keyVariable === undefined) {
    if (!hasCredentials) return { url, headers: {}, secrets: [] };
    const basic = Buffer.from(`${user}:${password}`).toString("base64");
    return { url, headers: { authorization: `Basic ${basic}` }, secrets: [password, basic] };
  }
  if (hasCredentials)
    throw new ConfigError("expected a key or credentials in the URL, got both; take one of them out");
  const key = keyOf(options.keyVariable, world);
  const isBearer = options.keyHeader.toLowerCase() === "authorization";
  return { url, headers: { [options.keyHeader]: isBearer ? `Bearer ${key}` : key }, secrets: [key] };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw new ConfigError(
      "expected percent-encoded credentials in the URL, got a % that begins no character; write it as %25",
    );
  }
}
