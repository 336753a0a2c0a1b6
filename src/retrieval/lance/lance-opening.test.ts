/** How long opening a table may take, and what becomes of it once it is given up; with a made-up LanceDB. */
import { setTimeout as sleep } from "node:timers/promises";
import { beforeEach, expect, test, vi } from "vitest";
import { buildLanceTable } from "./build-lance-table.ts";
import { answerWithin } from "./lance-place.ts";
import { lanceRetriever } from "./lance-retriever.ts";

const store = { openMs: 30, closed: 0, written: [] as string[] };
beforeEach(() => Object.assign(store, { closed: 0, written: [] }));

vi.mock("./lance-module.ts", async (original) => {
  const write = async (name: string) => {
    store.written.push(name);
    return { close: () => undefined };
  };
  const connection = {
    openTable: async (name: string) => {
      await sleep(store.openMs);
      throw new Error(`Table '${name}' was not found`);
    },
    createTable: write,
    createEmptyTable: write,
    close: () => store.closed++,
  };
  class Part {}
  const arrow = new Proxy({}, { get: (_, name) => (name === "makeData" ? () => new Part() : Part) });
  const lance = { connect: async () => connection, Session: Part };
  return { ...(await original<object>()), loadLance: () => ({ lance, arrow }) };
});

test("opening a table may take longer than one query", async () => {
  await expect(lanceRetriever("s3://bucket/x", { table: "t", timeoutMs: 1 })).rejects.toThrow(
    /^there is no table t in s3:\/\/bucket\/x that Forager made/,
  );
});

test("a build that is given up while it opens writes nothing later, and closes its connection", async () => {
  const stopping = AbortSignal.timeout(store.openMs / 2);
  const built = buildLanceTable([], "s3://bucket/x", { table: "t", signal: stopping });
  await expect(built).rejects.toThrow("aborted due to timeout");
  await vi.waitUntil(() => store.closed > 0, { timeout: 60_000 });
  expect(store).toMatchObject({ closed: 1, written: [] });
});

test("what is opened too late is discarded", async () => {
  const late: number[] = [];
  const limits = { limitMs: 5, discard: (value: number) => late.push(value) };
  await expect(answerWithin(() => sleep(30, 7), "t", limits)).rejects.toThrow("no answer within 0.005 s");
  await vi.waitUntil(() => late.length > 0, { timeout: 60_000 });
  expect(late).toEqual([7]);
});
