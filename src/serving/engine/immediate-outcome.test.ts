import { describe, expect, test } from "vitest";
import { testServer, withModel } from "./engine-server.fixture.ts";
import { preferredWaitMs } from "./immediate-outcome.ts";

const request = {
  base_model: "base",
  prompt: { chunks: [{ tokens: [5, 6] }] },
  sampling_params: { max_tokens: 2, seed: 1 },
};
const sequences = [{ stop_reason: "length", tokens: [3, 4], logprobs: [-1, -1] }];

test("a client that would rather wait gets the outcome with the acknowledgement, and may ask for it again", async () => {
  const server = await testServer();
  const { status, body } = await server.post("asample", request, { prefer: "wait=10" });
  expect(status).toBe(200);
  expect(body).toMatchObject({ request_id: expect.any(String), status: "pending", answer: { sequences } });
  const again = await server.post("retrieve_future", { request_id: body.request_id });
  expect(again.body).toEqual(body.answer);
});

test("without the wish there is none", async () => {
  const server = await testServer();
  expect((await server.post("asample", request)).body).not.toHaveProperty("answer");
});

test("what is not there in time is promised as ever", async () => {
  const server = await testServer({ limits: { holdMs: 20 } });
  let go = (): void => undefined;
  server.backend.before = (what) =>
    what === "sample 1"
      ? new Promise((resolve) => {
          go = resolve;
        })
      : Promise.resolve();
  const { body } = await server.post("asample", request, { prefer: "wait=10" });
  expect(body).not.toHaveProperty("answer");
  go();
  const later = await server.post("retrieve_future", { request_id: body.request_id });
  expect(later.body).toMatchObject({ sequences });
});

test("a request whose answer was lost runs once, and its outcome comes at once", async () => {
  const server = await testServer();
  const key = { prefer: "wait=10", "x-idempotency-key": "k" };
  const first = await server.post("asample", request, key);
  expect((await server.post("asample", request, key)).body).toEqual(first.body);
  expect(server.backend.log.filter((what) => what.startsWith("sample"))).toHaveLength(1);
});

test("a failure comes with the acknowledgement too; refusals and calls without a future are as ever", async () => {
  const server = await testServer();
  const prefer = { prefer: "wait=10" };
  const { session_id } = await withModel(server);
  const failed = await server.post(
    "create_model",
    { session_id, model_seq_id: 1, base_model: "base", lora_config: { rank: 9, seed: 1 } },
    prefer,
  );
  expect(failed.body.answer).toEqual({ error: "the rank is 9, at most 8 fits", category: "user" });
  expect((await server.post("asample", { ...request, base_model: "none" }, prefer)).status).toBe(400);
  const heard = await server.post("session_heartbeat", { session_id }, prefer);
  expect(heard.body).toEqual({ type: "session_heartbeat" });
});

describe("the wish of a client", () => {
  test.each([
    ["wait=10", 10_000],
    ["respond-async, wait=5", 5_000],
    ['Wait="7"', 7_000],
    ["respond-async", 0],
    ["await=3", 0],
    ["", 0],
  ])("%j", (prefer, milliseconds) => {
    expect(preferredWaitMs(new Headers({ prefer }))).toBe(milliseconds);
  });
});
