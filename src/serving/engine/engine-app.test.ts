// The protocol as clients see it, over models that cost nothing.
import { expect, test } from "vitest";
import { answerSchemas } from "../../engine/tinker/wire.ts";
import { crossEntropy, outcome, testServer, wireDatum, withModel } from "./engine-server.fixture.ts";

const datum = wireDatum([5, 6, 7, 8]);
const adam = { learning_rate: 0.5 };

test("a loop: session, model, gradient, step, weights to sample from, sampling", async () => {
  const server = await testServer();
  expect((await server.post("client/config", { sdk_version: "0.24.1" })).body).toEqual({
    pjwt_auth_enabled: false,
  });
  expect((await server.get("get_server_capabilities")).body).toEqual({
    supported_models: [{ model_name: "base", max_context_length: 64 }],
  });
  const { session_id, model_id } = await withModel(server);
  expect((await server.post("session_heartbeat", { session_id })).body).toEqual({
    type: "session_heartbeat",
  });
  const loss = await server.done("forward_backward", crossEntropy(model_id, 1, datum));
  expect(loss).toEqual({
    loss_fn_output_type: "scalar",
    loss_fn_outputs: [
      {
        logprobs: { data: expect.any(Array), dtype: "float32", shape: [3] },
        elementwise_loss: { data: expect.any(Array), dtype: "float32", shape: [3] },
      },
    ],
    metrics: { "loss:sum": expect.closeTo(3.21, 4) },
  });
  const step = await server.done("optim_step", { model_id, seq_id: 2, adam_params: adam });
  expect(step).toEqual({ metrics: { grad_norm: 3, learning_rate: 0.5 } });
  const saved = await server.done("save_weights_for_sampler", {
    model_id,
    seq_id: 3,
    sampling_session_seq_id: 0,
  });
  expect(saved).toEqual({
    path: null,
    sampling_session_id: expect.stringMatching(/^sampling_/),
    type: "save_weights_for_sampler",
  });
  const sampled = await server.done("asample", {
    sampling_session_id: saved.sampling_session_id,
    seq_id: 0,
    num_samples: 2,
    prompt: { chunks: [{ type: "encoded_text", tokens: [5, 6] }] },
    sampling_params: { max_tokens: 4, seed: 1, stop: [4] },
    prompt_logprobs: true,
    topk_prompt_logprobs: 2,
  });
  expect(sampled).toEqual({
    sequences: [
      { stop_reason: "stop", tokens: [3, 4], logprobs: [-0.5, -0.5] },
      { stop_reason: "stop", tokens: [4], logprobs: [-0.5] },
    ],
    prompt_logprobs: [null, -0.5],
    topk_prompt_logprobs: [
      null,
      [
        [0, -0.5],
        [1, -1.5],
      ],
    ],
  });
  expect(await server.done("unload_model", { model_id })).toEqual({
    model_id,
    status: "unloaded",
    type: "unload_model",
  });
  expect((await server.post("get_info", { model_id })).status).toBe(404);
  expect(server.failures).toEqual([]);
  expect(answerSchemas.forward_backward.safeParse(loss).success).toBe(true);
});

