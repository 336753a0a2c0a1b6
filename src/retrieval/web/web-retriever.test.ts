import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { ConfigError, RetrieverError } from "../../errors.ts";
import { isBudgetSpent } from "../../shared/budget.ts";
import { silence, startServer, testWorld } from "../../shared/server.fixture.ts";
import { recordRetriever } from "../recording/record-retriever.ts";
import type { PageNetwork } from "./fetch-page.ts";
import { keys, organic, SECRET, serper } from "./web.fixture.ts";
import { webSourceSchema } from "./web-options.ts";
import { createWebRetriever } from "./web-retriever.ts";

describe("a web search", () => {
  test("becomes passages, the URL as id, each once, scored by rank", async () => {
    const { retriever } = await serper();
    expect(await retriever.retrieve(["lake"], 2)).toEqual([
      [
        { passage: { id: "https://page.test/lake/1", title: "lake 1", text: "about lake 1" }, score: 1 },
        { passage: { id: "https://page.test/lake/2", title: "lake 2", text: "about lake 2" }, score: 0.5 },
      ],
    ]);
    expect((await retriever.retrieve(["lake"], 9))[0]).toHaveLength(3);
  });

  test("asks each query once, and never for nothing", async () => {
    const { retriever, server } = await serper();
    await retriever.retrieve(["a", "b", "a", " ", ""], 2);
    await retriever.retrieve(["b", "a"], 2);
    expect(server.requests.map(({ body }) => (body as { q: string }).q).sort()).toEqual(["a", "b"]);
    expect(retriever.spent()).toEqual({ calls: 2, tokens: 0, dollars: 0.002 });
  });

  test("pays once for a query that is asked by many at once", async () => {
    const { retriever } = await serper();
    await Promise.all(Array.from({ length: 8 }, () => retriever.retrieve(["same"], 2)));
    expect(retriever.spent().calls).toBe(1);
  });

  test("starts at most so many calls a second", async () => {
    const { retriever, world } = await serper(organic, { callsPerSecond: 2 });
    await retriever.retrieve(["a", "b", "c"], 1);
    // The time of this world goes on by sleeping alone.
    expect(world.waits).toEqual([500, 500]);
  });

  test("cuts queries that are too long and mends half characters", async () => {
    const { retriever, server } = await serper();
    await retriever.retrieve(["x".repeat(100_000), "half \ud83d"], 1);
    expect(server.requests.map(({ body }) => (body as { q: string }).q.length).sort((a, b) => a - b)).toEqual(
      [6, 2048],
    );
  });

  test("stops with the reason of the signal, and k is checked", async () => {
    const { retriever } = await serper(() => silence);
    const controller = new AbortController();
    const reason = new Error("enough");
    const asking = retriever.retrieve(["a"], 1, controller.signal);
    controller.abort(reason);
    await expect(asking).rejects.toBe(reason);
    await expect(retriever.retrieve(["a"], 0)).rejects.toThrow("k must be an integer of at least 1");
  });
});

describe("the key", () => {
  test("is in no error, identity or recording, wherever the provider wants it", async () => {
    const folder = await mkdtemp(join(tmpdir(), "forager-web-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    for (const [provider, more] of [
      ["serper", {}],
      ["serpapi", {}],
      ["google-cse", { engineId: "e" }],
    ] as const)
      for (const status of [400, 403, 429, 500, 200]) {
        const { retriever, server } = await serper(
          ({ path, headers }) => ({ status, text: `key ${SECRET} at ${path} ${JSON.stringify(headers)}` }),
          { provider, retries: 0, ...more },
        );
        const file = join(folder, `${provider}-${status}.jsonl`);
        const recorder = await recordRetriever(retriever, file);
        const error = (await recorder.retrieve(["a"], 1).catch((e: unknown) => e)) as Error;
        await recorder.close();
        expect(error).toBeInstanceOf(RetrieverError);
        expect(JSON.stringify([server.requests[0]?.path, server.requests[0]?.headers])).toContain(SECRET);
        const shown = [error.message, error.stack, String(error.cause), JSON.stringify(retriever.identity)];
        expect([...shown, await readFile(file, "utf8")].join("\n")).not.toContain(SECRET);
      }
  });

  test("that is missing is named", async () => {
    const parsed = webSourceSchema.parse({ type: "web", provider: "brave" });
    const make = () => createWebRetriever(parsed, testWorld());
    expect(make).toThrow(ConfigError);
    expect(make).toThrow("environment variable BRAVE_API_KEY");
  });
});

