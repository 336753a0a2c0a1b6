import { describe, expect, test } from "vitest";
import { RetrieverError } from "../errors.ts";
import { fetchJson, type HttpCall, type HttpPolicy, redact, retryAfterMs } from "./http.ts";
import { keyOf } from "./network-world.ts";
import { cutOff, deadUrl, silence, startServer, testWorld } from "./server.fixture.ts";

const policy: HttpPolicy = {
  error: RetrieverError,
  timeoutMs: 5000,
  retries: 2,
  backoffMs: 100,
  maxReplyBytes: 10_000,
  secrets: [],
};

function call(url: string, path = "/x?api_key=hidden"): HttpCall {
  return { method: "POST", url: `${url}${path}`, body: { a: 1 } };
}

describe("causes that pass are tried again", () => {
  const answers = {
    "a server error": { status: 500, text: "broken" },
    "too many requests": { status: 429, text: "" },
    "a connection that breaks": cutOff('{"a":'),
  };
  test.each(Object.entries(answers))("%s", async (_, answer) => {
    const server = await startServer((_request, count) => (count < 3 ? answer : { json: { ok: true } }));
    const world = testWorld();
    expect(await fetchJson(call(server.url), policy, { world })).toEqual({ ok: true });
    expect(server.requests).toHaveLength(3);
    expect(world.waits).toEqual([100, 200]);
  });

  test("but not for ever, and the message says what came last, without the query string", async () => {
    const server = await startServer(() => ({ status: 503, text: "index\n is loading" }));
    const error = await fetchJson(call(server.url), policy, { world: testWorld() }).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(RetrieverError);
    expect((error as Error).message).toBe(
      `POST ${server.url}/x: got 503: "index is loading" (attempt 3 of 3)`,
    );
  });

  test("nothing listens: the message says so", async () => {
    const once = { ...policy, retries: 0 };
    await expect(fetchJson(call(await deadUrl()), once, { world: testWorld() })).rejects.toThrow(
      /127\.0\.0\.1:\d+\/x: no connection: nothing listens there; start/,
    );
    // Browsers never connect to this port.
    await expect(fetchJson(call("http://127.0.0.1:9"), once, { world: testWorld() })).rejects.toThrow(
      "nothing listens there",
    );
  });

  test("no answer within the time limit, each time lost", async () => {
    const server = await startServer(() => silence);
    let lost = 0;
    const slow = { ...policy, timeoutMs: 30, retries: 1, onLost: () => lost++ };
    await expect(fetchJson(call(server.url), slow, { world: testWorld() })).rejects.toThrow(
      "no answer within 0.03 s (attempt 2 of 2)",
    );
    expect(lost).toBe(2);
  });
});

test("a reply compressed in a way nobody reads is not asked for again, and the message says what to switch off", async () => {
  const server = await startServer(() => ({
    status: 200,
    text: "?",
    headers: { "content-encoding": "zstd" },
  }));
  const error = await fetchJson(call(server.url), policy, { world: testWorld() }).catch((e: unknown) => e);
  expect(error).toBeInstanceOf(RetrieverError);
  expect((error as Error).message).toBe(
    `POST ${server.url}/x: the reply is compressed with zstd, expected none, gzip, deflate or br; switch that off at the server or the proxy before it`,
  );
  expect(server.requests).toHaveLength(1);
});

describe("Retry-After", () => {
  test("is obeyed when longer than the back-off", async () => {
    const server = await startServer((_request, count) =>
      count === 1 ? { status: 429, text: "", headers: { "retry-after": "7" } } : { json: 1 },
    );
    const world = testWorld();
    await fetchJson(call(server.url), policy, { world });
    expect(world.waits).toEqual([7000]);
  });

  test("of more than a minute ends the call at once", async () => {
    const server = await startServer(() => ({ status: 429, text: "", headers: { "retry-after": "3600" } }));
    await expect(fetchJson(call(server.url), policy, { world: testWorld() })).rejects.toThrow(
      "the server asks to wait 3600 s",
    );
    expect(server.requests).toHaveLength(1);
  });

  test("may be a date", () => {
    const now = Date.UTC(2026, 10, 29, 12);
    expect(retryAfterMs("Sun, 29 Nov 2026 12:00:30 GMT", now)).toBe(30_000);
    expect(retryAfterMs("Sun, 29 Nov 2026 11:00:00 GMT", now)).toBe(0);
    expect(retryAfterMs("soon", now)).toBeUndefined();
  });
});

describe("what does not pass is not tried again", () => {
  test.each([
    [{ status: 404, text: "no such route" }, 'expected status 200, got 404: "no such route"'],
    [{ status: 401, text: "" }, "got 401 (the key is missing, wrong or without rights)"],
    [
      { status: 302, text: "", headers: { location: "http://elsewhere" } },
      "a redirect, which is not followed",
    ],
    [{ text: '{"a": [1, ' }, String.raw`expected JSON, got "{\"a\": [1,"`],
    [{ text: "" }, "expected JSON, got nothing"],
    [{ text: "x".repeat(20_000) }, "expected a reply of at most 10000 bytes"],
  ])("%j", async (answer, message) => {
    const server = await startServer(() => answer);
    await expect(fetchJson(call(server.url), policy, { world: testWorld() })).rejects.toThrow(message);
    expect(server.requests).toHaveLength(1);
  });
});

test("an aborted call ends with the reason of the signal, during a call and while waiting", async () => {
  const reason = new Error("enough");
  const silent = await startServer(() => silence);
  const controller = new AbortController();
  const asking = fetchJson(call(silent.url), policy, { world: testWorld(), signal: controller.signal });
  setTimeout(() => controller.abort(reason), 30);
  await expect(asking).rejects.toBe(reason);

  const failing = await startServer(() => ({ status: 500, text: "" }));
  const waiting = new AbortController();
  const world = { ...testWorld(), sleep: async () => waiting.abort(reason) };
  await expect(fetchJson(call(failing.url), policy, { world, signal: waiting.signal })).rejects.toBe(reason);
  expect(failing.requests).toHaveLength(1);
});

describe("a secret", () => {
  test("that the server sends back is not in the message, nor in its cause", async () => {
    const secret = "s3cr3t+/key";
    const server = await startServer(() => ({
      status: 400,
      text: `bad key ${secret} or ${encodeURIComponent(secret)}`,
    }));
    const error = (await fetchJson(
      call(server.url),
      { ...policy, secrets: [secret] },
      { world: testWorld() },
    ).catch((e: unknown) => e)) as Error;
    expect(error.message).toContain("bad key *** or ***");
    expect(JSON.stringify([error.message, String(error.cause), error.stack])).not.toContain("s3cr3t");
  });

  test("is replaced in each form", () => {
    expect(redact('a"b a%22b a\\"b', ['a"b'])).toBe("*** *** ***");
  });

  test("comes from the named variable, is never shown, and must be there", () => {
    expect(keyOf("A_KEY", { keys: { A_KEY: " key \n" } })).toBe("key");
    expect(() => keyOf("A_KEY", { keys: {} })).toThrow("in the environment variable A_KEY, got nothing");
    expect(() => keyOf("constructor", { keys: {} })).toThrow("got nothing");
    const broken = (): string => keyOf("A_KEY", { keys: { A_KEY: "half\nkey" } });
    expect(broken).toThrow("printable ASCII");
    expect(broken).not.toThrow("half");
  });
});
