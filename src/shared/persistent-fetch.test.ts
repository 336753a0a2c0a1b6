import type { ServerResponse } from "node:http";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import type { FetchReply } from "./network-world.ts";
import { persistentFetch } from "./persistent-fetch.ts";
import { cutOff, deadUrl, silence, startServer } from "./server.fixture.ts";

const post = { method: "POST", body: '{"a":1}', redirect: "manual" } as const;

async function textOf(reply: FetchReply): Promise<string> {
  return Buffer.from(await reply.arrayBuffer()).toString();
}

test("a call has method, headers and body, a reply status, headers and body", async () => {
  const server = await startServer(() => ({
    status: 429,
    text: "é".repeat(100_000),
    headers: { "retry-after": "7" },
  }));
  const reply = await persistentFetch()(new URL(`${server.url}/x?y=1`), {
    ...post,
    headers: { "x-key": "k" },
  });
  expect([reply.status, reply.ok]).toEqual([429, false]);
  expect([reply.headers.get("Retry-After"), reply.headers.get("none")]).toEqual(["7", null]);
  expect(await textOf(reply)).toBe("é".repeat(100_000));
  const [seen] = server.requests;
  const headers = { "x-key": "k", "user-agent": "forager", "accept-encoding": "identity" };
  expect(seen).toMatchObject({ method: "POST", path: "/x?y=1", body: { a: 1 }, headers });
});

test("calls one after the other share a connection, those at once have their own", async () => {
  const ports = new Set<number | undefined>();
  const server = await startServer(() => (response) => {
    ports.add(response.req.socket.remotePort);
    setTimeout(() => response.end("{}"), 20);
  });
  const ask = persistentFetch();
  for (let i = 0; i < 3; i++) await textOf(await ask(server.url, post));
  expect(ports.size).toBe(1);
  await Promise.all([1, 2, 3].map(async () => await textOf(await ask(server.url, post))));
  expect(ports.size).toBe(3);
});

test("a redirection is an answer like any other", async () => {
  const server = await startServer(() => ({ status: 302, text: "", headers: { location: "/elsewhere" } }));
  const reply = await persistentFetch()(server.url, { redirect: "manual" });
  expect([reply.status, reply.headers.get("location")]).toEqual([302, "/elsewhere"]);
  expect(server.requests).toHaveLength(1);
});

describe("a reply that is compressed although nobody asked for it", () => {
  const text = "répété ".repeat(50_000);
  /** What a proxy sends: the length is that of the compressed body. */
  const compressed = (coding: string, body: Buffer) => () => (response: ServerResponse) => {
    response.writeHead(200, { "content-encoding": coding, "content-length": body.byteLength });
    response.end(body);
  };

  test.each([
    ["gzip", gzipSync(text)],
    ["X-GZIP", gzipSync(text)],
    ["deflate", deflateSync(text)],
    ["br", brotliCompressSync(text)],
    ["identity", Buffer.from(text)],
  ])("with %s is read as it was meant, over one connection", async (coding, body) => {
    const ports = new Set<number | undefined>();
    const answer = compressed(coding, body);
    const server = await startServer(() => (response) => {
      ports.add(response.req.socket.remotePort);
      answer()(response);
    });
    const ask = persistentFetch();
    for (let i = 0; i < 2; i++) expect(await textOf(await ask(server.url, post))).toBe(text);
    expect(ports.size).toBe(1);
  });

  test("and empty is empty", async () => {
    const server = await startServer(compressed("gzip", Buffer.alloc(0)));
    expect(await textOf(await persistentFetch()(server.url, post))).toBe("");
  });

  test("with what is not known is an error that says so", async () => {
    const server = await startServer(compressed("zstd", Buffer.from("?")));
    const asking = persistentFetch()(server.url, post);
    await expect(asking).rejects.toThrow("the reply is compressed with zstd, expected none, gzip");
  });

  test("and damaged or cut off is an error", async () => {
    const ask = persistentFetch();
    const damaged = await startServer(compressed("gzip", Buffer.from(text)));
    await expect(textOf(await ask(damaged.url, post))).rejects.toMatchObject({ code: "Z_DATA_ERROR" });
    const short = await startServer(compressed("gzip", gzipSync(text).subarray(0, -9)));
    await expect(textOf(await ask(short.url, post))).rejects.toMatchObject({ code: "Z_BUF_ERROR" });
    const broken = await startServer(() => (response) => {
      response.writeHead(200, { "content-encoding": "gzip", "content-length": 1000 });
      response.write(gzipSync(text).subarray(0, 20));
      setTimeout(() => response.destroy(), 20);
    });
    await expect(textOf(await ask(broken.url, post))).rejects.toThrow();
  });

  test("is read no further than its reader wants, and unpacked no further than a bound", async () => {
    const server = await startServer(compressed("gzip", gzipSync(Buffer.alloc(2 ** 23))));
    const controller = new AbortController();
    const reply = await persistentFetch()(server.url, { ...post, signal: controller.signal });
    expect((await reply.body?.getReader().read())?.done).toBe(false);
    controller.abort(new Error("enough"));
    await expect(reply.arrayBuffer().then(({ byteLength }) => byteLength)).rejects.toThrow("enough");
    const bounded = persistentFetch({ mostUnpackedBytes: 2 ** 20 });
    const whole = (await bounded(server.url, post)).arrayBuffer();
    await expect(whole.then(({ byteLength }) => byteLength)).rejects.toThrow("more than 1048576 bytes");
  });
});

describe("what fails is an error with a code", () => {
  test("where nothing listens", async () => {
    await expect(persistentFetch()(await deadUrl(), post)).rejects.toMatchObject({ code: "ECONNREFUSED" });
  });

  test("where the connection breaks before the reply, and within it", async () => {
    const cut = await startServer((request) =>
      request.path === "/before" ? (response) => response.destroy() : cutOff("half"),
    );
    const ask = persistentFetch();
    await expect(ask(`${cut.url}/before`, post)).rejects.toMatchObject({ code: "ECONNRESET" });
    const reply = await ask(`${cut.url}/within`, post);
    await expect(reply.arrayBuffer()).rejects.toMatchObject({ code: "ECONNRESET" });
  });
});

describe("an abort ends a call with its reason", () => {
  const reason = new Error("enough");

  test("before it starts", async () => {
    await expect(
      persistentFetch()(await deadUrl(), { ...post, signal: AbortSignal.abort(reason) }),
    ).rejects.toBe(reason);
  });

  test("while it waits for an answer", async () => {
    const silent = await startServer(() => silence);
    const controller = new AbortController();
    setTimeout(() => controller.abort(reason), 30);
    await expect(persistentFetch()(silent.url, { ...post, signal: controller.signal })).rejects.toBe(reason);
  });

  test("while the reply is read", async () => {
    const slow = await startServer(() => (response) => {
      response.writeHead(200, { "content-length": 10 });
      response.write("half");
    });
    const controller = new AbortController();
    const reply = await persistentFetch()(slow.url, { ...post, signal: controller.signal });
    setTimeout(() => controller.abort(reason), 30);
    await expect(reply.arrayBuffer()).rejects.toBe(reason);
  });
});