describe("pages", () => {
  const page = (text: string) => ({
    text: `<title>T</title><p>${text}`,
    headers: { "content-type": "text/html" },
  });

  test("give the passages their text; one that cannot be had leaves the snippet and says why", async () => {
    const pages: PageNetwork = {
      resolve: async () => ["93.184.215.14"],
      request: async ({ pathname }) => ({
        status: pathname.endsWith("/2") ? 404 : 200,
        headers: { "content-type": "text/html" },
        body: (async function* () {
          yield Buffer.from(`<p>Far away. <p>The text about lake. ${"More. ".repeat(200)}`);
        })(),
      }),
    };
    const world = { ...testWorld(keys), pages };
    const { retriever } = await serper(organic, { pages: { type: "direct", maxCharacters: 100 } }, world);
    const [[first, second] = []] = await retriever.retrieve(["lake"], 2);
    expect(first?.passage.text).toContain("The text about lake.");
    expect(first?.passage.text.length).toBeLessThanOrEqual(100);
    expect(second?.passage).toMatchObject({
      text: "about lake 2",
      extra: { page: expect.stringContaining("404") },
    });
  });

  test("inside this network are refused and not asked for", async () => {
    const inner = await startServer(() => page("secret"));
    const { retriever } = await serper(
      () => ({ json: { organic: [{ title: "t", link: inner.url, snippet: "s" }] } }),
      { pages: { type: "direct" } },
    );
    const [[first] = []] = await retriever.retrieve(["q"], 1);
    expect(first?.passage).toMatchObject({
      text: "s",
      extra: { page: expect.stringContaining("127.0.0.1 is not a public address") },
    });
    expect(inner.requests).toEqual([]);
  });

  test("come from Jina Reader with its key, and count in the budget", async () => {
    const jina = await startServer(({ path }) =>
      path.endsWith("/3")
        ? { status: 422, text: "no page" }
        : { json: { code: 200, data: { title: "", content: `read ${path}` } } },
    );
    const { retriever } = await serper(organic, {
      pages: { type: "jina", url: jina.url, pricePerPage: 0.01 },
      budget: { maxCalls: 5 },
    });
    const [answer = []] = await retriever.retrieve(["lake"], 3);
    expect(answer.map(({ passage }) => passage.text)).toEqual([
      "read /https://page.test/lake/1",
      "read /https://page.test/lake/2",
      "about lake 3",
    ]);
    expect(jina.requests[0]?.headers.authorization).toBe("Bearer j1na-key");
    expect(retriever.spent()).toEqual({ calls: 3, tokens: 0, dollars: 0.021 });
    const error = await retriever.retrieve(["other"], 3).catch((e: unknown) => e);
    expect(isBudgetSpent(error)).toBe(true);
  });

  test("of Jina Reader stay counted when their answer is lost, each attempt once", async () => {
    const jina = await startServer(() => silence);
    const options = { pages: { type: "jina", url: jina.url }, timeoutMs: 100, retries: 1 };
    const { retriever } = await serper(organic, options);
    const [[first] = []] = await retriever.retrieve(["lake"], 1);
    expect(first?.passage.text).toBe("about lake 1");
    expect(jina.requests).toHaveLength(2);
    expect(retriever.spent().calls).toBe(3);
  });
});

test.each([
  [{ provider: "google-cse" }, "needs engineId"],
  [{ provider: "serper", depth: "advanced" }, "only provider tavily"],
  [{ provider: "tavily", language: "en" }, "no language"],
  [{ provider: "searxng", country: "us" }, "no country"],
  [{ provider: "searxng", keyVariable: "X" }, "no key"],
  [{ provider: "searxng", url: "http://u:p@host/search" }, "credentials"],
  [{ provider: "bing" }, "provider"],
])("options that would be ignored are refused: %j", (options, message) => {
  expect(() => webSourceSchema.parse({ type: "web", ...options })).toThrow(message);
});
