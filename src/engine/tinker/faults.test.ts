/** What goes wrong between here and a server ends in a retry that is counted, or in an error that says what kind it is. */
import { access, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { Datum } from "../../algorithm/datum.ts";
import { EngineError, type EngineErrorKind, PolicyError } from "../../errors.ts";
import { persistentFetch } from "../../shared/persistent-fetch.ts";
import { type Answer, cutOff, deadUrl, silence, testWorld } from "../../shared/server.fixture.ts";
import { randomDatum, tinyTokenizer } from "../engine.fixture.ts";
import { Connection } from "./connection.ts";
import type { ProfileName } from "./profiles.ts";
import { Session } from "./session.ts";
import { type EngineSetting, openTinkerEngine, tinkerOptions } from "./tinker-engine.fixture.ts";
import { startTinkerServer, type TinkerServerOptions } from "./tinker-server.fixture.ts";

const batch = [12, 5, 9].map((length, seed) => {
  const datum = randomDatum(length, seed);
  datum.weights[length - 1] = 1;
  return datum;
});
const adam = {
  learningRate: 0.01,
  beta1: 0.9,
  beta2: 0.95,
  epsilon: 1e-8,
  weightDecay: 0,
  maxGradientNorm: 0,
};
const sampling = { maxTokens: 4, temperature: 1, topP: 1, topK: 0, stop: [] };
const contexts = [{ text: "the river", seed: 1 }];

async function opened(server: TinkerServerOptions = {}, setting: EngineSetting = {}) {
  const started = await startTinkerServer({
    ...server,
    ...(setting.profile && { profile: setting.profile }),
  });
  const world = { ...testWorld({ KEY: "tml-secret-key" }), fetch: persistentFetch() };
  const engine = await openTinkerEngine(started.url, { world, ...setting });
  onTestFinished(() => engine.close());
  return { server: started, engine, world };
}

/** Says `answer` for the requests to `path` that `counts` names, from 1 counted after the model was made. */
function at(path: string, counts: readonly number[], answer: Answer) {
  return (asked: string, count: number): Answer | undefined =>
    asked === path && counts.includes(count) ? answer : undefined;
}

/** The first poll is that of create_model. */
const polls = (...counts: number[]): number[] => counts.map((count) => count + 1);

async function kindOf(work: Promise<unknown>): Promise<EngineErrorKind> {
  const error = await work.then(
    () => new Error("it succeeded"),
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(EngineError);
  return (error as EngineError).kind;
}

describe("a poll", () => {
  const passing = {
    "408, as SkyRL says that a result is not there": {
      status: 408,
      json: { detail: "Timeout waiting for result" },
    },
    try_again: { json: { type: "try_again", request_id: "x", queue_state: "active" } },
    "429": { status: 429, json: { detail: "slow down" } },
    "503": { status: 503, json: { detail: "busy" } },
    "500": { status: 500, text: "Internal Server Error" },
    "a connection that breaks": cutOff('{"loss_fn'),
    "truncated JSON": { text: '{"loss_fn_outputs":[{"logprobs":{"data":[-1.2' },
    "metadata of a large result": { json: { status: "complete_metadata", response_payload_size: 9 } },
  } satisfies Record<string, Answer>;
  test.each(Object.entries(passing))("is repeated after %s", async (_, answer) => {
    const { engine } = await opened({ instead: at("retrieve_future", polls(1, 2), answer) });
    const rows = await engine.logprobs(batch);
    expect(rows.map((row) => row.length)).toEqual([12, 5, 9]);
    expect(engine.counts.polls + engine.counts.retries).toBeGreaterThan(0);
  });

  test("waits as long as Retry-After asks", async () => {
    const answer = { status: 429, json: {}, headers: { "retry-after": "7" } };
    const { engine, world } = await opened({ instead: at("retrieve_future", polls(1), answer) });
    await engine.logprobs(batch);
    expect(world.waits).toContain(7000);
  });

  test("outlives a server that is killed and comes back", async () => {
    const { engine, world } = await opened({
      instead: (path, count) =>
        path === "retrieve_future" && count >= 2 && count <= 12
          ? (response) => response.destroy()
          : undefined,
    });
    await engine.logprobs(batch);
    expect(engine.counts.retries).toBe(11);
    expect(world.waits.length).toBeGreaterThanOrEqual(11);
  });

  test("gives up on a server that stays away for longer than engine.patienceMs", async () => {
    const { engine } = await opened(
      {
        instead: (path, count) =>
          path === "retrieve_future" && count > 1 ? (response) => response.destroy() : undefined,
      },
      { options: { patienceMs: 20_000 } },
    );
    expect(await kindOf(engine.logprobs(batch))).toBe("unreachable");
  });

  test("gives up on a server that answers 500 each time, as SkyRL does for NaN", async () => {
    const { engine, server } = await opened(
      {
        instead: (path, count) =>
          path === "retrieve_future" && count > 1
            ? { status: 500, text: "Internal Server Error" }
            : undefined,
      },
      { options: { retries: 3 } },
    );
    expect(await kindOf(engine.logprobs(batch))).toBe("failed");
    expect(server.requests.filter(({ path }) => path.endsWith("retrieve_future"))).toHaveLength(5);
  });

  test("ends with a result that does not come within engine.resultTimeoutMs", async () => {
    const { engine } = await opened(
      {
        instead: (path, count) =>
          path === "retrieve_future" && count > 1 ? { status: 408, json: {} } : undefined,
      },
      { options: { resultTimeoutMs: 60_000 } },
    );
    expect(await kindOf(engine.logprobs(batch))).toBe("slow");
  });

  const final: readonly (readonly [string, Answer, EngineErrorKind])[] = [
    [
      "400 with what failed",
      { status: 400, json: { detail: "LoRA rank 64 must be between 1 and 8" } },
      "rejected",
    ],
    ["an error of the user's", { json: { error: "bad tokens", category: "user" } }, "rejected"],
    ["an error of the server's", { json: { error: "engine died", category: "server" } }, "failed"],
    ["NaN", { text: '{"loss_fn_outputs":[{"logprobs":{"data":[NaN]}}]}' }, "malformed"],
    ["401", { status: 401, json: { detail: "no key" } }, "unauthorized"],
    ["402", { status: 402, json: { detail: "unpaid" } }, "unauthorized"],
  ];
  test.each(final)("ends the call after %s", async (_, answer, kind) => {
    const { engine } = await opened({ instead: at("retrieve_future", polls(1), answer) });
    expect(await kindOf(engine.forwardBackward(batch, { type: "crossEntropy" }))).toBe(kind);
  });

  test("with log-probabilities that are null is an answer of another form", async () => {
    const json = { loss_fn_output_type: "scalar", loss_fn_outputs: [{ logprobs: { data: [null, -1] } }] };
    const { engine } = await opened({ instead: at("retrieve_future", polls(1), { json }) });
    expect(await kindOf(engine.logprobs(batch))).toBe("malformed");
  });

  test("where results are read once, a reply that broke off has lost its result", async () => {
    const { engine } = await opened(
      { instead: at("retrieve_future", polls(1), cutOff('{"loss')) },
      { profile: "verl-tinker" },
    );
    expect(await kindOf(engine.forwardBackward(batch, { type: "crossEntropy" }))).toBe("lost");
  });
});

test("a process that slept through the patience asks once more", async () => {
  const world = testWorld();
  let calls = 0;
  const connection = new Connection(tinkerOptions("http://127.0.0.1:9", { patienceMs: 20_000 }), {
    ...world,
    fetch: async () => {
      if (calls++ > 0) return new Response("{}");
      await world.sleep(600_000);
      return new Response("", { status: 503 });
    },
  });
  expect(await connection.call({ path: "asample", repeat: "always" })).toEqual({});
});

test("that a server is away is said once a minute, and a server that will not do it is not asked again", async () => {
  const notes: string[] = [];
  const world = testWorld();
  const options = tinkerOptions(await deadUrl(), { patienceMs: 90_000 });
  const connection = new Connection(options, world, (text) => notes.push(text));
  const calls = [1, 2, 3].map(() => connection.call({ path: "create_session", repeat: "always" }));
  for (const outcome of await Promise.allSettled(calls)) expect(outcome.status).toBe("rejected");
  expect(notes.length).toBeGreaterThan(0);
  expect(notes.length).toBeLessThan(6);
  expect(notes[0]).toMatch(/nothing listens there.*waited for, up to 90 s \(engine\.patienceMs\)/);
  const files = new Connection(tinkerOptions("http://127.0.0.1:9"), {
    ...world,
    fetch: async () => new Response("Unsupported method ('POST')", { status: 501 }),
  });
  expect(await kindOf(files.call({ path: "create_session", repeat: "always" }))).toBe("rejected");
  expect(files.counts.retries).toBe(0);
});

describe("a POST whose acknowledgement is lost", () => {
  const lost = (path: string) => at(path, [1], { status: 503, json: { detail: "lost" } });
  test("is sent again under the same number, and runs once, where the server looks at numbers", async () => {
    const [plain, faulty] = [await opened(), await opened({ afterwards: lost("forward_backward") })];
    const expected = await plain.engine.forwardBackward(batch, { type: "crossEntropy" });
    expect(await faulty.engine.forwardBackward(batch, { type: "crossEntropy" })).toEqual(expected);
    expect(await faulty.engine.step(adam)).toEqual(await plain.engine.step(adam));
    expect(faulty.server.carriedOut.forward_backward).toBe(1);
    const posts = faulty.server.requests.filter(({ path }) => path.endsWith("/forward_backward"));
    expect(posts).toHaveLength(2);
    expect(posts[1]?.body).toEqual(posts[0]?.body);
    expect(posts[1]?.headers["x-idempotency-key"]).toBe(posts[0]?.headers["x-idempotency-key"]);
    expect(posts[0]?.headers["x-idempotency-key"]).toMatch(/^model_\d+-1$/);
  });

  test.each(["forward_backward", "optim_step"])(
    "is not sent again where it could train twice: %s",
    async (path) => {
      const { engine, server } = await opened({ afterwards: lost(path) }, { profile: "skyrl-fsdp" });
      const work = async (): Promise<void> => {
        await engine.forwardBackward(batch, { type: "crossEntropy" });
        await engine.step(adam);
      };
      expect(await kindOf(work())).toBe("lost");
      expect(server.carriedOut[path]).toBe(1);
    },
  );

  test("is sent again where it only costs time, also on such a server", async () => {
    const { engine } = await opened({ afterwards: lost("forward") }, { profile: "skyrl-jax" });
    expect(await engine.logprobs(batch)).toHaveLength(3);
    expect(engine.counts.retries).toBe(1);
  });

  test.each([425, 429])(
    "but one that was refused with %i is, since it was not carried out",
    async (status) => {
      const { engine, server } = await opened(
        { instead: at("forward_backward", [1], { status, json: { detail: "later" } }) },
        { profile: "skyrl-fsdp" },
      );
      await engine.forwardBackward(batch, { type: "crossEntropy" });
      expect(server.carriedOut.forward_backward).toBe(1);
    },
  );

  test("saves under another name where its own is taken by the attempt before", async () => {
    const folder = await scratch();
    const { engine } = await opened({
      instead: at("save_weights", [1], {
        status: 409,
        json: { detail: "Checkpoint 'checkpoint-1' already exists" },
      }),
    });
    await engine.save(folder);
    expect(JSON.parse(await readFile(join(folder, "remote.json"), "utf8")).path).toMatch(/checkpoint-2/);
  });
});

describe("a POST that is refused", () => {
  test("409 is a conflict", async () => {
    const { engine } = await opened({
      instead: at("forward_backward", [1], { status: 409, json: { detail: "sequence number was reused" } }),
    });
    expect(await kindOf(engine.forwardBackward(batch, { type: "crossEntropy" }))).toBe("conflict");
  });

  test("422 says which field, and its number is never used again", async () => {
    const detail = [{ loc: ["body", "forward_input"], msg: "Field required", type: "missing" }];
    const { engine, server } = await opened({
      instead: at("forward", [1], { status: 422, json: { detail } }),
    });
    await expect(engine.logprobs(batch)).rejects.toThrow("422: body.forward_input: Field required");
    await engine.logprobs(batch);
    const numbers = server.requests.flatMap(({ path, body }) =>
      path.endsWith("/forward") ? [(body as { seq_id: number }).seq_id] : [],
    );
    expect(numbers).toEqual([1, 2]);
  });

  test("404 says that the model is gone", async () => {
    const { engine } = await opened({
      instead: at("optim_step", [1], { status: 404, json: { detail: "Model not found" } }),
    });
    expect(await kindOf(engine.step(adam))).toBe("gone");
  });
});

describe("a result that has expired (410)", () => {
  const gone = { status: 410, json: { detail: "promise expired" } };
  test("is asked for again under its number where the server looks at numbers", async () => {
    const { engine, server } = await opened({ instead: at("retrieve_future", polls(1), gone) });
    await engine.forwardBackward(batch, { type: "crossEntropy" });
    expect(server.carriedOut.forward_backward).toBe(1);
    expect(engine.counts.retries).toBe(1);
  });

  test("is lost where asking again could train twice", async () => {
    const { engine } = await opened(
      { instead: at("retrieve_future", polls(1), gone) },
      { profile: "skyrl-fsdp" },
    );
    expect(await kindOf(engine.forwardBackward(batch, { type: "crossEntropy" }))).toBe("gone");
  });

  test("of a sample is sampled anew under the next number", async () => {
    // Polls: create_model, the snapshot, then the sample.
    const { engine, server } = await opened({ instead: at("retrieve_future", [3], gone) });
    await engine.policy().complete(contexts, sampling);
    const numbers = server.requests.flatMap(({ path, body }) =>
      path.endsWith("/asample") ? [(body as { seq_id: number }).seq_id] : [],
    );
    expect(numbers).toEqual([0, 1]);
    expect(engine.counts.resampled).toBe(1);
  });
});

describe("a sample", () => {
  test.each([425, 429])("waits and is sent again after %i", async (status) => {
    const { engine } = await opened({ instead: at("asample", [1, 2], { status, json: { detail: "wait" } }) });
    expect(await engine.policy().complete(contexts, sampling)).toHaveLength(1);
    expect(engine.counts.retries).toBe(2);
  });

  test("that the server cannot make is a failure of the policy's, for that episode alone", async () => {
    const { engine } = await opened({
      instead: at("retrieve_future", [3], { json: { error: "too long", category: "user" } }),
    });
    await expect(engine.policy().complete(contexts, sampling)).rejects.toBeInstanceOf(PolicyError);
    expect(await engine.policy().complete(contexts, sampling)).toHaveLength(1);
  });

  test("from weights that changed is refused where it would overwrite them, and says its version elsewhere", async () => {
    const [jax, forager] = [await opened({}, { profile: "skyrl-jax" }), await opened()];
    for (const { engine } of [jax, forager]) {
      const policy = engine.policy();
      await policy.complete(contexts, sampling);
      await engine.forwardBackward(batch, { type: "crossEntropy" });
      await engine.step(adam);
      if (engine === jax.engine) {
        expect(await kindOf(policy.complete(contexts, sampling))).toBe("stale");
        continue;
      }
      expect(await policy.complete(contexts, sampling)).toHaveLength(1);
      expect([policy.identity.version, engine.policy().identity.version]).toEqual([0, 1]);
    }
  });

  test("in flight holds up a step where it would overwrite the weights", async () => {
    const { engine } = await opened({}, { profile: "skyrl-jax" });
    const policy = engine.policy();
    await policy.complete(contexts, sampling);
    const sampled = policy.complete(contexts, { ...sampling, maxTokens: 20 });
    await new Promise((resolve) => setImmediate(resolve));
    expect(await kindOf(engine.step(adam))).toBe("stale");
    await sampled;
  });

  test("can be aborted while it waits", async () => {
    const { engine } = await opened({
      instead: (path, count) => (path === "retrieve_future" && count > 2 ? silence : undefined),
    });
    const controller = new AbortController();
    const reason = new Error("enough");
    const call = engine.policy().complete(contexts, sampling, controller.signal);
    setTimeout(() => controller.abort(reason), 100);
    await expect(call).rejects.toBe(reason);
  });
});

describe("nothing unsound leaves", () => {
  const [first] = batch as [Datum];
  const unsound: readonly (readonly [string, Datum, string])[] = [
    [
      "an id beyond the vocabulary",
      { ...first, inputs: first.inputs.map((id, t) => (t === 2 ? 5000 : id)) },
      "hold the id 5000",
    ],
    ["a negative id", { ...first, targets: first.targets.map(() => -1) }, "hold the id -1"],
    ["targets of another length", { ...first, targets: first.targets.slice(1) }, "11 targets for 12 inputs"],
    ["a weight that is none", { ...first, weights: first.weights.map(() => Number.NaN) }, "hold NaN"],
    [
      "no tokens",
      { inputs: new Int32Array(), targets: new Int32Array(), weights: new Float32Array() },
      "it has none",
    ],
    ["a sequence beyond the context", randomDatum(641, 1), "the engine takes 640"],
  ];
  test.each(unsound)("%s", async (_, datum, message) => {
    const { engine, server } = await opened();
    const before = server.requests.length;
    await expect(engine.logprobs([datum])).rejects.toThrow(message);
    await expect(engine.forwardBackward([datum], { type: "crossEntropy" })).rejects.toThrow(message);
    expect(server.requests).toHaveLength(before);
  });

  test("an id of a context beyond the vocabulary", async () => {
    const { engine } = await opened();
    const tokens = [1, tinyTokenizer.vocabularySize];
    await expect(engine.policy().complete([{ text: "", tokens, seed: 1 }], sampling)).rejects.toThrow(
      "the context holds the id",
    );
  });
});

test("a key is sent and never shown", async () => {
  const { engine, server } = await opened(
    { instead: at("forward", [1], { status: 400, json: { detail: "bad key tml-secret-key" } }) },
    { options: { apiKeyEnv: "KEY" } },
  );
  const error = (await engine.logprobs(batch).catch((thrown: unknown) => thrown)) as EngineError;
  expect(server.requests.every(({ headers }) => headers["x-api-key"] === "tml-secret-key")).toBe(true);
  expect(error.message).toContain("bad key ***");
  expect(`${error.message}${error.stack}`).not.toContain("tml-secret");
});

describe("a session", () => {
  test("unloads what it made, and what a crashed run left is unloaded at the next start", async () => {
    const note = join(await scratch(), "remote-models.json");
    const { server } = await opened();
    const one = await openTinkerEngine(server.url, { note });
    await one.save(await scratch());
    expect(server.modelCount()).toBe(2);
    const { models } = JSON.parse(await readFile(note, "utf8")) as { models: string[] };
    expect(models).toHaveLength(1);
    // A crash: nobody closes it. The next start finds the note.
    const two = await openTinkerEngine(server.url, { note });
    expect(server.modelCount()).toBe(2);
    await two.close();
    expect(server.modelCount()).toBe(1);
    await expect(access(note)).rejects.toThrow();
    // Its own timer ends with it.
    await one.close();
  });

  test("of another server is left alone", async () => {
    const note = join(await scratch(), "remote-models.json");
    await writeFile(note, JSON.stringify({ url: "http://127.0.0.1:1", models: ["model_1"] }));
    const { server } = await opened();
    const engine = await openTinkerEngine(server.url, { note });
    expect(server.modelCount()).toBe(2);
    await engine.close();
  });

  test("beats on its own timer, whatever else is going on", async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    onTestFinished(() => void vi.useRealTimers());
    const { server } = await startedSession();
    vi.advanceTimersByTime(30_000);
    await vi.waitFor(() =>
      expect(server.requests.filter(({ path }) => path.endsWith("heartbeat"))).toHaveLength(3),
    );
  });

  async function startedSession(profile: ProfileName = "forager") {
    const server = await startTinkerServer();
    const session = await Session.open(new Connection(tinkerOptions(server.url, { profile }), testWorld()), {
      seed: 1,
    });
    onTestFinished(() => session.close());
    return { server, session };
  }
});

async function scratch(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "forager-faults-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}
