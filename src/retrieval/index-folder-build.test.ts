import { spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, mkdtemp, readdir, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { corpusHash } from "../corpus/corpus-hash.ts";
import type { Passage } from "../corpus/passage.ts";
import { FileError, RetrieverError } from "../errors.ts";
import {
  type BuildIndexOptions,
  buildIndexFolder,
  openIndex,
  removeRests,
  saveIndex,
  verifyIndex,
} from "./index-folder.ts";
import { buildBm25Index } from "./lexical/bm25.ts";
import { describeRetriever } from "./retriever.suite.ts";

let root: string;
let made = 0;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "forager-build-"));
});
afterAll(() => rm(root, { recursive: true, force: true }));

const newPath = (): string => join(root, `index-${made++}`);
const workOf = (path: string): string => join(root, `.${path.split("/").at(-1)}.building`);

const words = "river lake mountain city bridge harbour island forest castle museum".split(" ");
const corpus: readonly Passage[] = Array.from({ length: 400 }, (_, i) => ({
  id: `id ${i}`,
  title: `${words[i % 10]} ${i % 37}`,
  text: `The ${words[(i * 7) % 10]} near the ${words[(i * 3 + 1) % 10]} of number ${i}, built in ${1000 + (i % 90)}.`,
  ...(i % 5 === 0 && { extra: { tags: [i] } }),
}));
const queries = ["river near the lake", "castle 1042", "museum number 17", "harbour", ""];

/** Segments of a few dozen passages. */
const small: BuildIndexOptions = { memoryBytes: 30_000 };

async function* failingAfter(count: number, error: Error, passages = corpus): AsyncGenerator<Passage> {
  for (const [i, passage] of passages.entries()) {
    if (i === count) throw error;
    yield passage;
  }
}

/** Leaves an unfinished build of 250 passages behind. */
async function interrupted(options: BuildIndexOptions = small): Promise<string> {
  const path = newPath();
  await expect(buildIndexFolder(failingAfter(250, new Error("cut")), path, options)).rejects.toThrow("cut");
  return path;
}

async function filesOf(folder: string): Promise<Record<string, string>> {
  const files = (await readdir(folder)).sort();
  const contents = await Promise.all(files.map(async (file) => readFile(join(folder, file), "hex")));
  return Object.fromEntries(files.map((file, i) => [file, contents[i] as string]));
}

describeRetriever("bm25 built into a folder", async (passages) => {
  const path = newPath();
  await buildIndexFolder(passages, path, { memoryBytes: 1 });
  return openIndex(path);
});

test("segments of any size give the folder that saving an index from memory gives, byte for byte", async () => {
  const saved = newPath();
  await saveIndex(await buildBm25Index(corpus), saved);
  const expected = await filesOf(saved);
  for (const memoryBytes of [1, 30_000, 1 << 30]) {
    const path = newPath();
    const built = await buildIndexFolder(corpus, path, { memoryBytes });
    expect(built).toMatchObject({ passages: 400, corpusHash: corpusHash(corpus), resumedPassages: 0 });
    expect(built.segments).toBe(memoryBytes === 1 ? 400 : memoryBytes === 1 << 30 ? 1 : built.segments);
    expect(built.bytes).toBe((await verifyIndex(path)).bytes);
    expect(await filesOf(path)).toEqual(expected);
  }
  expect((await readdir(root)).filter((name) => name.startsWith("."))).toEqual([]);
});

