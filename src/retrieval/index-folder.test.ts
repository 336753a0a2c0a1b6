import { appendFile, mkdir, mkdtemp, readdir, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Passage } from "../corpus/passage.ts";
import { FileError, RetrieverError } from "../errors.ts";
import { canonicalJson, sha256 } from "../shared/hash.ts";
import { openIndex, saveIndex, verifyIndex } from "./index-folder.ts";
import { buildBm25Index } from "./lexical/bm25.ts";
import { describeRetriever } from "./retriever.suite.ts";

let folder: string;
let made = 0;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "forager-index-"));
});
const opened: { close(): Promise<void> }[] = [];
afterAll(() => Promise.all(opened.map((index) => index.close())));
afterAll(() => rm(folder, { recursive: true, force: true }));

const passages: readonly Passage[] = [
  { id: "7", title: 'The "Heroes" album', text: "Recorded in Berlin.\nReleased in 1977." },
  {
    id: "eight",
    title: "Low",
    text: "An album of January 1977 — «Low»",
    extra: { url: "https://example.org", tags: ["a"] },
  },
];

async function save(from: readonly Passage[] = passages): Promise<string> {
  const path = join(folder, `index-${made++}`);
  await saveIndex(await buildBm25Index(from), path);
  return path;
}

describeRetriever("bm25 opened into memory", async (from) =>
  openIndex(await save(from), { storage: "memory" }),
);
describeRetriever("bm25 opened on disk", async (from) => openIndex(await save(from), { storage: "disk" }));

describeRetriever("bm25 on two threads", async (from) => {
  const index = await openIndex(await save(from), { storage: "memory", threads: 2 });
  opened.push(index);
  return index;
});

test("many queries on several threads are answered like one by one, in order, until the index is closed", async () => {
  const many = Array.from({ length: 300 }, (_, i) => ({
    id: `${i}`,
    title: `n${i}`,
    text: `album ${i % 17}`,
  }));
  const path = await save(many);
  const [alone, together] = [await openIndex(path), await openIndex(path, { threads: 3, storage: "memory" })];
  const queries = many.map(({ title, text }) => `${title} ${text}`);
  expect(await together.retrieve(queries, 7)).toEqual(await alone.retrieve(queries, 7));
  const late = expect(together.retrieve(queries, 7)).rejects.toThrow(/the index was closed; open it again/);
  await together.close();
  await late;
  await expect(together.retrieve(queries, 7)).rejects.toThrow(/the index was closed; open it again/);
});

test("an opened index answers as the one that was saved, with the same identity", async () => {
  const index = await buildBm25Index(passages, {
    k1: 0.9,
    fuzzy: { n: 3, weight: 0.5, minOverlap: 0.4, maxTerms: 2 },
  });
  const path = join(folder, `index-${made++}`);
  await saveIndex(index, path);
  const opened = await openIndex(path, { corpusHash: index.identity.corpusHash });
  expect(opened.identity).toEqual(index.identity);
  const queries = ["album 1977", "heros", "low january"];
  expect(await opened.retrieve(queries, 5)).toEqual(await index.retrieve(queries, 5));
});

test("equal corpora give equal folders, byte for byte", async () => {
  const [one, two] = [await save(), await save()];
  for (const file of await readdir(one))
    expect(await readFile(join(one, file))).toEqual(await readFile(join(two, file)));
});

test("a folder that exists is left as it is", async () => {
  const path = await save();
  const before = await readFile(join(path, "index.json"), "utf8");
  await expect(saveIndex(await buildBm25Index(passages.slice(1)), path)).rejects.toThrow(/exists already/);
  expect(await readFile(join(path, "index.json"), "utf8")).toBe(before);
});

test("a missing folder is a FileError that names it", async () => {
  const path = join(folder, "absent");
  await expect(openIndex(path)).rejects.toThrow(FileError);
  await expect(openIndex(path)).rejects.toThrow(/cannot read the index .*absent.*check the path/);
});

const storages = ["memory", "disk"] as const;

test.each([
  "passages.jsonl",
  "passages.f64",
  "ids.u32",
  "vocabulary.txt",
  "vocabulary.u32",
  "starts.f64",
  "bounds.f32",
  "postings.u32",
  "impacts.f32",
])(
  "%s is noticed when it is cut short or missing, and when it is altered before it is read into memory",
  async (file) => {
    const cut = await save();
    await truncate(join(cut, file), 3);
    for (const storage of storages)
      await expect(openIndex(cut, { storage })).rejects.toThrow(
        /is damaged: expected \d+ bytes, got 3; build the index again/,
      );
    const altered = await save();
    const bytes = await readFile(join(altered, file));
    bytes[0] = (bytes[0] as number) ^ 1;
    await writeFile(join(altered, file), bytes);
    await expect(openIndex(altered)).rejects.toThrow(/is damaged: its SHA-256 .* build the index again/);
    await expect(verifyIndex(altered)).rejects.toThrow(/is damaged: its SHA-256 .* build the index again/);
    const missing = await save();
    await rm(join(missing, file));
    for (const storage of storages)
      await expect(openIndex(missing, { storage })).rejects.toThrow(/cannot read .*no such file/);
    await expect(verifyIndex(missing)).rejects.toThrow(/cannot read .*no such file/);
  },
);

