/** When the threads of a pool start, and what becomes of calls. That threads rank alike is tested with index folders. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { expect, test, vi } from "vitest";
import { startThread } from "../../shared/start-thread.ts";
import { openIndex, saveIndex } from "../index-folder.ts";
import { type Bm25Index, buildBm25Index } from "./bm25.ts";

vi.mock("../../shared/start-thread.ts", async (importOriginal) => {
  const original = await importOriginal<typeof import("../../shared/start-thread.ts")>();
  return { startThread: vi.fn(original.startThread) };
});

/** An index of one passage in a folder of its own, opened with two threads. */
async function openOne(): Promise<{
  index: Bm25Index;
  folder: string;
  [Symbol.asyncDispose](): Promise<void>;
}> {
  const root = await mkdtemp(join(tmpdir(), "forager-pool-"));
  const folder = join(root, "index");
  await saveIndex(await buildBm25Index([{ id: "1", title: "", text: "lake" }]), folder);
  const index = await openIndex(folder, { storage: "memory", threads: 2 });
  return {
    index,
    folder,
    [Symbol.asyncDispose]: async () => {
      await index.close();
      await rm(root, { recursive: true });
    },
  };
}

const many = Array.from({ length: 40 }, () => "lake");

test("a thread that does not come up holds nobody up", async () => {
  await using one = await openOne();
  vi.mocked(startThread).mockImplementationOnce(
    () => new Worker("setInterval(() => {}, 1000)", { eval: true }),
  );
  expect((await one.index.retrieve(many, 1)).flat()).toHaveLength(40);
});

test("a thread that takes queries and fails fails the call and those to come", async () => {
  await using one = await openOne();
  const code = `require("node:worker_threads").parentPort.on("message", ({ taken }) => {
    Atomics.add(taken, 0, 1);
    throw new Error("out of order");
  });`;
  vi.mocked(startThread).mockImplementationOnce(() => new Worker(code, { eval: true }));
  const failure = "a search thread failed: out of order";
  const calls = async (): Promise<void> => {
    for (;;) await one.index.retrieve(many, 1);
  };
  await expect(calls()).rejects.toThrow(failure);
  await expect(one.index.retrieve(many, 1)).rejects.toThrow(failure);
});

test("calls at one time get their own answers, and one that is aborted none", async () => {
  await using one = await openOne();
  const gone = new AbortController();
  const calls = [5, 1, 9].map((times) =>
    one.index.rank(
      many.flatMap((q) => Array(times).fill(q)),
      1,
    ),
  );
  const aborted = one.index.rank(many, 1, gone.signal);
  gone.abort(new Error("gone"));
  await expect(aborted).rejects.toThrow("gone");
  expect((await Promise.all(calls)).map(({ length }) => length)).toEqual([200, 40, 360]);
  expect((await Promise.all(calls)).flat().every(({ positions }) => positions[0] === 0)).toBe(true);
});

test("threads beside the caller's start at the first call of many queries, once, and never after closing", async () => {
  await using one = await openOne();
  const { index, folder } = one;
  vi.mocked(startThread).mockClear();
  await index.retrieve(many.slice(0, 16), 1);
  expect(startThread).not.toHaveBeenCalled();
  for (let call = 0; call < 2; call++) expect((await index.retrieve(many, 1)).flat()).toHaveLength(40);
  expect(startThread).toHaveBeenCalledTimes(1);
  await index.close();
  const unused = await openIndex(folder, { storage: "memory", threads: 2 });
  await unused.close();
  await expect(unused.retrieve(many, 1)).rejects.toThrow("the index was closed");
  expect(startThread).toHaveBeenCalledTimes(1);
});