describe("a build that was cut off", () => {
  test("goes on after its last complete segment and ends in the same folder", async () => {
    const whole = newPath();
    await buildIndexFolder(corpus, whole, small);
    const path = await interrupted();
    const phases: string[] = [];
    const built = await buildIndexFolder(corpus, path, {
      memoryBytes: 50_000,
      onProgress: ({ phase }) => phases.push(phase),
    });
    expect(built.resumedPassages).toBeGreaterThan(100);
    expect(built.resumedPassages).toBeLessThanOrEqual(250);
    expect(await filesOf(path)).toEqual(await filesOf(whole));
    await expect(readdir(workOf(path))).rejects.toThrow("ENOENT");
  });

  test("is not continued with another corpus, a shorter one, or other options", async () => {
    const path = await interrupted();
    const other = corpus.map((passage, i) => (i === 3 ? { ...passage, text: "something else" } : passage));
    const message = /holds an unfinished build of another corpus .* remove that folder to start again/;
    for (const passages of [other, corpus.slice(0, 20)])
      await expect(buildIndexFolder(passages, path, small)).rejects.toThrow(message);
    await expect(buildIndexFolder(corpus, path, { ...small, options: { b: 0.4 } })).rejects.toThrow(
      /unfinished build with other options: expected .*"b":0.4.* use those options .* or remove that folder/,
    );
    expect((await buildIndexFolder(corpus, path, small)).resumedPassages).toBeGreaterThan(100);
  });

  test("is known as such by who wants to search it", async () => {
    await expect(openIndex(await interrupted())).rejects.toThrow(
      /is not finished: .* give the same forager index command again/,
    );
    await expect(openIndex(newPath())).rejects.toThrow(/no such file or folder/);
  });

  test("starts again when it has no complete segment", async () => {
    const path = await interrupted({});
    expect((await buildIndexFolder(corpus, path)).resumedPassages).toBe(0);
  });

  test("is not continued when its journal is damaged", async () => {
    const path = await interrupted();
    await writeFile(join(workOf(path), "journal.json"), '{"version":');
    await expect(buildIndexFolder(corpus, path, small)).rejects.toThrow(RetrieverError);
    await expect(buildIndexFolder(corpus, path, small)).rejects.toThrow(
      /cannot be continued .* remove that folder/,
    );
  });

  test("notices a segment that was altered since", async () => {
    const path = await interrupted();
    await writeFile(join(workOf(path), "segment-00000.lengths.u32"), "x");
    await expect(buildIndexFolder(corpus, path, small)).rejects.toThrow(/is damaged/);
  });
});

test("a build that goes on in a thread ends in the same folder, also when it was cut off there", async () => {
  const whole = newPath();
  await buildIndexFolder(corpus, whole);
  const threaded = newPath();
  expect(await buildIndexFolder(corpus, threaded, { threadFrom: 100 })).toMatchObject({ segments: 2 });
  expect(await filesOf(threaded)).toEqual(await filesOf(whole));
  const path = await interrupted({ threadFrom: 100 });
  expect(await buildIndexFolder(corpus, path, { threadFrom: 100 })).toMatchObject({ resumedPassages: 100 });
  expect(await filesOf(path)).toEqual(await filesOf(whole));
});

test("kill -9 in the middle leaves a build that the next start continues", async () => {
  const path = newPath();
  const script = `
    import { buildIndexFolder } from ${JSON.stringify(join(import.meta.dirname, "index-folder.ts"))};
    const corpus = JSON.parse(process.argv[1]);
    function* passages() { for (const [i, p] of corpus.entries()) { if (i === 300) process.kill(process.pid, "SIGKILL"); yield p; } }
    await buildIndexFolder(passages(), ${JSON.stringify(path)}, { memoryBytes: 30_000 });`;
  const args = ["--import", "tsx", "--input-type=module", "-e", script, JSON.stringify(corpus)];
  const [, signal] = await once(spawn(process.execPath, args, { stdio: "ignore" }), "exit");
  expect(signal).toBe("SIGKILL");
  expect(await readdir(workOf(path))).toContain("lock");
  const built = await buildIndexFolder(corpus, path, small);
  expect(built.resumedPassages).toBeGreaterThan(100);
  const index = await openIndex(path);
  expect(await index.retrieve(queries, 20)).toEqual(
    await (await buildBm25Index(corpus)).retrieve(queries, 20),
  );
});