test("a damaged manifest is noticed", async () => {
  const path = await save();
  await appendFile(join(path, "index.json"), "}");
  await expect(openIndex(path)).rejects.toThrow(
    /index.json is damaged: it is not JSON; build the index again/,
  );
  await writeFile(join(path, "index.json"), '{"method":"bm25","version":2}');
  await expect(openIndex(path)).rejects.toThrow(/index.json is damaged: .*build the index again/s);
});

test("an index of another version asks to be built again", async () => {
  const path = await save();
  const manifest = JSON.parse(await readFile(join(path, "index.json"), "utf8")) as object;
  for (const version of [1, 99]) {
    await writeFile(join(path, "index.json"), JSON.stringify({ ...manifest, version }));
    await expect(openIndex(path)).rejects.toThrow(RetrieverError);
    await expect(openIndex(path)).rejects.toThrow(
      `expected a bm25 index of version 2, got bm25 of version ${version}; build the index again`,
    );
  }
});

test("an index that records no folding folds marks only, and keeps the identity it always had", async () => {
  const path = join(folder, `index-${made++}`);
  const street = [{ id: "a", title: "Große Straße", text: "São Paulo" }];
  await saveIndex(await buildBm25Index(street, { folding: "marks" }), path);
  const manifest = JSON.parse(await readFile(join(path, "index.json"), "utf8")) as {
    readonly version: number;
    readonly corpusHash: string;
    readonly options: Record<string, unknown>;
  };
  const { folding, ...options } = manifest.options;
  await writeFile(join(path, "index.json"), JSON.stringify({ ...manifest, options }));
  const index = await openIndex(path);
  const found = await index.retrieve(["straße", "strasse", "sao"], 1);
  expect([folding, ...found.map(({ length }) => length)]).toEqual(["marks", 1, 0, 1]);
  const { version, corpusHash } = manifest;
  const hashed = sha256(canonicalJson({ method: "bm25", version, options, corpusHash }));
  expect(index.identity.indexHash).toBe(hashed);
  expect(index.identity.parameters).not.toHaveProperty("folding");
});

test("an index of another corpus is refused when the corpus is known", async () => {
  const path = await save();
  await expect(openIndex(path, { corpusHash: "0".repeat(64) })).rejects.toThrow(
    /is the index of another corpus: expected corpus hash 000000000000…, got .*; build the index again/,
  );
});

test.each(storages)("passages are found by position and by id (%s)", async (storage) => {
  const many = Array.from({ length: 500 }, (_, i) => ({
    id: `passage ${i}`,
    title: `${i}`,
    text: `number ${i}`,
  }));
  const index = await openIndex(await save([...passages, ...many]), { storage });
  expect(index.passages.count).toBe(502);
  expect(index.passages.get(1)).toEqual(passages[1]);
  for (const passage of [...passages, ...many]) expect(index.passageById(passage.id)).toEqual(passage);
  for (const id of ["", "passage", "passage 500", "Eight"]) expect(index.passageById(id)).toBeUndefined();
  await index.close();
});

test("an index on disk needs its files while it is in use, and none of them once it is closed", async () => {
  const path = await save();
  const index = await openIndex(path, { storage: "disk", cacheBytes: 0 });
  expect(await index.retrieve(["album"], 1)).toMatchObject([[{ passage: { id: "7" } }]]);
  await index.close();
  await index.close();
  await expect(index.retrieve(["album"], 1)).rejects.toThrow(/the index was closed; open it again/);
  // Passages that were read lately are known without the file; the second was not.
  expect(() => index.passages.get(1)).toThrow(/the index was closed; open it again/);
});

test("passages that are not where the index says are a FileError, not a wrong passage", async () => {
  const path = await save();
  const starts = await readFile(join(path, "passages.f64"));
  starts.writeDoubleLE(1e9, 8);
  await writeFile(join(path, "passages.f64"), starts);
  const index = await openIndex(path, { storage: "disk" });
  expect(() => index.passages.get(0)).toThrow(FileError);
  expect(() => index.passages.get(0)).toThrow(
    /passage 0 cannot lie at bytes 0 to 1000000000; build the index again/,
  );
  await index.close();
});

test("an intact index is verified, whatever other folders lie in it", async () => {
  const path = await save();
  await mkdir(join(path, "dense"));
  await writeFile(join(path, "dense", "index.json"), "{}");
  expect((await verifyIndex(path)).bytes).toBeGreaterThan(100);
  expect(await (await openIndex(path)).retrieve(["low"], 1)).toHaveLength(1);
});
