import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { DataFormatError, FileError } from "../errors.ts";
import { corpusHash, corpusHasher } from "./corpus-hash.ts";
import type { Passage } from "./passage.ts";
import { readCorpus, writeCorpus } from "./read-corpus.ts";

let folder: string;
let path: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "forager-corpus-"));
  path = join(folder, "corpus.jsonl");
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function read(
  content: string | Uint8Array,
  onSkip?: (error: DataFormatError) => void,
): Promise<Passage[]> {
  await writeFile(path, content);
  const passages: Passage[] = [];
  for await (const passage of readCorpus(path, onSkip && { onSkip })) passages.push(passage);
  return passages;
}

describe("readCorpus", () => {
  test.each([
    ["a title in quotes", '"Title"\nText', "Title", "Text"],
    ["a title that holds quotes", '""Heroes" (album)"\nText', '"Heroes" (album)', "Text"],
    ["a title without quotes", "Title\nText", "Title", "Text"],
    ["a title with one quote", '"Title\nText', '"Title', "Text"],
    ["a text of several lines", '"Title"\nOne\n\nTwo', "Title", "One\n\nTwo"],
    ["a quoted line alone", '"Title"', "Title", ""],
    ["an unquoted line alone", "Only a text", "", "Only a text"],
    ["a single quote as title", '"\nText', '"', "Text"],
  ])("takes %s out of contents", async (_, contents, title, text) => {
    expect(await read(JSON.stringify({ id: "1", contents }))).toEqual([{ id: "1", title, text }]);
  });

  test("reads id, title and text, with or without a title", async () => {
    expect(await read('{"id":"a","title":"\\"T\\"","text":"x"}\n{"id":"b","text":"y"}')).toEqual([
      { id: "a", title: '"T"', text: "x" },
      { id: "b", title: "", text: "y" },
    ]);
  });

  test("makes texts of numeric ids and keeps unknown keys", async () => {
    expect(await read('{"id":7,"contents":"T\\nx","url":"u","n":{"a":[1]}}')).toEqual([
      { id: "7", title: "T", text: "x", extra: { url: "u", n: { a: [1] } } },
    ]);
  });

  test("tolerates a byte order mark, CRLF, blank lines and a missing last line end", async () => {
    const lines = '\ufeff{"id":"1","text":"a"}\r\n\r\n  \n{"id":"2","text":"b"}';
    expect((await read(lines)).map(({ id }) => id)).toEqual(["1", "2"]);
  });

  test("reads lines longer than the pieces a file comes in, and characters cut by them", async () => {
    const text = "é—𝛼".repeat(120_000);
    expect(
      await read(`${JSON.stringify({ id: "1", text })}\n${JSON.stringify({ id: "2", text: "b" })}\n`),
    ).toEqual([
      { id: "1", title: "", text },
      { id: "2", title: "", text: "b" },
    ]);
  });

  test.each([
    ["what is no JSON", '{"id": "2", "text": ', /expected one JSON object on the line, got .*id/],
    ["a list", '["2"]', /expected one JSON object on the line, got a list of 1/],
    ["null", "null", /expected one JSON object on the line, got null/],
    ["a missing id", '{"text":"b"}', /expected "id", a text or a number, got nothing/],
    ["an empty id", '{"id":"","text":"b"}', /expected "id", a text or a number, got an empty text/],
    [
      "an id whose last digits JSON loses",
      '{"id":12345678901234567890,"text":"b"}',
      /expected "id", a text or a number, got the number 12345678901234567000; .*put ids like this in quotes/,
    ],
    [
      "values within values without end",
      `{"id":"2","text":"b","tree":${"[".repeat(5000)}${"]".repeat(5000)}}`,
      /expected values of at most 200 levels, got more brackets within brackets/,
    ],
    ["an id that is a list", '{"id":[],"text":"b"}', /expected "id", a text or a number, got an empty list/],
    [
      "missing contents",
      '{"id":"2","body":"b"}',
      /expected "contents" or "text".*got nothing \(keys: "id", "body"\)/,
    ],
    ["empty contents", '{"id":"2","contents":" "}', /expected "contents" or "text".*got an empty text/],
    [
      "an empty passage",
      '{"id":"2","title":"","text":""}',
      /expected "contents" or "text".*got an empty text/,
    ],
    ["a text that is a number", '{"id":"2","text":5}', /expected "contents" or "text".*got the number 5/],
    ["an id seen before", '{"id":"1","text":"b"}', /expected ids without repeats, got "1" of line 1 again/],
  ])("names file and line of %s", async (_, line, message) => {
    const reading = read(`{"id":"1","text":"a"}\n\n${line}\n`);
    await expect(reading).rejects.toThrow(DataFormatError);
    await expect(reading).rejects.toThrow(message);
    await expect(reading).rejects.toMatchObject({ file: path, line: 3 });
  });

  test("names the line of bytes that are not UTF-8", async () => {
    const bytes = Buffer.concat([
      Buffer.from('{"id":"1","text":"a"}\n{"id":"2","text":"'),
      Buffer.of(0xe9),
      Buffer.from('"}'),
    ]);
    await expect(read(bytes)).rejects.toThrow(
      /:2: expected UTF-8 text, got other bytes; convert the file to UTF-8/,
    );
  });

  test("skips bad lines when it is told whom to tell", async () => {
    const skipped: DataFormatError[] = [];
    const passages = await read(
      '{"id":"1","text":"a"}\nnonsense\n{"id":"1","text":"b"}\n{"id":"2","text":"c"}',
      (error) => skipped.push(error),
    );
    expect(passages.map(({ text }) => text)).toEqual(["a", "c"]);
    expect(skipped.map(({ line }) => line)).toEqual([2, 3]);
  });

  test("refuses a file without passages, also when all lines are skipped", async () => {
    await expect(read("")).rejects.toThrow(/expected passages, .*got none/);
    await expect(read("\n \n")).rejects.toThrow(DataFormatError);
    await expect(read("nonsense", () => undefined)).rejects.toThrow(/got none/);
  });

  test("says that a file is missing", async () => {
    const start = (file: string) => readCorpus(file).next();
    await expect(start(join(folder, "absent.jsonl"))).rejects.toThrow(FileError);
    await expect(start(join(folder, "absent.jsonl"))).rejects.toThrow(
      /cannot read .*absent.jsonl: no such file/,
    );
  });
});

