/**
 * What SkyRL 0.3.0 and the official client said to each other (`../shared/skyrl/wire`), replayed against our client: it asks the
 * same questions, reads every answer, and knows every refusal for what it is.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { Connection } from "../../src/engine/tinker/connection.ts";
import { Session } from "../../src/engine/tinker/session.ts";
import { tinkerOptionsSchema } from "../../src/engine/tinker/tinker-options.ts";
import { sample } from "../../src/engine/tinker/tinker-policy.ts";
import { judge } from "../../src/engine/tinker/trouble.ts";
import { type AnswerPath, answerSchemas } from "../../src/engine/tinker/wire.ts";
import { startServer, testWorld } from "../../src/shared/server.fixture.ts";

const shared = process.env.FORAGER_SHARED ?? join(import.meta.dirname, "../../../shared");
const folder = join(shared, "skyrl/wire");
const isMissing = !existsSync(folder);

interface Exchange {
  readonly n: number;
  readonly scene?: string;
  readonly injected?: boolean;
  readonly request: { readonly method: string; readonly path: string; readonly body: unknown };
  readonly response: { readonly status: number; readonly body: unknown };
}

function exchangesOf(prefix: string): Exchange[] {
  return readdirSync(folder)
    .filter((name) => name.startsWith(prefix))
    .sort()
    .flatMap(
      (name) => (JSON.parse(readFileSync(join(folder, name), "utf8")) as { exchanges: Exchange[] }).exchanges,
    );
}

function pathOf({ request }: Exchange): string {
  return request.path.replace("/api/v1/", "").replace(/\?.*$/, "");
}

function idOf(body: unknown): string {
  return (body as { readonly request_id: string }).request_id;
}

/** A server that gives the recorded answers in order: of a future by its number, of other calls by their path. */
async function replay(prefixes: readonly string[]) {
  const left = prefixes.flatMap(exchangesOf);
  const server = await startServer(({ path, body }) => {
    const asked = path.replace("/api/v1/", "");
    const at = left.findIndex(
      (one) =>
        pathOf(one) === asked && (asked !== "retrieve_future" || idOf(one.request.body) === idOf(body)),
    );
    const [found] = at === -1 ? [] : left.splice(at, 1);
    return found === undefined
      ? { status: 599, json: { detail: `nothing recorded for ${asked}` } }
      : { status: found.response.status, json: found.response.body };
  });
  const options = tinkerOptionsSchema.parse({
    type: "tinker",
    url: server.url,
    profile: "skyrl-jax",
    rank: 8,
    retries: 0,
  });
  return { server, connection: new Connection(options, testWorld()) };
}

function bodyOf<T>(exchanges: readonly Exchange[], path: string): T {
  return exchanges.find((one) => pathOf(one) === path)?.request.body as T;
}

interface Recorded {
  readonly [key: string]: unknown;
}

describe.skipIf(isMissing)(`recorded exchanges${isMissing ? " (../shared is not here)" : ""}`, () => {
  test("the client asks what the official one asked, and reads what came", async () => {
    const scenes = ["02", "03", "04", "05", "06"];
    const recorded = scenes.flatMap(exchangesOf);
    const { server, connection } = await replay(scenes);
    const session = await Session.open(connection, { seed: 1 });
    onTestFinished(() => session.close());
    const model = await session.createModel({ baseModel: "tiny-qwen3", rank: 8 });
    expect(model.id).toBe("model_00000001");

    const forward = bodyOf<{ forward_input: Recorded }>(recorded, "forward");
    const forwardAnswer = await model.run("forward", { forward_input: forward.forward_input as never });
    expect(forwardAnswer.loss_fn_outputs[0]?.logprobs.data[0]).toBeCloseTo(-7.8725, 4);
    const backward = bodyOf<{ forward_backward_input: Recorded }>(recorded, "forward_backward");
    await model.run("forward_backward", { forward_backward_input: backward.forward_backward_input as never });
    const step = bodyOf<{ adam_params: Recorded }>(recorded, "optim_step");
    expect(await model.run("optim_step", { adam_params: step.adam_params as never })).toMatchObject({
      metrics: { "skyrl.ai/grad_norm": expect.closeTo(6.6022, 3) },
    });
    const saved = await model.run("save_weights_for_sampler", { sampling_session_seq_id: 0 });
    expect(saved.sampling_session_id).toBe("sampling_00000001");
    const { seq_id: _, ...asample } = bodyOf<Recorded & { seq_id: number }>(recorded, "asample");
    const sampled = await sample(connection, { body: asample as never, seqId: () => 0 });
    expect(sampled.sequences[0]?.tokens).toEqual([832, 394, 397, 445, 306, 710, 319, 170]);

    // The same fields with the same values; beyond them only what the client leaves to defaults may differ.
    for (const path of [
      "create_model",
      "forward",
      "forward_backward",
      "optim_step",
      "save_weights_for_sampler",
      "asample",
    ]) {
      const { type: _type, user_metadata: _metadata, ...theirs } = bodyOf<Recorded>(recorded, path);
      const ours = server.requests.find((request) => request.path.endsWith(`/${path}`))?.body as Recorded;
      const { lora_config, ...rest } = theirs as { lora_config?: unknown };
      expect(ours).toMatchObject({
        ...rest,
        ...(lora_config !== undefined && { lora_config: { rank: 8, seed: 1 } }),
      });
    }
  });

  test("every answer that succeeded is read as the protocol has it", () => {
    const pathById = new Map<string, string>();
    let read = 0;
    for (const exchange of exchangesOf("").filter(({ injected }) => injected !== true)) {
      const path = pathOf(exchange);
      const { status, body } = exchange.response;
      if (status !== 200) continue;
      const id = (body as { readonly request_id?: string } | null)?.request_id;
      if (id !== undefined && path !== "retrieve_future") pathById.set(`${exchange.scene ?? ""}${id}`, path);
      const about =
        path === "retrieve_future"
          ? pathById.get(`${exchange.scene ?? ""}${idOf(exchange.request.body)}`)
          : undefined;
      const name = about ?? (id === undefined ? path.replace(/^samplers\/.*/, "samplers") : undefined);
      if (name === undefined || !(name in answerSchemas)) continue;
      const parsed = answerSchemas[name as AnswerPath].safeParse(body);
      expect(parsed.success, `${exchange.n} ${name}: ${parsed.error?.message}`).toBe(true);
      read++;
    }
    expect(read).toBeGreaterThan(70);
  });

  test("every refusal is known for what it is", () => {
    const kinds = new Map<string, Set<string>>();
    for (const exchange of exchangesOf("")) {
      const { status, body } = exchange.response;
      if (status === 200 || status < 0 || status === 302) continue;
      const trouble = judge({ status, text: JSON.stringify(body) });
      if ("json" in trouble) throw new Error(`${exchange.n} was taken for a success`);
      const what = `${trouble.kind}${trouble.passes ? ", passes" : ""}`;
      kinds.set(`${status}`, (kinds.get(`${status}`) ?? new Set()).add(what));
    }
    expect(Object.fromEntries([...kinds].map(([status, found]) => [status, [...found]]))).toEqual({
      400: ["rejected"],
      404: ["gone"],
      405: ["rejected"],
      408: ["unreachable, passes"],
      409: ["conflict"],
      410: ["gone"],
      422: ["rejected"],
      425: ["unreachable, passes"],
      429: ["unreachable, passes"],
      500: ["failed, passes"],
      503: ["unreachable, passes"],
    });
  });
});
