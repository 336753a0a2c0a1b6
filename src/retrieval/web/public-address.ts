/**
 * Which addresses pages may be fetched from. A URL in a search result, or a redirect, is written by strangers; it must
 * never make this machine read its own network. Only http and https, and only addresses that are public by the
 * registries of IANA (ipaddr.js); every address that a name resolves to is checked, and the connection goes to one of
 * those, so that a name cannot change its mind in between.
 */
import { RetrieverError } from "../../errors.ts";

/** All addresses of a host name, as text. */
export type Resolve = (host: string) => Promise<readonly string[]>;

export interface PublicTarget {
  readonly url: URL;
  /** At least one. */
  readonly addresses: readonly string[];
}

/** Public by the registries, but reached inside Azure as its metadata and DNS service. */
const refusedAddresses = new Set(["168.63.129.16"]);

/** Whether an address (text) is public; anything that is no address is not. */
export async function isPublicAddress(address: string): Promise<boolean> {
  const { default: ipaddr } = await import("ipaddr.js");
  const plain = address.replace(/%.*$/, "");
  if (!ipaddr.isValid(plain)) return false;
  // Unwraps IPv4 in IPv6.
  const parsed = ipaddr.process(plain);
  if (refusedAddresses.has(parsed.toString()) || parsed.range() !== "unicast") return false;
  // Of IPv6 only 2000::/3 is given out to the public internet.
  return parsed.kind() === "ipv4" || (parsed.toByteArray()[0] as number) >> 5 === 1;
}

/**
 * The target of a URL text after resolution. Throws `RetrieverError` for another scheme than http and https, for
 * credentials in the URL, and when any of the addresses is not public.
 */
export async function publicTarget(text: string, resolve: Resolve): Promise<PublicTarget> {
  const url = checkedUrl(text);
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const { default: ipaddr } = await import("ipaddr.js");
  const addresses = ipaddr.isValid(host) ? [host] : await resolve(host);
  if (addresses.length === 0) throw refused(url, "its name has no address");
  for (const address of addresses)
    if (!(await isPublicAddress(address))) throw refused(url, `${address} is not a public address`);
  return { url, addresses };
}

/** The URL of a page, by its text alone. Throws `RetrieverError` for another scheme and for credentials. */
export function checkedUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined)
    throw new RetrieverError(`refused to fetch ${JSON.stringify(text.slice(0, 100))}: it is no URL`);
  if (url.protocol !== "http:" && url.protocol !== "https:")
    throw refused(url, `its scheme ${url.protocol} is not http or https`);
  if (url.username !== "" || url.password !== "") throw refused(url, "it holds credentials");
  return url;
}

function refused(url: URL, reason: string): RetrieverError {
  return new RetrieverError(`refused to fetch ${url.protocol}//${url.host}: ${reason}`);
}
