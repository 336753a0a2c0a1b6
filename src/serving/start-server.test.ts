/** The server on a real socket: clients that are slow, many, gone, or cut off, and the end of a server. */
import { Agent, type ClientRequest, type IncomingMessage, request } from "node:http";
import { connect } from "node:net";
import { buffer, text } from "node:stream/consumers";
import { expect, onTestFinished, test } from "vitest";
import type { Retriever } from "../retrieval/retriever.ts";
import type { RetrieverAppOptions } from "./retriever-app.ts";
import { appOf, heldRetriever, wordRetriever } from "./serving.fixture.ts";
import { type RunningServer, startServer } from "./start-server.ts";

async function serve(
  retriever: Retriever,
  options: Partial<RetrieverAppOptions> = {},
  graceMs = 30_000,
): Promise<RunningServer> {
  const server = await startServer(appOf(retriever, options).fetch, { host: "127.0.0.1", port: 0, graceMs });
  onTestFinished(() => server.close());
  return server;
}

const post = (server: RunningServer, body: unknown, init: RequestInit = {}): Promise<Response> =>
  fetch(`${server.url}/retrieve`, { method: "POST", body: JSON.stringify(body), ...init });

/** A request whose body the test writes itself. */
function open(server: RunningServer, headers: Record<string, string | number>): ClientRequest {
  return request(`${server.url}/retrieve`, { method: "POST", agent: false, headers });
}

const answerOf = (sent: ClientRequest): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => sent.on("response", resolve).on("error", reject));

const until = async (condition: () => boolean): Promise<void> => {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 1));
};

test("answers 256 clients at one time, each its own question", async () => {
  const server = await serve(wordRetriever());
  const answers = await Promise.all(
    Array.from({ length: 256 }, async (_, number) => {
      const word = number % 2 === 0 ? "France" : "Italy";
      const response = await post(server, { queries: [word, `only ${number}`], topk: 1 });
      const { result } = (await response.json()) as { result: { title: string }[][] };
      return result[0]?.[0]?.title === word && result[1]?.length === 0;
    }),
  );
  expect(answers).toEqual(Array(256).fill(true));
});

test("takes a body in chunks that cut characters, and answers HEAD", async () => {
  const server = await serve(wordRetriever());
  const body = Buffer.from(JSON.stringify({ queries: ["🗼"] }));
  const sent = open(server, {});
  for (const byte of body) sent.write(Buffer.of(byte));
  sent.end();
  const response = await answerOf(sent);
  expect(response.statusCode).toBe(200);
  expect(JSON.parse(await text(response))).toEqual({ result: [[]] });
  expect((await fetch(`${server.url}/health`, { method: "HEAD" })).status).toBe(200);
});

test("refuses a huge body before it is read, and the same client may go on", async () => {
  const server = await serve(wordRetriever(), { limits: { bodyBytes: 1000 } });
  const response = await post(server, { queries: ["x".repeat(100_000)] });
  expect(response.status).toBe(413);
  expect(await response.json()).toMatchObject({ expected: "a body of at most 1000 bytes" });
  expect((await post(server, { queries: ["Italy"] })).status).toBe(200);
  const endless = open(server, {});
  const answer = answerOf(endless);
  const writer = setInterval(() => endless.write("x".repeat(500)), 1);
  endless.on("error", () => undefined); // the server hangs up, as it should
  expect((await answer).statusCode).toBe(413);
  clearInterval(writer);
  endless.destroy();
});

/** All that the server answers to a client that reads nothing before it has written everything. */
async function writeThenRead(
  server: RunningServer,
  parts: readonly string[],
  pause: () => Promise<void> = async () => undefined,
): Promise<string> {
  const socket = connect(server.port, "127.0.0.1").pause();
  onTestFinished(() => void socket.destroy());
  const failed = new Promise<never>((_, reject) => socket.once("error", reject));
  const written = async (): Promise<string> => {
    for (const part of parts) {
      await new Promise<void>((resolve, reject) =>
        socket.write(part, (error) => (error ? reject(error) : resolve())),
      );
      await pause();
    }
    return (await new Promise<Buffer>((resolve) => socket.once("data", resolve).resume())).toString();
  };
  return await Promise.race([written(), failed]);
}

