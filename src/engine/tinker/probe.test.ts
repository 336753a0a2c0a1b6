import { expect, onTestFinished, test } from "vitest";
import type { Fetch } from "../../shared/network-world.ts";
import { testWorld } from "../../shared/server.fixture.ts";
import { trainBytePair } from "../../tokenizer/byte-pair-training.ts";
import { tinyTokenizer } from "../engine.fixture.ts";
import { Connection } from "./connection.ts";
import { probe, serverModel } from "./probe.ts";
import type { ProfileName } from "./profiles.ts";
import { Session } from "./session.ts";
import { tinkerOptions } from "./tinker-engine.fixture.ts";
import { startTinkerServer } from "./tinker-server.fixture.ts";
import type { WireDatum } from "./wire.ts";

/** Probes a server that plays `played` as if it were `taken`, over a network that may change what is said. */
async function probed(
  played: ProfileName,
  taken: ProfileName,
  tokenizer = tinyTokenizer,
  network: (ask: Fetch) => Fetch = (ask) => ask,
) {
  const server = await startTinkerServer({ profile: played });
  const world = testWorld();
  const connection = new Connection(tinkerOptions(server.url, { profile: taken }), {
    ...world,
    fetch: network(world.fetch),
  });
  const session = await Session.open(connection, { seed: 1 });
  onTestFinished(() => session.close());
  const verdict = await probe(session, { baseModel: "tiny", rank: 8 }, tokenizer);
  return { server, connection, verdict };
}

test.each(["forager", "skyrl-jax"] as const)(
  "a server that does what %s says passes, and keeps no model of it",
  async (profile) => {
    const { server, verdict } = await probed(profile, profile);
    expect(verdict).toMatchObject({ ok: true, maskWithoutEffect: true, sameTokenizer: true, problems: [] });
    expect(verdict.reduction).toBe(profile === "forager" ? "sum" : "sequenceMean");
    expect(verdict.samplingDifference).toBeLessThan(1e-4);
    expect(server.modelCount()).toBe(0);
  },
);

test("a server that divides otherwise than its profile says is found out", async () => {
  const { verdict } = await probed("skyrl-jax", "skyrl-fsdp");
  expect(verdict.ok).toBe(false);
  expect(verdict.problems).toEqual([
    "gradients are reduced by sequenceMean, the profile skyrl-fsdp says sum",
  ]);
});

test("a server on which masked positions teach is found out", async () => {
  const teaching = (ask: Fetch): Fetch => {
    return (url, { body, ...init }) =>
      ask(url, { ...init, ...(body !== undefined && { body: unmasked(body) }) });
  };
  const { verdict } = await probed("forager", "forager", tinyTokenizer, teaching);
  expect(verdict).toMatchObject({ ok: false, maskWithoutEffect: false });
  expect(verdict.problems).toContain("positions with an advantage of 0 change the gradient");
});

/** A batch whose positions without an advantage have one. */
function unmasked(body: string): string {
  const parsed = JSON.parse(body) as { forward_backward_input?: { data: WireDatum[] } };
  for (const { loss_fn_inputs } of parsed.forward_backward_input?.data ?? []) {
    const { advantages } = loss_fn_inputs;
    if (advantages) advantages.data = advantages.data.map((value) => (value === 0 ? 0.5 : value));
  }
  return JSON.stringify(parsed);
}

test("a sampler that is not the model that is trained is found out", async () => {
  const shifting =
    (ask: Fetch): Fetch =>
    async (url, init) => {
      const reply = await ask(url, init);
      const text = Buffer.from(await reply.arrayBuffer()).toString();
      const shifted = JSON.parse(text) as { sequences?: { logprobs: number[] }[] };
      for (const sequence of shifted.sequences ?? [])
        sequence.logprobs = sequence.logprobs.map((value) => value - 0.01);
      return new Response(JSON.stringify(shifted), { status: reply.status });
    };
  const { verdict } = await probed("forager", "forager", tinyTokenizer, shifting);
  expect(verdict).toMatchObject({ ok: false, maskWithoutEffect: true });
  expect(verdict.samplingDifference).toBeCloseTo(0.01, 4);
  expect(verdict.problems).toEqual([expect.stringContaining("differ by 0.0100, at most 0.001 was expected")]);
});

test("another tokenizer is found out", async () => {
  const other = trainBytePair(["zxcvbnm asdfghjkl qwertyuiop"], { vocabularySize: 300, specialTokens: [] });
  const { verdict } = await probed("forager", "forager", other);
  expect(verdict.sameTokenizer).not.toBe(true);
});

test("the server's only model is found by itself", async () => {
  const { connection } = await probed("forager", "forager");
  expect(await serverModel(connection, undefined)).toEqual({ name: "tiny", contextLength: 640 });
  expect(await serverModel(connection, "hidden")).toEqual({ name: "hidden", contextLength: undefined });
});
