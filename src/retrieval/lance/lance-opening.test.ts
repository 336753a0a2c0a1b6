/** How long opening a table may take, and what becomes of it once it is given up; with a made-up LanceDB. */
import { setTimeout as sleep } from "node:timers/promises";
import { beforeEach, expect, test, vi } from "vitest";
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
