import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ConfigError, FileError } from "../errors.ts";
import { downloadModel, HubError, type HubOptions, isHubReference, parseHubReference } from "./hub.ts";

const content = Buffer.from(Array.from({ length: 300_000 }, (_, i) => (i * 7919) % 251));
const sha256 = createHash("sha256").update(content).digest("hex");
const gitHash = createHash("sha1").update(`blob ${content.length}\0`).update(content).digest("hex");
const token = "hf_secret_token";
const model = { repository: "owner/name", revision: "main" };
const path = "/owner/name/resolve/main/model.onnx";

interface Seen {
  readonly url: string;
  readonly authorization: string | undefined;
  readonly range: string | undefined;
}

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

interface Host {
  readonly address: string;
  readonly seen: Seen[];
  handle: Handler;
  close(): Promise<void>;
}

async function startHost(): Promise<Host> {
  const host: { handle: Handler; seen: Seen[] } = { handle: (_, response) => response.end(), seen: [] };
  const server: Server = createServer((request, response) => {
    const { authorization, range } = request.headers;
    host.seen.push({ url: request.url ?? "", authorization, range });
    host.handle(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  return Object.assign(host, { address, close });
}

let scratch: string;
let hub: Host;
let storage: Host;
beforeEach(async () => {
  scratch = await mkdtemp(join(tmpdir(), "forager-hub-"));
  hub = await startHost();
  storage = await startHost();
});
afterEach(async () => {
  await hub.close();
  await storage.close();
  await rm(scratch, { recursive: true, force: true });
});

/** Serves the content, whole or from where it is asked; `most` bytes, then the connection breaks. */
function serve(response: ServerResponse, range: string | undefined, most = content.length): void {
  const start = Number(/^bytes=(\d+)-$/.exec(range ?? "")?.[1] ?? 0);
  const rest = content.subarray(start);
  response.setHeader("content-length", rest.length);
  if (range !== undefined) {
    response.statusCode = 206;
    response.setHeader("content-range", `bytes ${start}-${content.length - 1}/${content.length}`);
  }
  if (most >= rest.length) response.end(rest);
  else response.write(rest.subarray(0, most), () => response.destroy());
}

/** The hub points to the storage host and says what the file is. */
function redirectTo(location: string, more: Readonly<Record<string, string>> = {}): Handler {
  return (_, response) => {
    response.writeHead(302, {
      location,
      "x-linked-etag": `"${sha256}"`,
      "x-linked-size": String(content.length),
      "x-repo-commit": "c0ffee",
      ...more,
    });
    response.end();
  };
}

function get(options: Partial<HubOptions> = {}, files = ["model.onnx"]): Promise<string> {
  return downloadModel(
    model,
    files.map((file) => ({ anyOf: [file] })),
    { endpoint: hub.address, cacheFolder: scratch, token, retryDelayMs: 1, ...options },
  );
}

/** Comparing by `toEqual` takes most of a second. */
async function expectContent(folder: string): Promise<void> {
  expect(content.equals(await readFile(join(folder, "model.onnx")))).toBe(true);
}

async function failure(promise: Promise<unknown>): Promise<HubError> {
  const error = await promise.then(
    () => expect.fail("it did not fail"),
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(HubError);
  expect((error as HubError).message).not.toContain(token);
  return error as HubError;
}

describe("a file of a model", () => {
  test("is fetched from where the hub points to, checked, and not fetched again", async () => {
    hub.handle = redirectTo(`${storage.address}/blob?key=1`);
    storage.handle = (request, response) => serve(response, request.headers.range);
    const folder = await get();
    expect(folder).toBe(join(scratch, "owner", "name", "main"));
    await expectContent(folder);
    expect((await readdir(folder)).sort()).toEqual(["download.json", "model.onnx"]);
    await get();
    expect(hub.seen.map(({ url }) => url)).toEqual([path]);
  });

  test("costs the token to the hub alone, also when the hub redirects within itself first", async () => {
    hub.handle = (request, response) => {
      if (request.url === path) redirectTo("/moved")(request, response);
      else redirectTo(`${storage.address}/blob`)(request, response);
    };
    storage.handle = (request, response) => serve(response, request.headers.range);
    await get();
    expect(hub.seen.map(({ authorization }) => authorization)).toEqual([
      `Bearer ${token}`,
      `Bearer ${token}`,
    ]);
    expect(storage.seen.map(({ authorization }) => authorization)).toEqual([undefined]);
  });

  test("that breaks off again and again comes in pieces, each from where the last ended", async () => {
    hub.handle = redirectTo(`${storage.address}/blob`);
    storage.handle = (request, response) => serve(response, request.headers.range, 70_000);
    const progress: number[] = [];
    const folder = await get({ retries: 1, onProgress: ({ bytes }) => progress.push(bytes) });
    await expectContent(folder);
    const starts = storage.seen.map(({ range }) => Number(/\d+/.exec(range ?? "0")?.[0]));
    expect(starts.length).toBeGreaterThanOrEqual(5);
    expect(starts).toEqual([...new Set(starts)].sort((a, b) => a - b));
    expect(progress.at(-1)).toBe(content.length);
  });

  test("that broke off in one process is continued by the next", async () => {
    hub.handle = redirectTo(`${storage.address}/blob`);
    storage.handle = (request, response) => serve(response, request.headers.range, 100_000);
    const error = await failure(get({ retries: 0 }));
    expect(error.reason).toBe("broken-off");
    expect(error.message).toMatch(/broke off after \d+ of 300000 bytes|broke off after \d+ bytes/);
    storage.handle = (request, response) => serve(response, request.headers.range);
    const folder = await get();
    await expectContent(folder);
    expect(storage.seen.at(-1)?.range).toMatch(/^bytes=[1-9]\d*-$/);
    expect((await readdir(folder)).sort()).toEqual(["download.json", "model.onnx"]);
  });

  test("that changed meanwhile is not glued to the old beginning", async () => {
    hub.handle = redirectTo(`${storage.address}/blob`, { "x-linked-etag": '"older"' });
    storage.handle = (request, response) => serve(response, request.headers.range, 100_000);
    await failure(get({ retries: 0 }));
    hub.handle = redirectTo(`${storage.address}/blob`);
    storage.handle = (request, response) => serve(response, request.headers.range);
    const folder = await get();
    expect(storage.seen.at(-1)?.range).toBeUndefined();
    await expectContent(folder);
  });

  test("is fetched whole where the server knows no ranges", async () => {
    hub.handle = redirectTo(`${storage.address}/blob`);
    storage.handle = (_, response) =>
      serve(response, undefined, storage.seen.length === 1 ? 100_000 : undefined);
    const folder = await get();
    await expectContent(folder);
    expect(storage.seen[1]?.range).toBeDefined();
  });

  test("that is small comes from the hub itself and is checked by its Git hash", async () => {
    hub.handle = (request, response) => {
      response.setHeader("etag", `W/"${gitHash}"`);
      serve(response, request.headers.range, hub.seen.length === 1 ? 100_000 : undefined);
    };
    const folder = await get();
    await expectContent(folder);
    expect(hub.seen.at(-1)?.range).toMatch(/^bytes=[1-9]/);
  });

  test.each([
    [
      "wrong-hash",
      '"sha"',
      { "x-linked-etag": `"${"0".repeat(64)}"` },
      /hash .* the hub says 000000000000….*nothing was kept/,
    ],
    ["wrong-hash", '"git"', { "x-linked-etag": `"${"0".repeat(40)}"` }, /hash .* the hub says 000000000000…/],
    ["wrong-length", "more", { "x-linked-size": "299999" }, /has 299999 bytes, 300000 were announced/],
    ["wrong-length", "less", { "x-linked-size": "300001" }, /has 300001 bytes, 300000 were announced/],
  ] as const)("of another content is refused: %s (%s)", async (reason, _, headers, message) => {
    hub.handle = redirectTo(`${storage.address}/blob`, headers);
    storage.handle = (request, response) => serve(response, request.headers.range);
    const error = await failure(get());
    expect(error.reason).toBe(reason);
    expect(error.message).toMatch(message);
    expect(storage.seen).toHaveLength(1);
    expect(await readdir(join(scratch, "owner", "name", "main"))).toEqual([]);
  });

  test("longer or shorter than the hub says is refused when its length is not announced", async () => {
    hub.handle = redirectTo(`${storage.address}/blob`, { "x-linked-size": "200000" });
    storage.handle = (_, response) => {
      response.write(content); // chunked: no length
      response.end();
    };
    expect((await failure(get())).reason).toBe("wrong-length");
    hub.handle = redirectTo(`${storage.address}/blob`, { "x-linked-size": "400000" });
    expect((await failure(get({ retries: 1 }))).reason).toBe("broken-off");
  });

  test("of which the server sends another part than asked for is refused", async () => {
    hub.handle = redirectTo(`${storage.address}/blob`);
    storage.handle = (_, response) => {
      if (storage.seen.length === 1) return serve(response, undefined, 100_000);
      serve(response, "bytes=5-");
    };
    const error = await failure(get());
    expect(error.reason).toBe("wrong-length");
    expect(error.message).toMatch(/asked for the bytes from \d+ of 300000, it sent "bytes 5-299999\/300000"/);
  });

  test("of which all is there already needs only its check", async () => {
    hub.handle = redirectTo(`${storage.address}/blob`);
    storage.handle = (_, response) => {
      // Everything comes, but the connection never ends well.
      response.write(content, () => setTimeout(() => response.destroy(), 50));
    };
    await failure(get({ retries: 0 }));
    storage.handle = (_, response) => response.writeHead(416).end();
    const folder = await get();
    await expectContent(folder);
  });
});

describe("a hub that gives nothing", () => {
  test.each([
    [401, "unauthorized", /HF_TOKEN.*check the name/],
    [403, "forbidden", /Accept the terms/],
    [404, "not-found", /does not exist \(404\); check name, revision and file/],
    [418, "refused", /status 418/],
  ] as const)("with status %i is asked once", async (status, reason, message) => {
    hub.handle = (_, response) => response.writeHead(status).end("no");
    const error = await failure(get());
    expect(error.reason).toBe(reason);
    expect(error.message).toMatch(message);
    expect(hub.seen).toHaveLength(1);
  });

  test.each([429, 500, 503])("with status %i is asked again, and answers", async (status) => {
    hub.handle = (request, response) => {
      if (hub.seen.length < 3) response.writeHead(status, { "retry-after": "0" }).end();
      else serve(response, request.headers.range);
    };
    const folder = await get();
    await expectContent(folder);
    expect(hub.seen).toHaveLength(3);
  });

  test("and asks to wait for long ends with the time to wait", async () => {
    hub.handle = (_, response) => response.writeHead(429, { "retry-after": "3600" }).end();
    const error = await failure(get());
    expect(error).toMatchObject({ reason: "rate-limited", retryAfter: 3600 });
    expect(error.message).toContain("try again in 3600 seconds");
    expect(hub.seen).toHaveLength(1);
  });

  test("because nobody answers, falls silent, or leads in circles says so", async () => {
    const gone = await startHost();
    await gone.close();
    expect((await failure(get({ endpoint: gone.address, retries: 1 }))).reason).toBe("network");
    hub.handle = redirectTo(`${storage.address}/blob`);
    storage.handle = (_, response) => {
      response.writeHead(200, { "content-length": String(content.length) });
      response.write(content.subarray(0, 1000));
    };
    const silent = await failure(get({ retries: 0, stallMs: 200 }));
    expect(silent.reason).toBe("broken-off");
    hub.handle = redirectTo("/again");
    expect((await failure(get())).message).toContain("without end");
    hub.handle = redirectTo("file:///etc/passwd");
    expect((await failure(get())).message).toContain("no web address");
  });

  test("when it is aborted ends with the reason", async () => {
    const controller = new AbortController();
    const reason = new Error("enough");
    hub.handle = redirectTo(`${storage.address}/blob`);
    storage.handle = (_, response) => {
      response.write(content.subarray(0, 1000));
      controller.abort(reason);
    };
    await expect(get({ signal: controller.signal })).rejects.toBe(reason);
  });
});

describe("a model", () => {
  test("is of one commit, also when the branch moves on", async () => {
    hub.handle = (request, response) => {
      response.setHeader("x-repo-commit", hub.seen.length === 1 ? "first" : "second");
      serve(response, request.headers.range);
    };
    const folder = await get({}, ["a.json", "sub/b.json"]);
    await get({}, ["c.json"]);
    expect(hub.seen.map(({ url }) => url.split("/resolve/")[1])).toEqual([
      "main/a.json",
      "first/sub/b.json",
      "first/c.json",
    ]);
    expect(JSON.parse(await readFile(join(folder, "download.json"), "utf8"))).toEqual({
      commit: "first",
      absent: [],
    });
  });

  test("may offer one of several files, and lack what is optional", async () => {
    hub.handle = (request, response) => {
      if (request.url?.endsWith("/onnx/model.onnx")) serve(response, undefined);
      else response.writeHead(404).end();
    };
    const options = { endpoint: hub.address, cacheFolder: scratch };
    const wanted = [
      { anyOf: ["model.onnx", "onnx/model.onnx"] },
      { anyOf: ["1_Pooling/config.json"], optional: true },
    ];
    const folder = await downloadModel(model, wanted, options);
    expect(existsSync(join(folder, "onnx", "model.onnx"))).toBe(true);
    const neither = downloadModel(model, [{ anyOf: ["a.onnx", "b.onnx"] }], options);
    expect((await failure(neither)).message).toMatch(/has none of a.onnx, b.onnx; check name and revision/);
    await expect(downloadModel(model, wanted, { ...options, offline: true })).resolves.toBe(folder);
    const offline = downloadModel(model, [{ anyOf: ["a.onnx"] }], { ...options, offline: true });
    await expect(offline).rejects.toThrow(FileError);
    await expect(offline).rejects.toThrow(/a.onnx is missing\) and downloads are switched off/);
  });

  test("is asked once for what it does not have", async () => {
    hub.handle = (request, response) => {
      response.setHeader("x-repo-commit", "first");
      if (request.url?.endsWith("/model.onnx")) serve(response, undefined);
      else response.writeHead(404).end();
    };
    const options = { endpoint: hub.address, cacheFolder: scratch };
    const wanted = [{ anyOf: ["model.onnx"] }, { anyOf: ["modules.json"], optional: true }];
    for (let i = 0; i < 3; i++) await downloadModel(model, wanted, options);
    expect(hub.seen).toHaveLength(2);
  });

  test("is named as hf:owner/name or with a revision, and nothing leads out of the cache", async () => {
    expect(parseHubReference("hf:BAAI/bge-small-en-v1.5")).toEqual({
      repository: "BAAI/bge-small-en-v1.5",
      revision: "main",
    });
    expect(parseHubReference("hf:a/b@refs/pr/1").revision).toBe("refs/pr/1");
    expect([isHubReference("hf:a/b"), isHubReference("./hf/a")]).toEqual([true, false]);
    for (const bad of [
      "hf:a",
      "hf:a/b/c",
      "hf:../b",
      "hf:a/..",
      "hf:a/b@",
      "hf:a/b@../../c",
      "hf:a/b@x//y",
      "hf:a b/c",
    ])
      expect(() => parseHubReference(bad)).toThrow(ConfigError);
    for (const bad of ["../x", "/etc/passwd", "a//b", "a/../../b", "C:\\x"])
      await expect(get({}, [bad])).rejects.toThrow(/a path within the model/);
    await expect(get({ endpoint: "not a url" })).rejects.toThrow(/must be a URL/);
    expect(hub.seen).toEqual([]);
  });
});
