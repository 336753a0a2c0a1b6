import { existsSync } from "node:fs";
import { type FileHandle, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { downloadModel, HubError, type HubOptions } from "./hub.ts";
import { writeWhole } from "./hub-download.ts";
import { content, gitHash, type Host, redirectTo, serve, startHost, token } from "./hub-server.fixture.ts";

const model = { repository: "owner/name", revision: "main" };
const path = "/owner/name/resolve/main/model.onnx";

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

  test.runIf(existsSync("/proc/self"))("that no folder can be made for is refused at once", async () => {
    hub.handle = (request, response) => serve(response, request.headers.range);
    await expect(get({ cacheFolder: "/proc/none" })).rejects.toThrow("/proc takes no new folders");
    expect(hub.seen).toEqual([]);
  });

  test("shows no token that cannot be sent", async () => {
    for (const strange of ["hf_secret\nmore", "hf_secret\u200b", "hf secret"]) {
      const error = await failure(get({ token: strange }));
      expect(error).toMatchObject({ reason: "unauthorized", message: expect.stringContaining("HF_TOKEN") });
      expect(`${error.message} ${String(error.cause)}`).not.toContain("secret");
    }
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

  test("that breaks off before what came of it is looked at goes on like any other", async () => {
    hub.handle = (request, response) => {
      response.setHeader("etag", `"${gitHash}"`);
      serve(response, request.headers.range, hub.seen.length === 1 ? 100_000 : undefined);
    };
    // The first question of the second attempt is one whose answer is not wanted: the rest is asked for.
    const asked: typeof fetch = async (url, init) => {
      const response = await fetch(url, init);
      if (hub.seen.length !== 2) return response;
      await response.body?.cancel();
      const broken = new ReadableStream({ start: (sink) => sink.error(new TypeError("terminated")) });
      return new Response(broken, { status: response.status, headers: response.headers });
    };
    await expectContent(await get({ fetch: asked }));
    expect(hub.seen.map(({ range }) => range === undefined)).toEqual([true, true, false]);
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
    hub.handle = (_, response) => {
      const headers = { date: new Date(0).toUTCString(), "retry-after": new Date(7_200_000).toUTCString() };
      response.writeHead(429, headers).end();
    };
    expect(await failure(get())).toMatchObject({ reason: "rate-limited", retryAfter: 7200 });
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

  test("and is waited for ends at once when aborted", async () => {
    const controller = new AbortController();
    const reason = new Error("enough");
    hub.handle = (_, response) => {
      response.writeHead(500).end();
      setTimeout(() => controller.abort(reason), 50);
    };
    const waiting = get({ signal: controller.signal, retryDelayMs: 3_600_000 });
    await expect(waiting).rejects.toBe(reason);
    expect(hub.seen).toHaveLength(1);
  });

  test("because its address holds credentials is told so without them", async () => {
    const endpoint = hub.address.replace("//", "//user:passw0rd@");
    const error = await failure(get({ endpoint }));
    expect(error.reason).toBe("refused");
    expect(error.message).toContain(`${hub.address}${path}: the address holds credentials`);
    const wrong = await get({ endpoint: "ftp://user:passw0rd@h" }).catch((e: unknown) => e as Error);
    for (const each of [error, error.cause, wrong]) expect(String(each)).not.toContain("passw0rd");
    hub.handle = redirectTo("ftp://user:passw0rd@h/x?key=passw0rd");
    expect((await failure(get())).message).not.toContain("passw0rd");
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

test("a piece of which the disk takes a part at a time is written whole", async () => {
  const disk = Buffer.alloc(12);
  const write = async (piece: Uint8Array, from: number, length: number, at: number) => {
    const bytesWritten = Math.min(3, length);
    disk.set(piece.subarray(from, from + bytesWritten), at);
    return { bytesWritten, buffer: piece };
  };
  await writeWhole({ write: write as FileHandle["write"] }, Buffer.from("0123456789"), 2);
  expect(disk.toString("latin1")).toBe("\0\u00000123456789");
});
