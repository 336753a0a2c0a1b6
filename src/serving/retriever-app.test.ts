/** What the server says when it cannot answer, and what it tells of itself. */
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { RetrieverError } from "../errors.ts";
import type { Retriever } from "../retrieval/retriever.ts";
import { appOf, get, heldRetriever, passages, post, wordRetriever } from "./serving.fixture.ts";

const query = { query: "Italy" };

describe("a request that is wrong", () => {
  test.each([
    ["is not JSON", '{"queries": [', 400, "JSON"],
    ["is empty", "", 400, "an empty body"],
    ["is a list", "[1]", 422, "a list of 1"],
    ["has no query", { topk: 3 }, 422, 'the keys "topk"'],
    ["has query and queries", { query: "a", queries: ["a"] }, 422, "both"],
    ["has one text for queries", { queries: "a" }, 422, '"a"'],
    ["has a query that is a number", { queries: ["a", 7] }, 422, "7 at queries[1]"],
    ["has a topk of 0", { ...query, topk: 0 }, 422, "0"],
    ["has a topk that is negative", { ...query, topk: -1 }, 422, "-1"],
    ["has a topk that is half", { ...query, topk: 1.5 }, 422, "1.5"],
    ["has a topk that is a word", { ...query, topk: "many" }, 422, '"many"'],
    ["has a topk beyond the limit", { ...query, topk: 1001 }, 422, "1001"],
    ["has two numbers of passages", { ...query, topk: 1, top_k: 2 }, 422, '"topk": 1 and "top_k": 2'],
    ["has a flag that is none", { ...query, return_scores: "perhaps" }, 422, '"perhaps"'],
    ["has too many queries", { queries: Array(8193).fill("") }, 422, "8193"],
    ["has a long query", { queries: ["", "x".repeat(20_000)] }, 422, "20000 characters in query 1"],
    ["asks for too many passages", { queries: Array(300).fill(""), topk: 1000 }, 422, "= 300000"],
  ])("gets %s explained", async (_, body, status, got) => {
    const retriever = wordRetriever();
    const answer = await post(appOf(retriever), "/retrieve", body);
    expect(answer.status).toBe(status);
    const error = answer.json as Record<"error" | "expected" | "got" | "advice", string>;
    expect(error.got).toContain(got);
    expect(error.error).toBe(`expected ${error.expected}; got ${error.got}; ${error.advice}`);
    expect(error.advice).not.toBe("");
    expect(error.error.length).toBeLessThan(600);
    expect(retriever.calls).toEqual([]);
  });

  test("gets bytes that are not UTF-8 explained", async () => {
    const body = new Uint8Array([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x7d]);
    const response = await appOf(wordRetriever()).request("/retrieve", { method: "POST", body });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ got: "bytes that are not UTF-8" });
  });

  test("gets a body that is too large refused, whether or not its length is announced", async () => {
    const app = appOf(wordRetriever(), { limits: { bodyBytes: 100 } });
    const body = JSON.stringify({ queries: ["x".repeat(200)] });
    const announced = await post(app, "/retrieve", body, { "content-length": String(body.length) });
    const chunked = await post(app, "/retrieve", body);
    for (const answer of [announced, chunked])
      expect(answer).toMatchObject({ status: 413, json: { expected: "a body of at most 100 bytes" } });
  });

  test("gives back the bytes of a refused body, so that the next one is taken", async () => {
    const app = appOf(wordRetriever(), { limits: { pendingBytes: 40 } });
    const small = JSON.stringify(query);
    const large = JSON.stringify({ query: "x".repeat(100) });
    for (const body of ["{", small, large, "[]", small, large, small]) {
      const answer = await post(app, "/retrieve", body, { "content-length": String(body.length) });
      expect(answer.status).toBe({ "{": 400, "[]": 422, [small]: 200, [large]: 429 }[body]);
    }
  });

  test("gets a compressed body refused with what to do", async () => {
    const answer = await post(appOf(wordRetriever()), "/retrieve", query, { "content-encoding": "gzip" });
    expect(answer).toMatchObject({ status: 415, json: { advice: "send the JSON as it is" } });
  });

  test("gets the right path and method named", async () => {
    const app = appOf(wordRetriever());
    expect(await post(app, "/nowhere", query)).toMatchObject({ status: 404, json: { got: '"/nowhere"' } });
    const wrong = await get(app, "/retrieve");
    expect(wrong).toMatchObject({ status: 405, json: { expected: "POST", got: "GET" } });
    expect(wrong.headers.get("allow")).toBe("POST");
  });
});

describe("a retriever that fails", () => {
  const failing = (error: Error): Retriever => ({
    ...wordRetriever(),
    retrieve: async () => {
      throw error;
    },
  });

  test("is told with its own words, without a stack", async () => {
    const failures: unknown[] = [];
    const error = new RetrieverError("the index is damaged; build it again");
    const app = appOf(failing(error), { onFailure: (failure) => failures.push(failure) });
    const answer = await post(app, "/retrieve", query);
    expect(answer).toMatchObject({ status: 502, json: { got: "the index is damaged; build it again" } });
    expect(failures).toContain(error);
  });

  test("keeps what is a bug for the log", async () => {
    const answer = await post(
      appOf(failing(new TypeError("x is undefined at secret.ts:1"))),
      "/retrieve",
      query,
    );
    expect(answer).toMatchObject({ status: 502, json: { got: "a failure, which the server has logged" } });
    expect(JSON.stringify(answer.json)).not.toContain("secret");
  });

  test("that gives too few lists is not believed", async () => {
    const app = appOf({ ...wordRetriever(), retrieve: async () => [[]] });
    expect(await post(app, "/retrieve", { queries: ["a", "b"] })).toMatchObject({ status: 502 });
  });

  test("that takes too long is given up, and its signal aborts", async () => {
    const retriever = heldRetriever();
    const app = appOf(retriever, { limits: { requestMs: 20 } });
    const answer = await post(app, "/retrieve", query);
    expect(answer).toMatchObject({ status: 503, json: { expected: "an answer within 0.02 s" } });
    expect(answer.headers.get("retry-after")).toBe("1");
    expect(retriever.signals[0]?.aborted).toBe(true);
  });
});