const head = "POST /retrieve HTTP/1.1\r\nhost: a\r\n";
const pieces = Array<string>(256).fill("x".repeat(2 ** 16));
const large = `content-length: ${2 ** 24}\r\n\r\n`;

test("explains itself to a client that writes a body which is too large before it reads", async () => {
  const most = 2 ** 20;
  const server = await serve(wordRetriever(), { limits: { bodyBytes: most } });
  const inChunks = [
    `${head}transfer-encoding: chunked\r\n\r\n`,
    ...pieces.map((piece) => `${piece.length.toString(16)}\r\n${piece}\r\n`),
    "0\r\n\r\n",
  ];
  for (const parts of [[`${head}${large}`, ...pieces], inChunks]) {
    const answer = await writeThenRead(server, parts);
    expect(answer).toMatch(/^HTTP\/1\.1 413 /);
    expect(answer).toContain(`expected a body of at most ${most} bytes`);
  }
});

test.each([
  [401, "", { apiKey: "s3cret" }, "the server's API key"],
  [415, "content-encoding: gzip\r\n", {}, "without content encoding"],
  [429, "", { limits: { pendingBytes: 1000 } }, "at most 1000 bytes at one time"],
] as const)(
  "explains %i to a client that writes a large body slowly before it reads, and serves it further",
  async (status, header, options, said) => {
    const server = await serve(wordRetriever(), options);
    const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 3));
    const answer = await writeThenRead(server, [`${head}${header}${large}`, ...pieces], pause);
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(answer).toContain(said);
  },
);

test("reads what follows a refusal only so far", async () => {
  for (const limits of [
    { bytes: 2 ** 20, ms: 60_000 },
    { bytes: 2 ** 40, ms: 100 },
  ]) {
    const app = appOf(wordRetriever(), { apiKey: "s3cret" });
    const server = await startServer(app.fetch, { host: "127.0.0.1", port: 0, drain: limits });
    onTestFinished(() => server.close());
    const endless = connect(server.port, "127.0.0.1");
    endless.write(`${head}content-length: ${2 ** 40}\r\n\r\n`);
    const writer = setInterval(() => endless.write(pieces[0] as string), 1);
    await new Promise((resolve) =>
      endless
        .once("close", resolve)
        .on("error", () => undefined)
        .resume(),
    );
    clearInterval(writer);
  }
});

test("gives up a body that does not come, with or without a length", async () => {
  const server = await serve(wordRetriever(), { limits: { requestMs: 50 } });
  for (const headers of [{ "content-length": 100 }, {}]) {
    const sent = open(server, headers);
    sent.on("error", () => undefined); // the server hangs up, as it should
    sent.write('{"queries"');
    const response = await answerOf(sent);
    expect(response.statusCode).toBe(408);
    expect(JSON.parse(await text(response))).toMatchObject({ got: "a part of it" });
  }
});

test("lets clients that announce a body and send nothing take no room from others", async () => {
  const server = await serve(wordRetriever(), { limits: { bodyBytes: 1000, pendingBytes: 1000 } });
  const silent = Array.from({ length: 4 }, () => open(server, { "content-length": 1000 }));
  for (const sent of silent) {
    sent.on("error", () => undefined);
    sent.write("{");
  }
  await new Promise((resolve) => setTimeout(resolve, 50)); // they are heard
  expect((await post(server, { query: "Italy" })).status).toBe(200);
  for (const sent of silent) sent.destroy();
});

test("stops the search of a client that goes away, whether it runs or waits", async () => {
  const retriever = heldRetriever();
  const server = await serve(retriever, { limits: { concurrency: 1 } });
  const clients = [new AbortController(), new AbortController()];
  const gone: string[] = [];
  for (const { signal } of clients) {
    post(server, { query: "Italy" }, { signal }).catch((error: Error) => gone.push(error.name));
    await until(() => retriever.signals.length === 1);
  }
  const stats = async (): Promise<unknown> => (await fetch(`${server.url}/stats`)).json();
  for (let waiting = 0; waiting < 1; ) ({ waiting } = (await stats()) as { waiting: number });
  clients[1]?.abort();
  for (let waiting = 1; waiting > 0; ) ({ waiting } = (await stats()) as { waiting: number });
  expect(retriever.signals[0]?.aborted).toBe(false);
  clients[0]?.abort();
  await until(() => retriever.signals[0]?.aborted === true && gone.length === 2);
  expect(gone).toEqual(["AbortError", "AbortError"]);
  expect(retriever.signals).toHaveLength(1);
  const metrics = await (await fetch(`${server.url}/metrics`)).text();
  expect(metrics).toContain('status="499"} 2');
});

