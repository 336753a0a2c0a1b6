/** What other processes can see of a build's lock, by the order of the calls to the file system. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterAll, beforeEach, expect, test, vi } from "vitest";
import { buildIndexFolder } from "./index-folder.ts";
import { lockBuild } from "./index-folder-lock.ts";

const calls = vi.hoisted(() => ({ before: (_name: string, _paths: readonly unknown[]): void => undefined }));
vi.mock("node:fs/promises", async (importOriginal) => {
  const original = await importOriginal<typeof import("node:fs/promises")>();
  const watched = (name: "link" | "rm" | "writeFile") =>
    vi.fn(async (...args: readonly unknown[]) => {
      calls.before(name, args);
      return await (original[name] as (...args: readonly unknown[]) => Promise<unknown>)(...args);
    });
  return { ...original, link: watched("link"), rm: watched("rm"), writeFile: watched("writeFile") };
});

const root = mkdtempSync(join(tmpdir(), "forager-lock-"));
afterAll(() => rmSync(root, { recursive: true }));
beforeEach(() => {
  calls.before = () => undefined;
});

test("a lock appears with its owner in it, not empty first", async () => {
  const work = join(root, "work");
  const linked: unknown[] = [];
  calls.before = (name, [from, to]) => {
    if (name === "writeFile") expect(basename(from as string)).not.toBe("lock");
    if (name === "link")
      linked.push(JSON.parse(readFileSync(from as string, "utf8")), basename(to as string));
  };
  const release = await lockBuild(work, "target");
  expect(linked).toEqual([expect.objectContaining({ pid: process.pid }), "lock"]);
  await expect(lockBuild(work, "target")).rejects.toThrow(/target is being built by process/);
  await release();
  await release();
  await (await lockBuild(work, "target"))();
});

test.each([
  ["done", [{ id: "1", title: "", text: "word" }]],
  ["refused", []],
])("the files of a build that is %s go before its lock does", async (name, passages) => {
  const work = join(root, `.${name}.building`);
  const removed: string[] = [];
  calls.before = (call, [path]) => {
    const file = basename(path as string);
    if (call !== "rm" || file.endsWith(".new")) return;
    expect(existsSync(join(work, "lock"))).toBe(true);
    removed.push(file);
  };
  // Segments of one byte: a small corpus is else merged in memory and leaves no files behind.
  await buildIndexFolder(passages, join(root, name), { memoryBytes: 1 }).catch(() => undefined);
  expect(removed.length).toBeGreaterThan(1);
  expect(removed.at(-1)).toBe("lock");
  expect(existsSync(work)).toBe(false);
  expect(existsSync(join(root, name))).toBe(name === "done");
});
