import { gzipSync } from "node:zlib";
import { describe, expect, onTestFinished, test } from "vitest";
import { RetrieverError } from "../../errors.ts";
import { type Answer, cutOff, type SeenRequest, silence, startServer } from "../../shared/server.fixture.ts";
import { fetchPage, type PageNetwork, requestPage } from "./fetch-page.ts";

const limits = { timeoutMs: 5000, maxBytes: 50_000 };
const html = { "content-type": "text/html; charset=utf-8" };

/** A web in which `public.test` is a public address that leads to the server; other names resolve as given. */
async function web(
  answer: (request: SeenRequest, count: number) => Answer,
  names: Record<string, string[]> = {},
) {
  const server = await startServer(answer);
  const reached: string[] = [];
  const network: PageNetwork = {
    resolve: async (host) => names[host] ?? ["93.184.215.14"],
    request: (url, address, signal) => {
      reached.push(`${url.hostname} ${address}`);
      const local = new URL(url);
      local.port = new URL(server.url).port;
      return requestPage(local, "127.0.0.1", signal);
    },
  };
  return { server, network, reached };
}

describe("a page", () => {
  test("is its title and its text, over a connection to the checked address", async () => {
    const text =
      "<title>A &amp; B</title><script>no</script><nav>menu</nav><h1>Head</h1><p>One <b>two</b>\n three.";
    const { network, server, reached } = await web(() => ({ text, headers: html }));
    expect(await fetchPage("http://public.test/x?y=1", limits, { network })).toEqual({
      url: "http://public.test/x?y=1",
      title: "A & B",
      text: "Head\nOne two three.",
    });
    expect(reached).toEqual(["public.test 93.184.215.14"]);
    expect(server.requests[0]).toMatchObject({ path: "/x?y=1", headers: { "user-agent": "forager" } });
    expect(String(server.requests[0]?.headers.host)).toMatch(/^public\.test/);
  });

  test("may be compressed, of another encoding, or plain text", async () => {
    const { network } = await web(({ path }) => (response) => {
      if (path === "/gzip") {
        response.writeHead(200, { ...html, "content-encoding": "gzip" });
        return response.end(gzipSync("<p>packed"));
      }
      const isPlain = path === "/plain";
      response.writeHead(200, { "content-type": isPlain ? "text/plain" : "text/html" });
      response.end(
        isPlain ? " plain <text> " : Buffer.from('<meta charset="iso-8859-1"><p>caf\u00e9', "latin1"),
      );
    });
    const text = async (path: string): Promise<string> =>
      (await fetchPage(`http://public.test${path}`, limits, { network })).text;
    expect([await text("/gzip"), await text("/plain"), await text("/latin")]).toEqual([
      "packed",
      "plain <text>",
      "café",
    ]);
  });

  test("is reached at another address when the first leads nowhere", async () => {
    const { network } = await web(() => ({ text: "<p>here", headers: html }), {
      "two.test": ["2606:4700::1", "1.1.1.1"],
    });
    const halfDead: PageNetwork = {
      ...network,
      request: (url, address, signal) =>
        address.includes(":")
          ? Promise.reject(new Error("unreachable"))
          : network.request(url, address, signal),
    };
    expect((await fetchPage("http://two.test/", limits, { network: halfDead })).text).toBe("here");
  });
});

describe("a redirect", () => {
  const to = (location: string) => (): Answer => ({ status: 302, text: "", headers: { location } });

  test("is followed, also when relative", async () => {
    const { network } = await web(({ path }) =>
      path === "/new"
        ? { text: "<p>moved", headers: html }
        : { status: 301, text: "", headers: { location: "new" } },
    );
    const page = await fetchPage("http://public.test/old", limits, { network });
    expect([page.url, page.text]).toEqual(["http://public.test/new", "moved"]);
  });

  test.each([
    ["http://127.0.0.1:6379/", "127.0.0.1 is not a public address"],
    ["http://169.254.169.254/latest/meta-data/", "169.254.169.254 is not a public address"],
    ["http://inside.test/", "10.0.0.1 is not a public address"],
    ["file:///etc/passwd", "scheme file:"],
    ["http://[::1]/", "::1 is not a public address"],
  ])("to %s is refused, and nothing is sent there", async (location, message) => {
    const { network, reached } = await web(to(location), { "inside.test": ["10.0.0.1"] });
    await expect(fetchPage("http://public.test/", limits, { network })).rejects.toThrow(message);
    expect(reached).toHaveLength(1);
  });

  test("in a circle ends", async () => {
    const { network, reached } = await web(to("/again"));
    await expect(fetchPage("http://public.test/", limits, { network })).rejects.toThrow(
      "more than 5 redirects",
    );
    expect(reached).toHaveLength(6);
  });
});

