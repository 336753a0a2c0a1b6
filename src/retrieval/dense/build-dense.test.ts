import { appendFile, mkdtemp, readdir, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { corpusHash } from "../../corpus/corpus-hash.ts";
import type { Passage } from "../../corpus/passage.ts";
import { ConfigError, FileError, RetrieverError } from "../../errors.ts";
import { random } from "../../shared/random.ts";
import type { PassageStore } from "../passage-store.ts";
import { describeRetriever } from "../retriever.suite.ts";
import { addGraph } from "./add-graph.ts";
import { buildDense, removeRests } from "./build-dense.ts";
import { openDense } from "./dense-retriever.ts";
import { fakeEncoder } from "./fake-encoder.fixture.ts";
import type { DenseProgress } from "./progress.ts";

let scratch: string;
beforeEach(async () => {
  scratch = await mkdtemp(join(tmpdir(), "forager-dense-"));
});
afterEach(() => rm(scratch, { recursive: true, force: true }));

const work = { threads: 1, now: () => 0 };

function storeOf(passages: readonly Passage[]): PassageStore {
  return { count: passages.length, get: (position) => passages[position] as Passage };
}

/** Passages of ten words from a vocabulary of 300. */
function madeUp(count: number, seed = 1): Passage[] {
  const chance = random(seed, "passages");
  const words = (n: number): string => Array.from({ length: n }, () => `w${chance.below(300)}`).join(" ");
  return Array.from({ length: count }, (_, i) => ({ id: `${i}`, title: words(2), text: words(8) }));
}

let folders = 0;
const newFolder = (): string => join(scratch, `vectors-${folders++}`);

describeRetriever("dense, exact", async (passages) => {
  const folder = newFolder();
  const encoder = fakeEncoder();
  await buildDense(storeOf(passages), encoder, { folder, dtype: "f32", ...work });
  return await openDense(folder, { passages: storeOf(passages), encoder }, work);
});

describeRetriever("dense, approximate", async (passages) => {
  const folder = newFolder();
  const encoder = fakeEncoder();
  await buildDense(storeOf(passages), encoder, { folder, approximate: {}, ...work });
  return await openDense(folder, { passages: storeOf(passages), encoder }, { ...work, approximate: true });
});

describe("a build that is cut off", () => {
  test("goes on behind the last whole part and gives the same bytes, wherever it was cut", async () => {
    const passages = madeUp(150);
    const whole = newFolder();
    const options = { partSize: 16, dtype: "f16", ...work } as const;
    const expected = await buildDense(storeOf(passages), fakeEncoder(), { folder: whole, ...options });
    const cut = fc.record({ parts: fc.integer({ min: 0, max: 3 }), tail: fc.nat(2000) });
    await fc.assert(
      fc.asyncProperty(fc.array(cut, { minLength: 1, maxLength: 3 }), async (cuts) => {
        const folder = newFolder();
        for (const { parts, tail } of cuts) {
          let calls = 0;
          const dying = fakeEncoder({
            onPassages: () => {
              if (calls++ === parts) throw new Error("killed");
            },
          });
          await expect(buildDense(storeOf(passages), dying, { folder, ...options })).rejects.toThrow(
            "killed",
          );
          // What a kill in the middle of a write leaves: bytes without a line, a line cut short.
          await appendFile(join(`${folder}.building`, "vectors.f16"), new Uint8Array(tail));
          await appendFile(join(`${folder}.building`, "journal.jsonl"), '{"rows":16,"by');
        }
        const encoder = fakeEncoder();
        expect(await buildDense(storeOf(passages), encoder, { folder, ...options })).toEqual(expected);
        const done = cuts.reduce((sum, { parts }) => sum + parts, 0);
        expect(encoder.encoded.passages).toBe(150 - 16 * done);
        expect(await readdir(folder)).toEqual(["dense.json", "vectors.f16"]);
        const files = await Promise.all([whole, folder].map((from) => readFile(join(from, "vectors.f16"))));
        expect(files[1]?.equals(files[0] as Buffer)).toBe(true);
      }),
      { numRuns: 15 },
    );
  });

  test("leaves no file in the finished folder that only the build needed", async () => {
    const [folder, passages] = [newFolder(), madeUp(40)];
    const dying = fakeEncoder({
      onPassages: () => {
        throw new Error("killed");
      },
    });
    const options = { folder, files: { "encoder.json": "{}" }, ...work };
    await expect(buildDense(storeOf(passages), dying, options)).rejects.toThrow("killed");
    const gone = 2 ** 22 + 1; // no process has such an id
    for (const file of ["plan.json", "encoder.json", "dense.json"])
      await writeFile(join(`${folder}.building`, `.${file}.${gone}.partial`), "{");
    await buildDense(storeOf(passages), fakeEncoder(), options);
    const whole = ["dense.json", "encoder.json", "vectors.f16"];
    expect((await readdir(folder)).sort()).toEqual(whole);
    for (const file of ["plan.json", "journal.jsonl"]) await writeFile(join(folder, file), "killed");
    await removeRests(folder);
    expect((await readdir(folder)).sort()).toEqual(whole);
    await writeFile(join(scratch, "plan.json"), "of another");
    await removeRests(scratch);
    expect(await readdir(scratch)).toContain("plan.json");
  });

  test("encodes again what the disk has lost or changed", async () => {
    const passages = madeUp(60);
    const options = { partSize: 16, dtype: "f32", ...work } as const;
    for (const spoil of ["short", "changed"]) {
      const folder = newFolder();
      let calls = 0;
      const dying = fakeEncoder({
        onPassages: () => {
          if (calls++ === 3) throw new Error("killed");
        },
      });
      await expect(buildDense(storeOf(passages), dying, { folder, ...options })).rejects.toThrow("killed");
      const vectors = join(`${folder}.building`, "vectors.f32");
      const bytes = await readFile(vectors);
      if (spoil === "short") await truncate(vectors, 20 * 48 * 4);
      else await writeFile(vectors, bytes.fill(7, 20 * 48 * 4, 21 * 48 * 4));
      const encoder = fakeEncoder();
      await buildDense(storeOf(passages), encoder, { folder, ...options });
      expect(encoder.encoded.passages).toBe(60 - 16);
      await openDense(folder, { passages: storeOf(passages), encoder }, work);
    }
  });

  test("is not joined by a second build of the same folder", async () => {
    const folder = newFolder();
    const passages = storeOf(madeUp(20));
    const first = buildDense(passages, fakeEncoder(), { folder, ...work });
    const second = buildDense(passages, fakeEncoder(), { folder, ...work });
    const outcomes = await Promise.allSettled([first, second]);
    expect(outcomes.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    const refused = outcomes.find(({ status }) => status === "rejected") as PromiseRejectedResult;
    expect(refused.reason).toBeInstanceOf(FileError);
    expect(refused.reason.message).toMatch(/is being built by process \d+/);
    expect((await readdir(folder)).sort()).toEqual(["dense.json", "vectors.f16"]);
  });

  test("is not mixed with another one, and the message says what to do", async () => {
    const folder = newFolder();
    const dying = fakeEncoder({
      onPassages: () => {
        throw new Error("killed");
      },
    });
    const passages = storeOf(madeUp(20));
    await expect(buildDense(passages, dying, { folder, ...work })).rejects.toThrow("killed");
    const other = buildDense(passages, fakeEncoder({ name: "other" }), { folder, ...work });
    await expect(other).rejects.toThrow(FileError);
    await expect(other).rejects.toThrow(/unfinished build of other vectors.*remove that folder/);
  });

  test("stops with the reason of the signal and keeps what is done", async () => {
    const folder = newFolder();
    const passages = storeOf(madeUp(64));
    const controller = new AbortController();
    const reason = new Error("enough");
    const onProgress = ({ done }: DenseProgress): void => {
      if (done >= 40) controller.abort(reason);
    };
    const options = { folder, partSize: 16, ...work, onProgress, signal: controller.signal };
    await expect(buildDense(passages, fakeEncoder(), options)).rejects.toBe(reason);
    const encoder = fakeEncoder();
    await buildDense(passages, encoder, { folder, partSize: 16, ...work });
    expect(encoder.encoded.passages).toBeLessThanOrEqual(32);
  });
});

test("progress says how much is done, how fast, and how long it will take", async () => {
  let time = 0;
  const seen: DenseProgress[] = [];
  const options = { threads: 1, now: () => time, partSize: 16 };
  const encoder = fakeEncoder({ onPassages: () => (time += 2000) });
  const onProgress = (progress: DenseProgress): number => seen.push(progress);
  await buildDense(storeOf(madeUp(64)), encoder, { folder: newFolder(), ...options, onProgress });
  expect(seen.at(-1)).toEqual({ stage: "encode", done: 64, total: 64, rate: 8, remainingSeconds: 0 });
  expect(seen.find(({ done }) => done === 32)).toMatchObject({ rate: 8, remainingSeconds: 4 });
  expect(seen.map(({ done }) => done)).toEqual([...seen.map(({ done }) => done)].sort((a, b) => a - b));
});

describe("vectors", () => {
  test("say which corpus and encoder they are of, and are refused by others", async () => {
    const [folder, passages, encoder] = [newFolder(), madeUp(30), fakeEncoder()];
    const manifest = await buildDense(storeOf(passages), encoder, { folder, ...work });
    expect(manifest).toMatchObject({ corpusHash: corpusHash(passages), count: 30, dtype: "f16" });
    const open = (count: number, other = encoder, hash?: string) =>
      openDense(
        folder,
        { passages: storeOf(passages.slice(0, count)), encoder: other },
        { threads: 1, ...(hash && { corpusHash: hash }) },
      );
    await expect(open(30, fakeEncoder({ name: "other" }))).rejects.toThrow(RetrieverError);
    await expect(open(30, fakeEncoder({ name: "other" }))).rejects.toThrow(
      /made by fake .* not by the encoder given, other .* build them again/,
    );
    await expect(open(29)).rejects.toThrow(/another corpus: expected 30 passages .* got 29/);
    await expect(open(30, encoder, "0".repeat(64))).rejects.toThrow(/another corpus/);
    await (await open(30)).close();
  });

  test("that are damaged are refused, each with what is wrong", async () => {
    const [folder, passages, encoder] = [newFolder(), madeUp(30), fakeEncoder()];
    await buildDense(storeOf(passages), encoder, { folder, approximate: {}, ...work });
    const open = (approximate: boolean) =>
      openDense(folder, { passages: storeOf(passages), encoder }, { threads: 1, approximate });
    const keep = async (
      file: string,
      change: (bytes: Buffer) => Uint8Array,
      message: RegExp,
      graph = false,
    ) => {
      const path = join(folder, file);
      const bytes = await readFile(path);
      await writeFile(path, change(Buffer.from(bytes)));
      await expect(open(graph)).rejects.toThrow(message);
      await writeFile(path, bytes);
    };
    await keep(
      "vectors.f16",
      (bytes) => bytes.subarray(1),
      /vectors.f16 is damaged: expected \d+ bytes, got \d+; remove .* and build the vectors again/,
    );
    await keep("vectors.f16", (bytes) => bytes.fill(1, 0, 1), /vectors.f16 is damaged: its SHA-256/);
    await keep("graph.usearch", (bytes) => bytes.subarray(0, 900), /graph.usearch is damaged/, true);
    await keep("dense.json", () => Buffer.from("{"), /dense.json is damaged: it is not JSON/);
    await keep(
      "dense.json",
      (bytes) => Buffer.from(bytes.toString().replace('"version": 1', '"version": 0')),
      /version 1, got dense of version 0; remove .* and build them again/,
    );
    await (await open(false)).close();
  });

  test("are not made of nothing, over something, or with unknown settings", async () => {
    const passages = storeOf(madeUp(3));
    const build = (from: PassageStore, options: object) =>
      buildDense(from, fakeEncoder(), { folder: scratch, ...work, ...options });
    await expect(build(storeOf([]), {})).rejects.toThrow("empty corpus");
    await expect(build(passages, {})).rejects.toThrow("exists already");
    const bad = build(passages, { folder: newFolder(), approximate: { connectivity: 1 } });
    await expect(bad).rejects.toThrow(ConfigError);
    await expect(bad).rejects.toThrow(/connectivity/);
  });

  test("without a graph cannot be searched through one", async () => {
    const [folder, passages, encoder] = [newFolder(), madeUp(3), fakeEncoder()];
    await buildDense(storeOf(passages), encoder, { folder, ...work });
    const opening = openDense(
      folder,
      { passages: storeOf(passages), encoder },
      { ...work, approximate: true },
    );
    await expect(opening).rejects.toThrow(
      /no graph.*add one with forager index --out INDEX --approximate, or search exactly/,
    );
  });
});

describe("a graph over vectors that exist", () => {
  test("is that of a build with one, costs no encoding, and comes over what a kill left", async () => {
    const [folder, passages] = [newFolder(), storeOf(madeUp(300))];
    await buildDense(passages, fakeEncoder(), { folder, ...work });
    await writeFile(join(folder, "graph.usearch"), "half a graph");
    const encoder = fakeEncoder();
    const added = await addGraph(folder, { passages, encoder }, work);
    expect(encoder.encoded.passages).toBe(0);
    const both = newFolder();
    const built = await buildDense(passages, fakeEncoder(), { folder: both, approximate: {}, ...work });
    expect({ ...added, approximate: { ...added.approximate, graph: undefined } }).toEqual({
      ...built,
      approximate: { ...built.approximate, graph: undefined },
    });
    expect(await readdir(folder)).toEqual(await readdir(both));
    const graph = await openDense(folder, { passages, encoder }, { ...work, approximate: true });
    expect((await graph.retrieve(["w1 w2"], 5))[0]).toHaveLength(5);
  });

  test("is refused for another encoder or corpus, twice, and with unknown settings", async () => {
    const [folder, passages, encoder] = [newFolder(), storeOf(madeUp(30)), fakeEncoder()];
    await buildDense(passages, encoder, { folder, ...work });
    const add = (parts: object = {}, options: object = {}) =>
      addGraph(folder, { passages, encoder, ...parts }, { ...work, ...options });
    await expect(add({ encoder: fakeEncoder({ name: "other" }) })).rejects.toThrow(/made by fake/);
    await expect(add({ passages: storeOf(madeUp(29)) })).rejects.toThrow(/another corpus/);
    await expect(add({}, { corpusHash: "0".repeat(64) })).rejects.toThrow(/another corpus/);
    await expect(add({}, { approximate: { connectivity: 1 } })).rejects.toThrow(ConfigError);
    expect((await add()).approximate?.recall.k).toBe(10);
    await expect(add()).rejects.toThrow(/has a graph already/);
    expect((await readdir(folder)).sort()).toEqual(["dense.json", "graph.usearch", "vectors.f16"]);
  });
});

test("a query that is asked several times at once is encoded once", async () => {
  const [folder, passages, encoder] = [newFolder(), madeUp(30), fakeEncoder()];
  await buildDense(storeOf(passages), encoder, { folder, ...work });
  const asked: string[] = [];
  const counting = {
    ...encoder,
    encodeQueries: (queries: readonly string[]) => {
      asked.push(...queries);
      return encoder.encodeQueries(queries);
    },
  };
  const retriever = await openDense(folder, { passages: storeOf(passages), encoder: counting }, work);
  const answers = await retriever.retrieve(["w1 w2", "w3", "w1 w2"], 2);
  expect(asked).toEqual(["w1 w2", "w3"]);
  expect(answers[2]).toEqual(answers[0]);
  expect(answers[1]).not.toEqual(answers[0]);
});

test("the graph finds nearly all of what exact search finds, as its manifest says", async () => {
  const [folder, passages, encoder] = [newFolder(), madeUp(3000), fakeEncoder()];
  const { approximate } = await buildDense(storeOf(passages), encoder, { folder, approximate: {}, ...work });
  const recall = approximate?.recall;
  expect(recall).toMatchObject({ k: 10, queries: 256 });
  const parts = { passages: storeOf(passages), encoder };
  const exact = await openDense(folder, parts, work);
  const graph = await openDense(folder, parts, { ...work, approximate: true });
  const queries = madeUp(200, 2).map(({ text }) => text);
  const [wanted, found] = await Promise.all([exact.retrieve(queries, 10), graph.retrieve(queries, 10)]);
  const shares = wanted.map((answer, i) => {
    const ids = new Set(answer.map(({ passage }) => passage.id));
    return (found[i] ?? []).filter(({ passage }) => ids.has(passage.id)).length / answer.length;
  });
  const measured = shares.reduce((sum, share) => sum + share, 0) / shares.length;
  expect(recall?.value).toBeGreaterThan(0.9);
  expect(measured).toBeGreaterThan(0.85);
  expect(graph.identity.parameters).toMatchObject({ recall: recall?.value, encoder: "fake" });
  expect(graph.identity.indexHash).not.toBe(exact.identity.indexHash);
  const wide = await openDense(folder, parts, { ...work, approximate: true, expansionSearch: 3000 });
  const all = await wide.retrieve(queries, 10);
  const missed = all.map(
    (answer, i) =>
      answer.filter(({ passage }) => !wanted[i]?.some((w) => w.passage.id === passage.id)).length,
  );
  expect(missed.reduce((a, b) => a + b, 0)).toBeLessThan(20);
});