describe("a kill right behind the end, when the index has its place and the segments are still there", () => {
  const finished = async (): Promise<string> => {
    const path = await interrupted();
    const rests = join(root, `rests-${made++}`);
    await cp(workOf(path), rests, { recursive: true });
    await buildIndexFolder(corpus, path, small);
    await rename(rests, workOf(path));
    await rm(join(workOf(path), "index"), { recursive: true });
    return path;
  };

  test("leaves rests that the next start removes, and nothing else", async () => {
    const path = await finished();
    expect(await readdir(workOf(path))).toContain("journal.json");
    await expect(buildIndexFolder(corpus, path, small)).rejects.toThrow(/exists already/);
    await expect(readdir(workOf(path))).rejects.toThrow("ENOENT");
    expect((await verifyIndex(path)).bytes).toBeGreaterThan(0);
    const unfinished = await interrupted();
    await removeRests(unfinished);
    expect((await buildIndexFolder(corpus, unfinished, small)).resumedPassages).toBeGreaterThan(100);
  });

  test("does not stand in the way of a build of another corpus there", async () => {
    const path = await finished();
    await rm(path, { recursive: true });
    const built = await buildIndexFolder(corpus.slice(0, 120), path, small);
    expect(built).toMatchObject({ passages: 120, resumedPassages: 0 });
    await expect(readdir(workOf(path))).rejects.toThrow("ENOENT");
  });
});

test("an abort stops the build with its reason, and the next start continues", async () => {
  const path = newPath();
  const controller = new AbortController();
  function* passages(): Generator<Passage> {
    for (const [i, passage] of corpus.entries()) {
      if (i === 250) controller.abort(new Error("enough"));
      yield passage;
    }
  }
  const { signal } = controller;
  await expect(buildIndexFolder(passages(), path, { ...small, signal })).rejects.toThrow("enough");
  expect((await buildIndexFolder(corpus, path, small)).resumedPassages).toBeGreaterThan(100);
});

test("a second build into the same folder is refused while the first one runs", async () => {
  const path = newPath();
  async function* slow(): AsyncGenerator<Passage> {
    yield* corpus.slice(0, 100);
    await expect(buildIndexFolder(corpus, path, small)).rejects.toThrow(
      new RegExp(`is being built by process ${process.pid} on .*wait for it or stop it`),
    );
    yield* corpus.slice(100);
  }
  expect((await buildIndexFolder(slow(), path, small)).passages).toBe(400);
  await expect(buildIndexFolder(corpus, path)).rejects.toThrow(
    /exists already; choose another folder or remove it/,
  );
});

test("the lock of a process that is gone is taken over, that of another host is not", async () => {
  const path = newPath();
  const lock = join(workOf(path), "lock");
  await mkdir(workOf(path), { recursive: true });
  await writeFile(lock, JSON.stringify({ pid: 1, host: "elsewhere" }));
  await expect(buildIndexFolder(corpus, path)).rejects.toThrow(FileError);
  expect(await readFile(lock, "utf8")).toContain("elsewhere");
  await writeFile(lock, JSON.stringify({ pid: 2 ** 22 + 1, host: hostname() }));
  expect((await buildIndexFolder(corpus, path)).passages).toBe(400);
});

test("a full disk is said in one line, and what was complete is kept", async () => {
  const path = await interrupted();
  await symlink("/dev/full", join(workOf(path), "index", "vocabulary.txt"));
  await expect(buildIndexFolder(corpus, path, small)).rejects.toThrow(
    /cannot write .*vocabulary.txt: the disk is full; free some space and run again/,
  );
  await rm(join(workOf(path), "index", "vocabulary.txt"));
  expect((await buildIndexFolder(corpus, path, small)).resumedPassages).toBeGreaterThan(100);
});

test("an empty corpus and options out of range leave nothing behind", async () => {
  const path = newPath();
  await expect(buildIndexFolder([], path)).rejects.toThrow("cannot index an empty corpus");
  await expect(buildIndexFolder(corpus, path, { options: { b: 2 } })).rejects.toThrow(/index options/);
  expect((await readdir(root)).filter((name) => name.startsWith(`.${path.split("/").at(-1)}`))).toEqual([]);
});
