/**
 * Fetches one page of the open web: public addresses only, each redirect checked like the first URL, limits on time,
 * size and redirects, text types only. The connection is made to an address that was checked (node:http with a fixed
 * look-up), which `fetch` cannot do. No cookies, no scripts, no robots.txt: it is a reader's single request.
 */
import { lookup } from "node:dns/promises";
import { type IncomingMessage, request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import type { LookupFunction } from "node:net";
import type { Readable } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import { RetrieverError } from "../../errors.ts";
import { onAbort, untilAborted } from "../../shared/concurrency.ts";
import { shownUrl } from "../../shared/http.ts";
import { htmlText } from "./html-text.ts";
import { publicTarget, type Resolve } from "./public-address.ts";

export interface PageLimits {
  /** For the whole page, redirects included. */
  readonly timeoutMs: number;
  /** After decompression. */
  readonly maxBytes: number;
}

export interface Page {
  /** After redirects. */
  readonly url: string;
  readonly title: string;
  readonly text: string;
}

/** The reply to one request, its body not yet read. */
export interface PageReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: AsyncIterable<Uint8Array>;
  /** Ends a body of which nothing more is wanted, read or not. */
  readonly discard?: () => void;
}

/** How names are resolved and how a request is sent to one address; replaced in tests. */
export interface PageNetwork {
  readonly resolve: Resolve;
  readonly request: (url: URL, address: string, signal: AbortSignal) => Promise<PageReply>;
}

const MAX_REDIRECTS = 5;

/** The real network. */
export const pageNetwork: PageNetwork = {
  resolve: async (host) => (await lookup(host, { all: true })).map(({ address }) => address),
  request: requestPage,
};

/**
 * Title and text of the page at `url`. Throws `RetrieverError` when it is refused, missing, too large, too slow or no
 * text, and the signal's reason when aborted.
 */
export async function fetchPage(
  url: string,
  limits: PageLimits,
  { network = pageNetwork, signal }: { readonly network?: PageNetwork; readonly signal?: AbortSignal } = {},
): Promise<Page> {
  signal?.throwIfAborted();
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(new Error("time limit")), limits.timeoutMs);
  const forget = onAbort(signal, () => controller.abort(signal?.reason));
  try {
    // The look-up of a name cannot be aborted, so waiting for it is.
    return await untilAborted(follow(url, limits, { network, signal: controller.signal }), controller.signal);
  } catch (cause) {
    signal?.throwIfAborted();
    if (controller.signal.aborted)
      throw new RetrieverError(`${shownUrl(url)}: no page within ${limits.timeoutMs / 1000} s`);
    if (cause instanceof RetrieverError) throw cause;
    const code = (cause as NodeJS.ErrnoException).code ?? (cause as Error).message;
    throw new RetrieverError(`${shownUrl(url)}: no connection (${code})`, { cause });
  } finally {
    clearTimeout(timer);
    forget();
    controller.abort();
  }
}

interface Going {
  readonly network: PageNetwork;
  readonly signal: AbortSignal;
}

async function follow(start: string, limits: PageLimits, { network, signal }: Going): Promise<Page> {
  let at = start;
  for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
    const { url, addresses } = await publicTarget(at, network.resolve);
    const reply = await requestAny(url, addresses, { network, signal });
    try {
      const location = reply.headers.location;
      if (reply.status < 300 || reply.status > 399 || typeof location !== "string")
        return await pageOf(url, reply, limits);
      if (!URL.canParse(location, url)) throw new RetrieverError(`${shownUrl(at)}: a redirect to no URL`);
      at = new URL(location, url).href;
    } finally {
      reply.discard?.();
    }
  }
  throw new RetrieverError(`${shownUrl(start)}: more than ${MAX_REDIRECTS} redirects`);
}

/** The first address that can be reached; a name often has one of each family, of which one leads nowhere. */
async function requestAny(
  url: URL,
  addresses: readonly string[],
  { network, signal }: Going,
): Promise<PageReply> {
  let failure: unknown;
  for (const address of addresses.slice(0, 3)) {
    try {
      return await network.request(url, address, signal);
    } catch (cause) {
      signal.throwIfAborted();
      failure = cause;
    }
  }
  throw failure;
}

async function pageOf(url: URL, reply: PageReply, { maxBytes }: PageLimits): Promise<Page> {
  const wrong = (message: string): RetrieverError => new RetrieverError(`${shownUrl(url.href)}: ${message}`);
  if (reply.status !== 200) throw wrong(`expected status 200, got ${reply.status}`);
  const [type = "", ...parameters] = String(reply.headers["content-type"] ?? "text/html").split(";");
  const kind = type.trim().toLowerCase();
  if (!/^(text\/(html|plain|markdown|xml)|application\/(xhtml\+xml|xml|json))$/.test(kind))
    throw wrong(`expected a page of text, got ${JSON.stringify(kind.slice(0, 60))}`);
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of reply.body) {
    bytes += chunk.byteLength;
    if (bytes > maxBytes) throw wrong(`expected at most ${maxBytes} bytes, got more`);
    chunks.push(chunk);
  }
  const charset = parameters.join(";").match(/charset\s*=\s*"?([\w-]+)/i)?.[1];
  const source = decode(Buffer.concat(chunks), charset);
  if (kind !== "text/html" && kind !== "application/xhtml+xml")
    return { url: url.href, title: "", text: source.trim() };
  return { url: url.href, ...(await htmlText(source)) };
}

/** By the header, else by what the head of the page declares, else UTF-8; an unknown name is UTF-8. */
function decode(bytes: Buffer, charset: string | undefined): string {
  const declared = /<meta[^>]+charset\s*=\s*["']?([\w-]+)/i.exec(bytes.subarray(0, 2048).toString("latin1"));
  try {
    return new TextDecoder(charset ?? declared?.[1] ?? "utf-8").decode(bytes);
  } catch {
    return new TextDecoder().decode(bytes);
  }
}

/** Sends one GET to `address` as the host of `url`; its certificate is checked against the name. */
export function requestPage(url: URL, address: string, signal: AbortSignal): Promise<PageReply> {
  const fixed: LookupFunction = (_host, options, done) => {
    const family = address.includes(":") ? 6 : 4;
    if (options.all === true) done(null, [{ address, family }]);
    else done(null, address, family);
  };
  const send = url.protocol === "https:" ? requestHttps : requestHttp;
  return new Promise((resolve, reject) => {
    const request = send(
      url,
      {
        lookup: fixed,
        signal,
        agent: false,
        headers: {
          accept: "text/html,text/plain;q=0.9,*/*;q=0.1",
          "accept-encoding": "gzip, deflate, br",
          "user-agent": "forager",
        },
      },
      (response) => {
        const body = decompressed(response);
        // A body that is not read may break too; whoever reads it still gets the error.
        body.on("error", () => undefined);
        const discard = (): void => {
          body.destroy();
          response.destroy();
        };
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body, discard });
      },
    );
    request.on("error", reject);
    request.end();
  });
}

function decompressed(response: IncomingMessage): Readable {
  const make = { gzip: createGunzip, deflate: createInflate, br: createBrotliDecompress }[
    String(response.headers["content-encoding"] ?? "").toLowerCase()
  ];
  if (make === undefined) return response;
  const plain = response.pipe(make());
  // A pipe does not hand on the errors of its source.
  response.on("error", (error) => plain.destroy(error));
  return plain;
}
