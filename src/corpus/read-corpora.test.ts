import { execFileSync } from "node:child_process";
import { readFile, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { ConfigError } from "../errors.ts";
import { corpusOptionsSchema } from "./corpus-options.ts";
import { describeReport, newCorpusReport } from "./corpus-report.ts";
import { readCorpora } from "./read-corpora.ts";
import { at, golden, line, read, readAs, readLoosely, useFolders, write } from "./reading.suite.ts";

useFolders();

describe("several files", () => {
  test("are one corpus in their order", async () => {
    await write({ "a.jsonl": line(1) + line(2), "b.jsonl": line(3) });
    expect((await read(["b.jsonl", "a.jsonl"])).map(({ id }) => id)).toEqual(["3", "1", "2"]);
  });

  test("with an id of an earlier file are refused with both places named", async () => {
    await write({ "a.jsonl": line(1) + line(2), "again.jsonl": line(4) + line(2) });
    await expect(read(["a.jsonl", "again.jsonl"])).rejects.toThrow(
      /again\.jsonl:2: expected ids .* got "2", which .*a\.jsonl:2 has too/,
    );
  });
});

describe("documents of one name in several folders", () => {
  test("have the ids of their paths below the folder that holds them all", async () => {
    await write({ "a/notes.md": "one", "b/c/notes.md": "two", "other.md": "three" });
    const ids = async (names: readonly string[]) => (await read(names)).map(({ id }) => id);
    expect(await ids(["a/notes.md", "b/c/notes.md", "other.md"])).toEqual([
      "a/notes.md",
      "b/c/notes.md",
      "other.md",
    ]);
    expect(await ids(["./a/../a/notes.md", "other.md"])).toEqual(["notes.md", "other.md"]);
  });

  test("are apart when the folders have one name too", async () => {
    await write({ "a/docs/x.md": "one", "b/docs/x.md": "two" });
    expect((await read(["a/docs", "b/docs"])).map(({ id }) => id)).toEqual(["a/docs/x.md", "b/docs/x.md"]);
  });

  test("are still refused when they are one file", async () => {
    await write({ "a/notes.md": "one" });
    await expect(read(["a/notes.md", "a/notes.md"])).rejects.toThrow(/got "notes\.md", which .* has too/);
  });
});

describe("a folder", () => {
  test("of BEIR is its corpus", async () => {
    await write({
      "set/corpus.jsonl": '{"_id":"a","text":"x"}',
      "set/queries.jsonl": '{"_id":"q","text":"y"}',
    });
    expect(await read("set")).toEqual([{ id: "a", title: "", text: "x" }]);
    await rm(at("set/corpus.jsonl"));
    await write({ "set/corpus.jsonl.gz": gzipSync('{"_id":"b","text":"x"}') });
    expect((await read("set")).map(({ id }) => id)).toEqual(["b"]);
  });

  test("that is an index gives its passages, not the words of its vocabulary", async () => {
    await write({
      "i/index.json": "{}",
      "i/passages.jsonl": line(1),
      "i/postings.u32": "",
      "i/vocabulary.txt": "words",
    });
    expect((await read("i")).map(({ id }) => id)).toEqual(["1"]);
  });

  test("with a pipe goes on without it, and a pipe by itself is refused", async () => {
    await write({ "d/a.txt": "inside" });
    execFileSync("mkfifo", [at("d/b.txt")]);
    const { ids, report } = await readLoosely("d");
    expect(ids).toEqual(["a.txt"]);
    expect(report.problems[0]?.error.message).toMatch(/b\.txt: expected a file, got a pipe/);
    await expect(read("d/b.txt")).rejects.toThrow(
      /b\.txt: expected a file, got a pipe; .*write it to a file first/,
    );
  });

  test("of documents is read in order, with paths as ids and files of other kinds counted", async () => {
    await write({
      "d/b.md": "# Bees\n\nThey *hum*.",
      "d/a/z.html": "<title>Zed</title><p>last<script>no</script>",
      "d/a/lamp.docx": await readFile(join(golden, "lamp.docx")),
      "d/c.txt": "plain\r\ntext",
      "d/.hidden.md": "no",
      "d/.git/x.md": "no",
      "d/image.png": "no",
    });
    const report = newCorpusReport();
    const passages = await read("d", { strict: false, report });
    expect(passages.map(({ id, title, text }) => [id, title, text])).toEqual([
      ["a/lamp.docx", "The lamp", "The lamp\n\nIt burns & shines.\n\noil\n\nwick"],
      ["a/z.html", "Zed", "last"],
      ["b.md", "Bees", "Bees\n\nThey hum."],
      ["c.txt", "c", "plain\ntext"],
    ]);
    expect(report).toMatchObject({ passages: 4, skippedFiles: 1 });
    expect(describeReport(report)[1]).toMatch(/image\.png: expected a document, .*not read/);
    expect((await read("d", { format: "markdown", strict: false })).map(({ id }) => id)).toEqual(["b.md"]);
  });

  test("with a damaged document goes on when not strict", async () => {
    await write({
      "d/a.pdf": "%PDF-1.4 nonsense",
      "d/b.docx": "PK",
      "d/c.txt": "text",
      "d/d.txt": "a\0b",
      "d/e.txt": "",
    });
    const { ids, report } = await readLoosely("d");
    expect(ids).toEqual(["c.txt"]);
    expect(report).toMatchObject({ skippedFiles: 3, emptyPassages: 1 });
    await expect(read("d")).rejects.toThrow(/a\.pdf: expected a PDF file, got a damaged file/);
  });

  test("does not follow links that leave it, nor links in circles", async () => {
    await write({ "d/a.txt": "inside", "secret.txt": "outside" });
    await symlink(at("secret.txt"), at("d/out.txt"));
    await symlink(at("."), at("d/up"));
    await symlink(at("d"), at("d/round"));
    const { ids, report } = await readLoosely("d");
    expect(ids).toEqual(["a.txt"]);
    expect(report.problems.map(({ error }) => error.message)).toEqual([
      expect.stringMatching(/out\.txt: .*one that leaves it; it is not read/),
      expect.stringMatching(/up: .*one that leaves it/),
    ]);
  });

  test("of parts is all of them, and one without anything to read is refused", async () => {
    await write({ "parts/1.jsonl": line(1), "parts/2.jsonl.gz": gzipSync(line(2)), "none/a.bin": "x" });
    expect((await read("parts")).map(({ id }) => id)).toEqual(["1", "2"]);
    await expect(read("none")).rejects.toThrow(
      /expected a folder with corpus\.jsonl, .*got 1 other files \(a\.bin\)/,
    );
  });

  test("of parts has no documents in what describes them", async () => {
    await write({
      "hf/README.md": "# Card",
      "hf/LICENSE-MIT.txt": "free",
      "hf/data/train.jsonl.gz": gzipSync(line(1)),
      "hf/dataset_infos.json": "{}",
      "table/Readme.html": "<p>about",
      "table/a.csv": "id,text\n7,seven\n",
      "mixed/README.md": "# Card",
      "mixed/guide.md": "words",
      "mixed/part.jsonl": line(1),
      "alone/README.md": "# Card",
    });
    const { ids, report } = await readLoosely("hf");
    expect(ids).toEqual(["1"]);
    expect(report).toMatchObject({ skippedFiles: 3 });
    expect(report.problems[1]?.error.message).toMatch(/README\.md: expected records, .*not read/);
    expect((await readLoosely("table")).ids).toEqual(["7"]);
    expect((await readLoosely("mixed")).ids).toEqual(["README.md", "guide.md"]);
    expect((await readLoosely("alone")).ids).toEqual(["README.md"]);
    expect((await read("hf", { format: "markdown", strict: false })).map(({ id }) => id)).toEqual([
      "README.md",
    ]);
  });

  test("among several gives ids with its name", async () => {
    await write({ "x/a.txt": "one", "y/a.txt": "two" });
    expect((await read(["x", "y"])).map(({ id }) => id)).toEqual(["x/a.txt", "y/a.txt"]);
  });
});

describe("what is wrong", () => {
  const content = `${line(1)}nonsense\n${line(1)}{"id":2,"text":" "}\n${line(3, "text 1")}${line(4)}`;

  test("is skipped, counted and shown when reading is not strict", async () => {
    await write({ "a.jsonl": content, "empty.jsonl": "" });
    const { ids, report } = await readLoosely(["a.jsonl", "empty.jsonl"]);
    expect(ids).toEqual(["1", "3", "4"]);
    expect(report).toMatchObject({
      passages: 3,
      badLines: 1,
      duplicateIds: 1,
      emptyPassages: 1,
      duplicatePassages: 1,
      emptyFiles: 1,
    });
    expect(report.problems.map(({ kind, error }) => [kind, error.line])).toEqual([
      ["badLine", 2],
      ["duplicateId", 3],
      ["emptyPassage", 4],
      ["duplicatePassage", 5],
      ["emptyFile", undefined],
    ]);
    expect(describeReport(report)).toHaveLength(6);
    expect(describeReport(report)[0]).toBe(
      "1 bad line, 1 repeated id, 1 empty passage, 1 repeated passage, 1 file without passages",
    );
  });

  test("ends a strict reading, equal passages do not", async () => {
    await expect(readAs("a.jsonl", content)).rejects.toThrow(/a\.jsonl:2: expected one JSON object/);
    const report = newCorpusReport();
    expect(await readAs("b.jsonl", line(1) + line(3, "text 1"), { report })).toHaveLength(2);
    expect(report.duplicatePassages).toBe(1);
    expect(await read("b.jsonl", { dropDuplicates: true })).toHaveLength(1);
  });

  test("keeps the first twenty problems only", async () => {
    const report = newCorpusReport();
    await readAs("a.jsonl", `${"nonsense\n".repeat(50)}${line(1)}`, { strict: false, report });
    expect([report.badLines, report.problems.length]).toEqual([50, 20]);
    expect(describeReport(report).at(-1)).toBe("  and 30 more");
  });

  test("is the whole corpus: that is an error which shows the first problem", async () => {
    const reading = readAs("a.jsonl", '{"title":"x"}\n', { strict: false });
    await expect(reading).rejects.toThrow(
      /expected passages, .*got none; the first problem: .*a\.jsonl:1: expected "id"/,
    );
  });
});

test("progress goes up to the bytes of all files, compressed ones too", async () => {
  await write({ "a.jsonl": line(1), "b.jsonl.gz": gzipSync(line(2)) });
  const seen: [number, number][] = [];
  await read(["a.jsonl", "b.jsonl.gz"], { onProgress: (...progress) => seen.push(progress) });
  const total = line(1).length + gzipSync(line(2)).length;
  expect(seen.at(-1)).toEqual([total, total]);
});

test("records are cut when asked, short ones keep their id", async () => {
  const chunk = { by: "words", size: 3 } as const;
  const passages = await readAs("a.jsonl", line(1, "a b c d e") + line(2, "a b"), { chunk });
  expect(passages).toEqual([
    { id: "1#0", title: "t", text: "a b c", source: { document: "1", start: 0, end: 5 } },
    { id: "1#1", title: "t", text: "d e", source: { document: "1", start: 6, end: 9 } },
    { id: "2", title: "t", text: "a b", source: { document: "2", start: 0, end: 3 } },
  ]);
  await expect(read("a.jsonl", { chunk: { by: "tokens" } })).rejects.toThrow(ConfigError);
  await expect(read("a.jsonl", { chunk: { by: "words", size: 0 } })).rejects.toThrow(ConfigError);
});

test("a reading that is left early closes its files", async () => {
  await write({ "a.jsonl.gz": gzipSync(Array.from({ length: 1e5 }, (_, i) => line(i)).join("")) });
  for await (const { id } of readCorpora([at("a.jsonl.gz")])) {
    expect(id).toBe("0");
    break;
  }
});

test("options are refused when they are unknown", () => {
  expect(corpusOptionsSchema.parse({})).toEqual({ format: "auto", strict: false, dropDuplicates: false });
  expect(corpusOptionsSchema.safeParse({ fromat: "csv" }).success).toBe(false);
});