test("what SkyRL accepts in silence is refused with the reason, and never as 5xx", async () => {
  const server = await testServer();
  const { session_id, model_id } = await withModel(server);
  const forward = (data: unknown, loss_fn = "cross_entropy", loss_fn_config?: unknown) =>
    server.post("forward_backward", {
      model_id,
      seq_id: 1,
      forward_backward_input: { data, loss_fn, loss_fn_config },
    });
  const refusals = [
    [
      400,
      "a base model of this server: base",
      await server.post("create_model", {
        session_id,
        model_seq_id: 1,
        base_model: "another",
        lora_config: { rank: 2 },
      }),
    ],
    [
      400,
      "lora_config",
      await server.post("create_model", { session_id, model_seq_id: 1, base_model: "base" }),
    ],
    [400, "3 values in target_tokens of datum 0", await forward([shortTargets()])],
    [400, "logprobs in loss_fn_inputs of datum 0", await forward([datum], "importance_sampling")],
    [400, "100 as entry 1", await forward([wireDatum([1, 100, 3])])],
    [400, "at most 64 tokens", await forward([wireDatum(Array(70).fill(1))])],
    [422, "null as entry 0", await forward([wireDatum([1, 2], { weights: [Number.NaN] })])],
    [400, "finite float32", await forward([wireDatum([1, 2], { weights: [1e300] })])],
    [400, "only nothing", await forward([datum], "cross_entropy", { beta: 1 })],
    [400, "loss_fn_config.beta", await forward([rlDatum()], "dro")],
    [
      400,
      "bounds of the ratio around 1",
      await forward([rlDatum()], "ppo", { clip_low_threshold: 0.2, clip_high_threshold: 0.2 }),
    ],
    [422, "epsilon", await forward([rlDatum()], "ppo", { epsilon: 0.2 })],
    [422, "cispo", await forward([datum], "ppo_critic")],
    [422, "Too small", await forward([])],
    [404, "a model that is loaded", await server.post("optim_step", { model_id: "none", adam_params: adam })],
    [404, "a session of this server", await server.post("session_heartbeat", { session_id: "none" })],
    [404, "the number of a future", await server.post("retrieve_future", { request_id: "9999" })],
    [422, "request_id", await server.post("retrieve_future", { request_id: 1 })],
    [400, "JSON", await server.post("optim_step", "{")],
    [404, "Not Found", await server.post("nope", {})],
    [405, "Method Not Allowed", await server.get("asample")],
    [
      415,
      "tinker==0.24.1",
      await server.post("forward_backward", "x", { "content-type": "application/x-protobuf" }),
    ],
    [400, "tinker://MODEL", await server.post("load_weights", { model_id, seq_id: 2, path: "x" })],
    [404, "a checkpoint", await server.post("load_weights", { model_id, path: "tinker://a/weights/b" })],
    [422, "max_tokens", await sample({ sampling_params: {} })],
    [422, "seq_id", await sample({ sampling_session_id: "a" })],
    [422, "exactly one", await sample({})],
    [404, "a sampling session", await sample({ sampling_session_id: "a", seq_id: 1 })],
    [
      400,
      "a prompt of at least one",
      await sample({ base_model: "base", prompt: { chunks: [{ tokens: [] }] } }),
    ],
  ] as const;
  function sample(more: object) {
    const body = {
      num_samples: 1,
      prompt: { chunks: [{ tokens: [5] }] },
      sampling_params: { max_tokens: 2 },
      ...more,
    };
    return server.post("asample", body);
  }
  for (const [status, words, reply] of refusals)
    expect([reply.status, JSON.stringify(reply.body.detail)]).toEqual([
      status,
      expect.stringContaining(words),
    ]);
  const tooLarge = await server.done("create_model", {
    session_id,
    model_seq_id: 9,
    base_model: "base",
    lora_config: { rank: 64 },
  });
  expect(tooLarge).toEqual({ error: "the rank is 64, at most 8 fits", category: "user" });
  expect(server.backend.log).toEqual(["create 2", "create 64"]);
});

function shortTargets(): object {
  return {
    model_input: { chunks: [{ tokens: [1, 2, 3] }] },
    loss_fn_inputs: { target_tokens: { data: [2, 3] } },
  };
}

function rlDatum(): object {
  return wireDatum([1, 2, 3], { logprobs: [-1, -1], advantages: [1, 1] });
}

test.each([
  ["importance_sampling", undefined],
  ["ppo", { clip_low_threshold: 0.8, clip_high_threshold: 1.2 }],
  ["cispo", { clip_low_threshold: 0, clip_high_threshold: 4 }],
  ["dro", { beta: 0.1 }],
])("%s is computed, and its elementwise losses add up to its sum", async (loss_fn, loss_fn_config) => {
  const server = await testServer();
  const { model_id } = await withModel(server);
  const forward_backward_input = { data: [rlDatum(), rlDatum()], loss_fn, loss_fn_config };
  const { loss_fn_outputs, metrics } = await server.done("forward_backward", {
    model_id,
    seq_id: 1,
    forward_backward_input,
  });
  const sum = loss_fn_outputs
    .flatMap(({ elementwise_loss }: { elementwise_loss: { data: number[] } }) => elementwise_loss.data)
    .reduce((a: number, b: number) => a + b, 0);
  expect(metrics["loss:sum"]).toBeCloseTo(sum, 6);
  expect(sum).not.toBe(0);
});