describe("a page that cannot be had", () => {
  test.each([
    ["too large", { text: "x".repeat(60_000), headers: html }, "expected at most 50000 bytes"],
    ["missing", { status: 404, text: "", headers: html }, "expected status 200, got 404"],
    [
      "of another type",
      { text: "%PDF", headers: { "content-type": "application/pdf" } },
      'got "application/pdf"',
    ],
    ["cut off", cutOff("<p>half"), "no connection"],
    ["silent", silence, "no page within 0.2 s"],
  ] as const)("%s says so", async (_, answer, message) => {
    const { network } = await web(() => answer);
    const fetching = fetchPage("http://public.test/", { ...limits, timeoutMs: 200 }, { network });
    await expect(fetching).rejects.toThrow(RetrieverError);
    await expect(fetching).rejects.toThrow(message);
  });

  test("a small reply that unpacks to a large one is stopped", async () => {
    const { network } = await web(() => (response) => {
      response.writeHead(200, { ...html, "content-encoding": "gzip" });
      response.end(gzipSync("x".repeat(5_000_000)));
    });
    await expect(fetchPage("http://public.test/", limits, { network })).rejects.toThrow(
      "at most 50000 bytes",
    );
  });

  test.each([
    ["missing, packed badly", 404, {}, "not gzip", "got 404"],
    ["missing, packed as nothing", 404, {}, "", "got 404"],
    ["of another type, packed badly", 200, { "content-type": "application/pdf" }, "%PDF", "application/pdf"],
    ["a redirect, packed badly", 302, { location: "http://10.0.0.1/" }, "not gzip", "not a public address"],
  ] as const)("%s, breaks nothing else", async (_, status, headers, text, message) => {
    const uncaught: unknown[] = [];
    const note = (error: unknown): number => uncaught.push(error);
    process.on("uncaughtException", note);
    onTestFinished(() => {
      process.off("uncaughtException", note);
    });
    const { network } = await web(() => (response) => {
      response.writeHead(status, { ...html, ...headers, "content-encoding": "gzip" });
      response.write(text);
      response.end();
    });
    const broken: PageNetwork = {
      ...network,
      request: async (...asked) => {
        const reply = await network.request(...asked);
        await new Promise((resolve) => setTimeout(resolve, 30)); // the body comes before anyone listens
        return reply;
      },
    };
    for (const each of [network, broken])
      await expect(fetchPage("http://public.test/", limits, { network: each })).rejects.toThrow(message);
    await new Promise((resolve) => setTimeout(resolve, 30));
    expect(uncaught).toEqual([]);
  });

  test("ends each body that it does not read", async () => {
    const ended: string[] = [];
    const network: PageNetwork = {
      resolve: async () => ["93.184.215.14"],
      request: async ({ pathname }) => ({
        status: pathname === "/old" ? 302 : 404,
        headers: { location: "/new" },
        body: (async function* () {})(),
        discard: () => ended.push(pathname),
      }),
    };
    const fetching = fetchPage("http://public.test/old", limits, { network });
    await expect(fetching).rejects.toThrow(RetrieverError);
    expect(ended[0]).toBe("/old");
    expect(ended.at(-1)).toBe("/new");
  });

  test("a name that is looked up for ever ends by the time limit, and an abort by its reason", async () => {
    const network: PageNetwork = { resolve: () => new Promise(() => undefined), request: requestPage };
    await expect(fetchPage("http://slow.test/", { ...limits, timeoutMs: 30 }, { network })).rejects.toThrow(
      "no page within",
    );
    const controller = new AbortController();
    const reason = new Error("enough");
    const fetching = fetchPage("http://slow.test/", limits, { network, signal: controller.signal });
    controller.abort(reason);
    await expect(fetching).rejects.toBe(reason);
  });

  test("this machine's own servers are refused by the real network", async () => {
    const server = await startServer(() => ({ text: "secret", headers: html }));
    await expect(fetchPage(server.url, limits)).rejects.toThrow("127.0.0.1 is not a public address");
    const { port } = new URL(server.url);
    await expect(fetchPage(`http://localhost:${port}/`, limits)).rejects.toThrow("is not a public address");
    expect(server.requests).toEqual([]);
  });
});