test("gives up a client that takes no answer, and none that does", async () => {
  const large = new Uint8Array(32 * 2 ** 20);
  const answer = async ({ url }: Request): Promise<Response> => {
    if (url.endsWith("/slow")) await new Promise((resolve) => setTimeout(resolve, 1200));
    return new Response(url.endsWith("/large") ? large : "small");
  };
  const server = await startServer(answer, { host: "127.0.0.1", port: 0, stalledMs: 400 });
  onTestFinished(() => server.close());
  const stalled = connect(server.port, "127.0.0.1").on("error", () => undefined);
  stalled.write("GET /large HTTP/1.1\r\nhost: a\r\n\r\n");
  // Over one connection: an answer that was taken sets no limit to the next one, which is longer in the making.
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  onTestFinished(() => agent.destroy());
  const ask = async (path: string): Promise<number> => {
    const reply = await answerOf(request(`${server.url}${path}`, { agent }).end());
    return (await buffer(reply)).length;
  };
  expect([await ask("/large"), await ask("/slow"), await ask("/slow")]).toEqual([large.length, 5, 5]);
  await new Promise((resolve) => setTimeout(resolve, 4000));
  stalled.resume();
  await until(() => stalled.closed || stalled.bytesRead >= large.length);
  expect(stalled.bytesRead).toBeLessThan(large.length);
});

test("ends in good order: running requests are answered, new connections refused, kept ones closed", async () => {
  const stopping = new AbortController();
  const retriever = heldRetriever();
  const server = await serve(retriever, { stopping: stopping.signal });
  const kept = connect(server.port, "127.0.0.1");
  await new Promise((resolve) => kept.once("connect", resolve));
  const running = post(server, { queries: ["a", "b"] });
  await until(() => retriever.signals.length === 1);
  stopping.abort();
  const end = server.close();
  await expect(fetch(`${server.url}/health`)).rejects.toThrow("fetch failed");
  retriever.release();
  const response = await running;
  expect([response.status, await response.json()]).toEqual([200, { result: [[], []] }]);
  expect(response.headers.get("connection")).toBe("close");
  await end;
  await server.close();
  if (!kept.closed) await new Promise((resolve) => kept.once("close", resolve));
});

test("cuts off what still runs when the time of grace is over", async () => {
  const retriever = heldRetriever();
  const server = await serve(retriever, {}, 20);
  const running = post(server, { query: "a" }).catch((error: Error) => error.message);
  await until(() => retriever.signals.length === 1);
  await server.close();
  expect(await running).toBe("fetch failed");
});

test("answers what is no HTTP with a status, and goes on", async () => {
  const server = await serve(wordRetriever());
  for (const [line, status] of [
    ["nonsense\r\n\r\n", "400"],
    ["GET /health HTTP/1.1\r\nhost: a b\r\n\r\n", "400"],
    [`GET /${"x".repeat(20_000)} HTTP/1.1\r\nhost: a\r\n\r\n`, "431"],
    ["GET /%ff/%2e%2e/ HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n", "404"],
  ] as const) {
    const socket = connect(server.port, "127.0.0.1");
    socket.write(line);
    const [first] = await new Promise<Buffer[]>((resolve) => socket.once("data", (data) => resolve([data])));
    expect(first?.toString().slice(9, 12)).toBe(status);
    socket.destroy();
  }
  expect((await post(server, { query: "Italy" })).status).toBe(200);
});

test("answers HTTP/1.0 without a host, as load balancers ask, and closes", async () => {
  const server = await serve(wordRetriever());
  const socket = connect(server.port, "127.0.0.1");
  socket.write("GET /health HTTP/1.0\r\n\r\n");
  expect(await text(socket)).toMatch(/^HTTP\/1\.1 200 OK\r\n[\s\S]*"status":"healthy"/);
});

test("says which port is taken", async () => {
  const { port } = await serve(wordRetriever());
  const second = startServer(appOf(wordRetriever()).fetch, { host: "127.0.0.1", port });
  await expect(second).rejects.toThrow(`port ${port}: it is taken; choose another one`);
});