const text = fc.string({ unit: "grapheme" });
const key = fc
  .string({ minLength: 1 })
  .filter((name) => !["id", "title", "text", "__proto__"].includes(name));
const anyPassage = fc
  .record({
    title: text,
    text,
    extra: fc.option(fc.dictionary(key, fc.jsonValue(), { minKeys: 1 }), { nil: undefined }),
  })
  .filter(({ title, text }) => title !== "" || text.trim() !== "")
  .map(({ extra, ...rest }) => ({ ...rest, ...(extra && { extra }) }));

test("what is written is read back as it was", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyPassage, { minLength: 1, maxLength: 5 }), async (list) => {
      const passages = list.map((passage, index) => ({ id: `${index}`, ...passage }));
      await writeCorpus(path, passages);
      const back = await read(await readFile(path));
      // Through JSON, which has no -0.
      expect(back).toEqual(JSON.parse(JSON.stringify(passages)));
      expect(corpusHash(back)).toBe(corpusHash(passages));
    }),
    { numRuns: 30 },
  );
});

describe("the hash of a corpus", () => {
  const passages: Passage[] = [
    { id: "1", title: "T", text: "x", extra: { a: 1, b: 2 } },
    { id: "2", title: "", text: "y" },
  ];

  test("depends on every field and on the order, and not on the order of keys", () => {
    const [first, second] = passages as [Passage, Passage];
    const same = corpusHash([{ ...first, extra: { b: 2, a: 1 } }, second]);
    expect(same).toBe(corpusHash(passages));
    const others = [
      [second, first],
      [first],
      [{ ...first, id: "3" }, second],
      [{ ...first, title: "" }, second],
      [{ ...first, text: "" }, second],
      [{ ...first, extra: { a: 1 } }, second],
    ].map(corpusHash);
    expect(new Set([same, ...others]).size).toBe(others.length + 1);
  });

  test("is the same passage by passage, and stays what it was in earlier versions", () => {
    const hasher = corpusHasher();
    for (const passage of passages) hasher.add(passage);
    expect(hasher.digest()).toBe(corpusHash(passages));
    expect(corpusHash(passages)).toBe("a3dccf7e41bdf05c7a7fd8e17ebe5e555ac260d6e6de45ed624c43717f2b7430");
  });

  test("is the same for both dialects of a file", async () => {
    const contents = await read('{"id":"1","contents":"\\"T\\"\\nx"}');
    const fields = await read('{"text":"x","title":"T","id":1}\r\n');
    expect(corpusHash(contents)).toBe(corpusHash(fields));
  });
});
