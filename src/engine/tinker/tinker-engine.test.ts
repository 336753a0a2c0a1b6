import { describe, expect } from "vitest";
import { randomDatum } from "../engine.fixture.ts";
import { engineSuite } from "../engine.suite.ts";
import { openTinkerEngine } from "./tinker-engine.fixture.ts";
import { startTinkerServer, type TinkerServer } from "./tinker-server.fixture.ts";

const batch = [30, 7, 52, 1, 18].map((length, seed) => {
  const datum = randomDatum(length, seed);
  datum.weights[length - 1] = 1;
  return datum;
});

let latest: { readonly test: string | undefined; readonly server: Promise<TinkerServer> } | undefined;

/** All engines of one test are on one server, which keeps what they save. */
async function serverOfTest(): Promise<TinkerServer> {
  const test = expect.getState().currentTestName;
  if (latest?.test !== test) latest = { test, server: startTinkerServer() };
  return await (latest as NonNullable<typeof latest>).server;
}

describe.each([{}, { chunkBytes: 10_000 }])("with %j", (options) => {
  engineSuite("an engine behind a server that sums", {
    create: async (seed) => {
      const { url } = await serverOfTest();
      return await openTinkerEngine(url, { seed, options });
    },
    createOther: async () => {
      const { url } = await startTinkerServer({ layers: 1 });
      return await openTinkerEngine(url, { options: { ...options, rank: 4 } });
    },
    batch,
  });
});
