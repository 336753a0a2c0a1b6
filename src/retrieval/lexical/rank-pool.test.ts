/** When the threads of a pool start. That they rank as the caller's thread does is tested with index folders. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { openIndex, saveIndex } from "../index-folder.ts";
import { buildBm25Index } from "./bm25.ts";
import { startThread } from "./start-thread.ts";

vi.mock("./start-thread.ts", async (importOriginal) => {
  const original = await importOriginal<typeof import("./start-thread.ts")>();
  return { startThread: vi.fn(original.startThread) };
});

test("threads beside the caller's start at the first call of many queries, once, and never after closing", async () => {
  const root = await mkdtemp(join(tmpdir(), "forager-pool-"));
  const folder = join(root, "index");
  await saveIndex(await buildBm25Index([{ id: "1", title: "", text: "lake" }]), folder);
  const index = await openIndex(folder, { storage: "memory", threads: 2 });
  const many = Array.from({ length: 40 }, () => "lake");
  await index.retrieve(many.slice(0, 16), 1);
  expect(startThread).not.toHaveBeenCalled();
  for (let call = 0; call < 2; call++) expect((await index.retrieve(many, 1)).flat()).toHaveLength(40);
  expect(startThread).toHaveBeenCalledTimes(1);
  await index.close();
  const unused = await openIndex(folder, { storage: "memory", threads: 2 });
  await unused.close();
  await expect(unused.retrieve(many, 1)).rejects.toThrow("the index was closed");
  expect(startThread).toHaveBeenCalledTimes(1);
  await rm(root, { recursive: true });
});
