// What holds when answers are lost, servers are killed, and requests come twice or in another order.
import { appendFile, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import {
  crossEntropy,
  outcome,
  type TestServer,
  testServer,
  wireDatum,
  withModel,
} from "./engine-server.fixture.ts";

const datum = wireDatum([5, 6, 7, 8]);
const step = (model_id: string, seq_id: number, learning_rate = 0.5): object => ({
  model_id,
  seq_id,
  adam_params: { learning_rate },
});

/** A gate before everything that the backend does. */
function gate(server: TestServer): { open: () => void } {
  let open: () => void = () => undefined;
  const closed = new Promise<void>((resolve) => {
    open = resolve;
  });
  server.backend.before = () => closed;
  return { open: () => open() };
}

test("a request that comes twice runs once, under its number or its idempotency key; another one is a conflict", async () => {
  const server = await testServer();
  const { model_id } = await withModel(server);
  const posts = await Promise.all(
    [1, 1, 1].map((n) => server.post("forward_backward", crossEntropy(model_id, n, datum))),
  );
  expect(new Set(posts.map(({ body }) => body.request_id)).size).toBe(1);
  await outcome(server, posts[0]?.body.request_id);
  const late = await server.post("forward_backward", crossEntropy(model_id, 1, datum));
  expect(late.body).toEqual(posts[0]?.body);
  const other = await server.post("forward_backward", crossEntropy(model_id, 1, datum, datum));
  expect([other.status, other.body.detail]).toEqual([409, expect.stringContaining("seq_id 1")]);
  expect((await server.post("optim_step", step(model_id, 1))).status).toBe(409);

  const unnumbered = { model_id, adam_params: { learning_rate: 0.5 } };
  const key = { "x-idempotency-key": "k1" };
  const first = await server.post("optim_step", unnumbered, key);
  expect((await server.post("optim_step", unnumbered, key)).body).toEqual(first.body);
  expect((await server.post("optim_step", { ...unnumbered, adam_params: {} }, key)).status).toBe(409);
  await outcome(server, first.body.request_id);
  expect((await server.post("optim_step", unnumbered)).body).not.toEqual(first.body);
  expect(server.backend.log.filter((what) => what.startsWith("forwardBackward"))).toHaveLength(1);

  const session = { tags: [], sdk_version: "1" };
  const ids = await Promise.all(
    [0, 1].map(() => server.post("create_session", session, { "x-idempotency-key": "s" })),
  );
  expect(ids[0]?.body).toEqual(ids[1]?.body);
});

test("work of a model runs by its numbers, whatever the order of arrival, and a number that never comes holds nobody up for long", async () => {
  const server = await testServer();
  const { model_id } = await withModel(server);
  const sizes = [1, 2, 3].map((count) => Array(count).fill(datum));
  const third = server.post("forward_backward", crossEntropy(model_id, 3, ...(sizes[2] as object[])));
  const second = server.post("forward_backward", crossEntropy(model_id, 2, ...(sizes[1] as object[])));
  await new Promise((resolve) => setTimeout(resolve, 50));
  const first = server.post("forward_backward", crossEntropy(model_id, 1, ...(sizes[0] as object[])));
  for (const post of [first, second, third]) await outcome(server, (await post).body.request_id);
  expect(server.backend.log.slice(1)).toEqual([
    "forwardBackward 1",
    "forwardBackward 2",
    "forwardBackward 3",
  ]);

  const refused = await server.post("forward_backward", { ...crossEntropy(model_id, 4, datum), more: 1 });
  expect(refused.status).toBe(422);
  const started = performance.now();
  await server.done("optim_step", step(model_id, 5));
  expect(performance.now() - started).toBeLessThan(900);
  await server.done("optim_step", step(model_id, 9));
  await server.done("optim_step", step(model_id, 7));
  await server.done("optim_step", step(model_id, Number.MAX_SAFE_INTEGER));
  await server.done("optim_step", step(model_id, 10));
});

test("outcomes can be read again, also from a server that was started anew; numbers are never given twice", async () => {
  const server = await testServer();
  const { model_id } = await withModel(server);
  const promised = await server.post("optim_step", step(model_id, 1));
  const done = await outcome(server, promised.body.request_id);
  expect(await outcome(server, promised.body.request_id)).toEqual(done);

  const again = await server.restarted();
  expect(await outcome(again, promised.body.request_id)).toEqual(done);
  const repeated = await again.post("optim_step", step(model_id, 1));
  expect(repeated.body).toEqual(promised.body);
  expect((await again.post("optim_step", step(model_id, 2))).status).toBe(404);
  const fresh = await withModel(again);
  const next = await again.post("optim_step", step(fresh.model_id, 1));
  expect(Number(next.body.request_id)).toBeGreaterThan(Number(promised.body.request_id));
});

test("what was under way when the server was killed fails, and sampling is to be asked for again", async () => {
  const server = await testServer();
  const { model_id } = await withModel(server);
  const { open } = gate(server);
  const training = await server.post("optim_step", step(model_id, 1));
  const request = {
    base_model: "base",
    prompt: { chunks: [{ tokens: [1] }] },
    sampling_params: { max_tokens: 1 },
  };
  const sampling = await server.post("asample", request);
  // Not closed: killed.
  const again = await server.restarted();
  again.backend.before = async () => undefined;
  expect(await outcome(again, training.body.request_id)).toEqual({
    error: expect.stringContaining("the server was restarted before optim_step had ended"),
    category: "server",
  });
  const lost = await again.post("retrieve_future", { request_id: sampling.body.request_id });
  expect(lost.status).toBe(410);
  expect((await again.done("asample", request)).sequences).toHaveLength(1);
  open();
});

test("a line that a kill cut off is as if it had never been; a damaged journal is told", async () => {
  const server = await testServer();
  const { model_id } = await withModel(server);
  const promised = await server.post("optim_step", step(model_id, 1));
  const done = await outcome(server, promised.body.request_id);
  await server.service.close();
  const folder = join(server.folder, "futures");
  const segment = join(folder, (await readdir(folder)).at(-1) as string);
  await appendFile(segment, '{"id":"99","kind":"optim');
  const again = await server.restarted();
  expect(await outcome(again, promised.body.request_id)).toEqual(done);
  expect((await again.post("retrieve_future", { request_id: "99" })).status).toBe(404);
  await again.service.close();
  await writeFile(segment, `${(await readFile(segment, "utf8")).slice(5)}\n`);
  await expect(server.restarted()).rejects.toThrow("a line that is none of this journal's");
});

test("old outcomes go with their segment of the journal, and are told from numbers that never were", async () => {
  const limits = { journal: { segmentBytes: 300, segments: 2 } };
  const server = await testServer({ limits });
  const { model_id } = await withModel(server);
  const first = await server.post("optim_step", step(model_id, 1));
  await outcome(server, first.body.request_id);
  for (let n = 2; n < 12; n++) await server.done("optim_step", step(model_id, n));
  expect((await server.post("retrieve_future", { request_id: first.body.request_id })).status).toBe(410);
  expect((await server.post("retrieve_future", { request_id: "1000" })).status).toBe(404);
  expect((await readdir(join(server.folder, "futures"))).length).toBeLessThanOrEqual(2);
});

test("what was carried out and forgotten is not run again under its number", async () => {
  const limits = { journal: { segmentBytes: 300, segments: 2 } };
  const server = await testServer({ limits });
  const { model_id } = await withModel(server);
  await server.done("forward_backward", crossEntropy(model_id, 1, datum));
  for (let n = 2; n < 12; n++) await server.done("optim_step", step(model_id, n));
  const again = await server.post("forward_backward", crossEntropy(model_id, 1, datum));
  expect([again.status, again.body.detail]).toEqual([410, expect.stringContaining("was carried out")]);
  expect(server.backend.log.filter((what) => what.startsWith("forwardBackward"))).toHaveLength(1);
});

test("weights are sampled as they were when they were handed out, while they are among the newest", async () => {
  const server = await testServer({ limits: { snapshots: 2 } });
  const { model_id } = await withModel(server);
  const sample = (sampling_session_id: string, seq_id: number) =>
    server.post("asample", {
      sampling_session_id,
      seq_id,
      prompt: { chunks: [{ tokens: [1] }] },
      sampling_params: { max_tokens: 1 },
    });
  const handedOut: string[] = [];
  for (let n = 0; n < 3; n++) {
    const { sampling_session_id } = await server.done("save_weights_for_sampler", {
      model_id,
      seq_id: 2 * n + 1,
      sampling_session_seq_id: n,
    });
    handedOut.push(sampling_session_id);
    await server.done("optim_step", step(model_id, 2 * n + 2));
  }
  const [oldest, older, newest] = handedOut as [string, string, string];
  const of = async (id: string) =>
    (await outcome(server, (await sample(id, 0)).body.request_id)).sequences[0].logprobs[0];
  expect([await of(older), await of(newest)]).toEqual([-0.5, 0]);
  expect((await sample(oldest, 0)).status).toBe(410);
  expect(server.backend.log.filter((what) => what === "close sampler")).toHaveLength(1);
});

test("a session that is silent ends with its models; one that is heard of stays", async () => {
  const server = await testServer({ limits: { sessionMs: 1000 } });
  const silent = await withModel(server);
  const heard = await withModel(server);
  const working = await withModel(server);
  server.clock = 900;
  await server.post("session_heartbeat", { session_id: heard.session_id });
  await server.done("optim_step", step(working.model_id, 1));
  server.clock = 1500;
  await server.service.sweep();
  expect((await server.post("get_info", { model_id: silent.model_id })).status).toBe(404);
  expect((await server.post("session_heartbeat", { session_id: silent.session_id })).status).toBe(404);
  for (const { model_id } of [heard, working])
    expect((await server.post("get_info", { model_id })).status).toBe(200);
});

test("several sessions train models side by side, and none sees another's weights", async () => {
  const server = await testServer();
  const models = await Promise.all([0, 1, 2, 3].map(() => withModel(server)));
  await Promise.all(
    models.map(async ({ model_id }, index) => {
      for (let n = 1; n <= index + 1; n++) await server.done("optim_step", step(model_id, n, 1));
    }),
  );
  const logprobs = await Promise.all(
    models.map(async ({ model_id }) => {
      const forward_input = { data: [wireDatum([5, 0])], loss_fn: "cross_entropy" };
      return (await server.done("forward", { model_id, forward_input })).loss_fn_outputs[0].logprobs.data[0];
    }),
  );
  expect(logprobs).toEqual([0, 1, 2, 3]);
});

test("a poll is answered by the time it is held, and at once when the server stops", async () => {
  const stopping = new AbortController();
  const server = await testServer({ limits: { holdMs: 30 }, stopping: stopping.signal });
  const { model_id } = await withModel(server);
  const { open } = gate(server);
  const promised = await server.post("optim_step", step(model_id, 1));
  const { body } = await server.post("retrieve_future", promised.body);
  expect(body.detail).toEqual([expect.objectContaining({ loc: ["body"] })]);
  const { request_id } = promised.body;
  expect((await server.post("retrieve_future", { request_id })).body).toEqual({
    type: "try_again",
    request_id,
    queue_state: "active",
    queue_state_reason: null,
  });
  stopping.abort();
  expect((await server.post("optim_step", step(model_id, 2))).status).toBe(503);
  const queued = server.service.close();
  open();
  await queued;
  const again = await testServer({ folder: server.folder });
  expect(await outcome(again, request_id)).toEqual({ metrics: { grad_norm: 0, learning_rate: 0.5 } });
});

test("a failure that is ours is logged and told without its words, and what waits behind it goes on", async () => {
  const server = await testServer();
  const { model_id } = await withModel(server);
  server.backend.before = async (what) => {
    if (what.startsWith("forwardBackward")) throw new TypeError("secret");
  };
  expect(await server.done("forward_backward", crossEntropy(model_id, 1, datum))).toEqual({
    error: "the server failed, and has logged why; tell who runs it",
    category: "server",
  });
  expect(server.failures).toEqual([new TypeError("secret")]);
  await server.done("optim_step", step(model_id, 2));
});

test("a journal that cannot be written turns requests away, and goes on when it can be", async () => {
  const server = await testServer();
  const obstacle = join(server.folder, "futures", "00000001.jsonl");
  await mkdir(obstacle);
  const request = {
    base_model: "base",
    prompt: { chunks: [{ tokens: [1] }] },
    sampling_params: { max_tokens: 1 },
  };
  const refused = await server.post("asample", request);
  expect([refused.status, refused.body.detail]).toEqual([503, expect.stringContaining("cannot write")]);
  expect(server.failures).toHaveLength(1);
  await rm(obstacle, { recursive: true });
  expect((await server.done("asample", request)).sequences).toHaveLength(1);
});