describe("many calls at one time", () => {
  test("wait for their turn, and beyond the queue are turned away with Retry-After", async () => {
    const retriever = heldRetriever();
    const app = appOf(retriever, { limits: { concurrency: 2, queue: 3 } });
    const calls = Array.from({ length: 8 }, () => post(app, "/retrieve", query));
    const answers = Promise.all(calls);
    while (retriever.signals.length < 2) await new Promise((resolve) => setImmediate(resolve));
    for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
    expect(retriever.signals).toHaveLength(2);
    const stats = (await get(app, "/stats")).json;
    expect(stats).toMatchObject({ running: 2, waiting: 3 });
    const timer = setInterval(() => retriever.release(), 1);
    const statuses = (await answers).map(({ status, headers }) => `${status} ${headers.get("retry-after")}`);
    clearInterval(timer);
    expect(statuses.sort()).toEqual([...Array(5).fill("200 null"), ...Array(3).fill("429 1")]);
    expect(await post(appOf(wordRetriever()), "/retrieve", query)).toMatchObject({ status: 200 });
  });
});

describe("an API key", () => {
  const app = appOf(wordRetriever(), { apiKey: "s3cret" });

  test.each([
    [{}, 401],
    [{ authorization: "Bearer wrong" }, 401],
    [{ authorization: "Basic s3cret" }, 401],
    [{ "x-api-key": "s3cret " }, 200],
    [{ "x-api-key": "s3cre" }, 401],
    [{ "x-api-key": "s3cret" }, 200],
    [{ authorization: "Bearer s3cret" }, 200],
    [{ authorization: "bearer s3cret" }, 200],
  ] as [Record<string, string>, number][])("with the headers %j gives %i", async (headers, status) => {
    const answer = await post(app, "/retrieve", query, headers);
    expect(answer.status).toBe(status);
    if (status === 401) expect(answer.headers.get("www-authenticate")).toBe("Bearer");
    expect(JSON.stringify(answer.json)).not.toContain("s3cret");
  });

  test("is not asked for by health, and by all else", async () => {
    for (const path of ["/health", "/healthz"]) expect((await get(app, path)).status).toBe(200);
    for (const path of ["/stats", "/metrics", "/openapi.json", "/openapi.yaml", "/v1/index/search?query=a"])
      expect((await get(app, path)).status).toBe(401);
  });
});

describe("what the server tells of itself", () => {
  test("is healthy, with what rLLM reads and the hashes of the index", async () => {
    const app = appOf(wordRetriever(), { passages: passages.length, name: "demo" });
    expect((await get(app, "/health")).json).toEqual({
      status: "healthy",
      corpus_size: 3,
      index_type: "words",
      index_loaded: true,
      retrieval_method: "words",
      topk: 3,
      index: "demo",
      corpusHash: "c".repeat(64),
      indexHash: "i".repeat(64),
    });
  });

  test("counts requests by dialect and status, for each app alone", async () => {
    const app = appOf(wordRetriever());
    await post(app, "/retrieve", { queries: ["Italy", "France"] });
    await post(app, "/retrieve", { query: "Italy" });
    await post(app, "/retrieve", "{");
    await post(app, "/x'\"\n", query);
    const text = await (await app.request("/metrics")).text();
    expect(text).toContain('forager_requests_total{route="search-r1",status="200"} 1');
    expect(text).toContain('forager_requests_total{route="skyrl",status="200"} 1');
    expect(text).toContain('forager_requests_total{route="/retrieve",status="400"} 1');
    expect(text).toContain("forager_queries_total 3");
    expect(text).toContain("forager_waiting_calls 0");
    expect((await get(app, "/stats")).json).toMatchObject({
      queries: 3,
      passages: 3,
      failed: 1,
      method: "words",
    });
    expect(await (await appOf(wordRetriever()).request("/metrics")).text()).toContain(
      "forager_queries_total 0",
    );
  });

  test("describes every route in OpenAPI, the same in JSON and YAML, with the limits in force", async () => {
    const app = appOf(wordRetriever(), { limits: { queries: 77 } });
    const json = (await get(app, "/openapi.json")).json as { paths: object };
    expect(parse(await (await app.request("/openapi.yaml")).text())).toEqual(json);
    expect(JSON.stringify(json)).toContain('"maxItems":77');
    for (const [path, methods] of Object.entries(json.paths))
      for (const method of Object.keys(methods as object)) {
        const answer = await app.request(path.replace("{docid}", "fr"), { method: method.toUpperCase() });
        expect([404, 405], `${method} ${path}`).not.toContain(answer.status);
      }
  });
});

test("a server that is stopping turns new requests away", async () => {
  const app = appOf(wordRetriever(), { stopping: AbortSignal.abort() });
  const answer = await post(app, "/retrieve", query);
  expect(answer).toMatchObject({ status: 503, json: { got: "one that is stopping" } });
});