test("weights and the optimiser's state are saved, listed, loaded into another model, archived and deleted", async () => {
  const server = await testServer();
  const { session_id, model_id } = await withModel(server);
  await server.done("optim_step", { model_id, seq_id: 1, adam_params: adam });
  const { path } = await server.done("save_weights", { model_id, seq_id: 2, path: "step-1" });
  expect(path).toBe(`tinker://${model_id}/weights/step-1`);
  expect((await server.post("save_weights", { model_id, seq_id: 3, path: "step-1" })).status).toBe(400);
  await server.done("save_weights", { model_id, seq_id: 4, path: "step-1", overwrite: true });
  expect((await server.post("save_weights", { model_id, path: "a/b" })).status).toBe(422);
  const final = await server.done("save_weights_for_sampler", { model_id, seq_id: 5, path: "final" });
  expect(final.path).toBe(`tinker://${model_id}/sampler_weights/final`);

  const { body: info } = await server.post("weights_info", { tinker_path: path });
  expect(info).toMatchObject({ base_model: "base", is_lora: true, lora_rank: 2 });
  const other = await withModel(server, { number: 0 });
  expect(
    await server.done("load_weights", { model_id: other.model_id, seq_id: 1, path, optimizer: true }),
  ).toEqual({
    type: "load_weights",
  });
  const forward = { data: [datum], loss_fn: "cross_entropy" };
  const [ours, theirs] = await Promise.all(
    [model_id, other.model_id].map((id) => server.done("forward", { model_id: id, forward_input: forward })),
  );
  expect(theirs).toEqual(ours);
  const narrow = await withModel(server, { rank: 1 });
  const refused = await server.post("load_weights", { model_id: narrow.model_id, seq_id: 1, path });
  expect([refused.status, refused.body.detail]).toEqual([400, expect.stringContaining("rank 1")]);

  const { body: sampling } = await server.post("create_sampling_session", {
    session_id,
    sampling_session_seq_id: 1,
    model_path: final.path,
  });
  expect((await server.get(`samplers/${sampling.sampling_session_id}`)).body).toEqual({
    sampler_id: sampling.sampling_session_id,
    base_model: "base",
    model_path: final.path,
  });
  const sampled = await server.done("asample", {
    sampling_session_id: sampling.sampling_session_id,
    seq_id: 0,
    prompt: { chunks: [{ tokens: [5] }] },
    sampling_params: { max_tokens: 1 },
  });
  expect(sampled.sequences[0].logprobs).toEqual([-0.5]);

  const { body: listed } = await server.get(`training_runs/${model_id}/checkpoints`);
  expect(listed.checkpoints).toMatchObject([
    { checkpoint_id: "weights/step-1", checkpoint_type: "training", tinker_path: path },
    { checkpoint_id: "sampler_weights/final", checkpoint_type: "sampler" },
  ]);
  expect((await server.get("training_runs?limit=1")).body).toMatchObject({
    training_runs: [{ training_run_id: model_id, is_lora: true, lora_rank: 2 }],
    cursor: { offset: 0, limit: 1, total_count: 3 },
  });
  const archive = await server.get(`training_runs/${model_id}/checkpoints/sampler_weights/final/archive`);
  expect([archive.status, archive.headers.get("location")]).toEqual([
    302,
    `http://here/api/v1/training_runs/${model_id}/checkpoints/sampler_weights/final/archive.tar.gz`,
  ]);
  const ofSkyRl = await server.get(`training_runs/${model_id}/checkpoints/final/archive`);
  expect(ofSkyRl.headers.get("location")).toBe(archive.headers.get("location"));
  expect((await server.get(`training_runs/${model_id}/checkpoints/weights/step-1`, "DELETE")).status).toBe(
    204,
  );
  expect((await server.post("weights_info", { tinker_path: path })).status).toBe(404);
  expect((await server.get(`training_runs/..%2F..%2Fetc/checkpoints/weights/passwd`, "DELETE")).status).toBe(
    404,
  );
});

test("the key is asked for by all but the health check", async () => {
  const server = await testServer({ apiKey: "tml-secret" });
  const ask = async (headers: Record<string, string>) =>
    (await server.post("client/config", { sdk_version: "1" }, headers)).status;
  expect(await ask({})).toBe(401);
  expect(await ask({ "x-api-key": "tml-other" })).toBe(401);
  expect(await ask({ "x-api-key": "tml-secret" })).toBe(200);
  expect((await server.get("healthz")).body).toEqual({ status: "ok" });
  expect((await server.get("training_runs")).status).toBe(401);
});

test("bodies, requests and models have their limits", async () => {
  const limits = { bodyBytes: 2000, pending: 2, models: 1, samples: 2 };
  const server = await testServer({ limits });
  const { session_id, model_id } = await withModel(server);
  expect((await server.post("forward", crossEntropy(model_id, 1, ...Array(40).fill(datum)))).status).toBe(
    413,
  );
  const second = await server.done("create_model", {
    session_id,
    model_seq_id: 1,
    base_model: "base",
    lora_config: { rank: 1 },
  });
  expect(second).toEqual({ error: expect.stringContaining("as many as it may"), category: "user" });
  let open: () => void = () => undefined;
  const held = new Promise<void>((resolve) => {
    open = resolve;
  });
  server.backend.before = () => held;
  const posts = await Promise.all(
    [1, 2].map((seq_id) => server.post("optim_step", { model_id, seq_id, adam_params: adam })),
  );
  const turnedAway = await server.post("optim_step", { model_id, seq_id: 3, adam_params: adam });
  expect([turnedAway.status, turnedAway.headers.get("retry-after")]).toEqual([429, "1"]);
  open();
  for (const { body } of posts) await outcome(server, body.request_id);
  const many = { base_model: "base", num_samples: 3, prompt: { chunks: [{ tokens: [1] }] } };
  expect((await server.post("asample", { ...many, sampling_params: { max_tokens: 1 } })).status).toBe(422);
});
