import { expect, onTestFinished, test } from "vitest";
import { testWorld } from "../../shared/server.fixture.ts";
import { trainBytePair } from "../../tokenizer/byte-pair-training.ts";
import { tinyTokenizer } from "../engine.fixture.ts";
import { Connection } from "./connection.ts";
import { probe, serverModel } from "./probe.ts";
import type { ProfileName } from "./profiles.ts";
import { Session } from "./session.ts";
import { tinkerOptions } from "./tinker-engine.fixture.ts";
import { startTinkerServer } from "./tinker-server.fixture.ts";

/** Probes a server that plays `played` as if it were `taken`. */
async function probed(played: ProfileName, taken: ProfileName, tokenizer = tinyTokenizer) {
  const server = await startTinkerServer({ profile: played });
  const connection = new Connection(tinkerOptions(server.url, { profile: taken }), testWorld());
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
