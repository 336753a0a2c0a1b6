import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { ConfigError, DataFormatError } from "../errors.ts";
import { golden, line, read, readAs, readPaths, useFolders } from "./reading.suite.ts";

useFolders();

describe("a record of JSON Lines", () => {
  test.each([
    ["FlashRAG", { id: "0", contents: '"T"\nx' }, {}],
    ["fields", { id: 0, title: "T", text: "x" }, {}],
    ["BEIR", { _id: "0", title: "T", text: "x", metadata: { a: 1 } }, { extra: { metadata: { a: 1 } } }],
    ["WikiExtractor", { id: "0", url: "u", title: "T", text: "x" }, { extra: { url: "u" } }],
    ["Anserini", { docid: "0", title: "T", contents: "x" }, {}],
    ["title twice", { id: "0", title: "T", contents: "T\nx" }, {}],
    ["rLLM", { id: "0", content: '"T"\nx' }, {}],
    ["a source of its own", { id: "0", title: "T", text: "x", source: "s" }, { extra: { source: "s" } }],
  ])("is read in the dialect of %s", async (_, record, rest) => {
    expect(await readAs("a.jsonl", JSON.stringify(record))).toEqual([
      { id: "0", title: "T", text: "x", ...rest },
    ]);
  });

  test("keeps lone surrogates, NUL characters and texts of 10 MB", async () => {
    const long = "word ".repeat(2_000_000);
    const passages = await readAs("a.jsonl", line(1, "a\ud800b") + line(2, "a\0b") + line(3, long));
    expect(passages.map(({ text }) => text)).toEqual(["a\ud800b", "a\0b", long]);
  });

  test("may have a title that is null or a number, and a place of origin", async () => {
    const sourceSpan = { document: "d", start: 1, end: 5, page: 2 };
    const lines = [
      { id: 1, title: null, text: "x" },
      { id: 2, title: 1984, text: "y", sourceSpan },
    ];
    expect(await readAs("a.jsonl", lines.map((record) => JSON.stringify(record)).join("\n"))).toEqual([
      { id: "1", title: "", text: "x" },
      { id: "2", title: "1984", text: "y", source: sourceSpan },
    ]);
  });

  test("is empty with blanks alone, and a title that is no text is named", async () => {
    await expect(readAs("a.jsonl", '{"id":"1","title":"  ","text":"\\n"}')).rejects.toThrow(
      /a\.jsonl:1: expected "contents" or "text", a text that is not empty, got an empty text/,
    );
    await expect(readAs("a.jsonl", '{"id":"1","title":["A"],"text":"body"}')).rejects.toThrow(
      /a\.jsonl:1: expected "title", a text, got a list of 1/,
    );
  });

  test("is found under the names that are given", async () => {
    const options = { columns: { id: "key", text: "body" } };
    expect(await readAs("a.jsonl", '{"key":"k","title":"T","body":"x","id":1}', options)).toEqual([
      { id: "k", title: "T", text: "x", extra: { id: 1 } },
    ]);
    // One key may be two parts.
    expect(
      await readAs("b.jsonl", '{"key":"k","n":1,"title":"T"}', { columns: { id: "key", text: "key" } }),
    ).toEqual([{ id: "k", title: "T", text: "k", extra: { n: 1 } }]);
  });
});

test("what a line holds cannot steer the terminal that shows what is wrong with it", async () => {
  const failure = await readAs("a.jsonl", "\u001b[31mred\u009b\n").catch((error: unknown) => error);
  expect((failure as Error).message).toContain("\\u001b[31mred");
  expect((failure as Error).message).not.toMatch(/\p{Cc}/u);
});

test("bytes that are NUL in a line are named", async () => {
  await expect(readAs("a.jsonl", `${line(1)}\0\0\0`)).rejects.toThrow(/:2: .*NUL bytes: the file is damaged/);
});

test.each(["a.json", "a.jsonl", "a"])(
  "a JSON array in %s is read, and an object over several lines",
  async (name) => {
    const records = [
      { id: "1", text: "x" },
      { id: "2", text: "y" },
    ];
    expect((await readAs(name, JSON.stringify(records, undefined, 2))).map(({ id }) => id)).toEqual([
      "1",
      "2",
    ]);
    expect((await readAs(name, JSON.stringify(records[0], undefined, 2))).map(({ id }) => id)).toEqual(["1"]);
    expect((await readAs(name, records.map((record) => JSON.stringify(record)).join("\n"))).length).toBe(2);
  },
);

test("JSON that holds no objects is refused by what it holds", async () => {
  await expect(readAs("a.json", "7")).rejects.toThrow(
    /a\.json:1: expected one JSON object on the line, got the number 7/,
  );
  await expect(readAs("b.json", '"abc"')).rejects.toThrow(/got "abc"/);
});

test("Parquet under the name of JSON Lines is read, an archive of files is refused", async () => {
  const bytes = await readFile(join(golden, "passages-none.parquet"));
  expect((await readAs("a.jsonl", bytes)).length).toBe(3);
  const tar = Buffer.alloc(1024);
  tar.write("ustar", 257);
  await expect(readAs("a.tar.gz", gzipSync(tar))).rejects.toThrow(/got an archive of files; unpack it/);
});

describe("compressed files", () => {
  const ids = ["0", "1", "2", "3", "4", "5"];
  test.each(["corpus.jsonl.zst", "corpus.jsonl.bz2"])("of several parts are read: %s", async (name) => {
    const bytes = await readFile(join(golden, name));
    expect((await readAs(name, bytes)).map(({ id }) => id)).toEqual(ids);
    // The name does not matter.
    expect((await readAs("other.jsonl", bytes)).map(({ title }) => title)).toContain("Title 5");
  });

  test("of several gzip members are read", async () => {
    const bytes = Buffer.concat([gzipSync(line(1)), gzipSync(line(2))]);
    expect((await readAs("a.jsonl.gz", bytes)).map(({ id }) => id)).toEqual(["1", "2"]);
  });

  test.each([
    ["gzip", gzipSync(line(1) + line(2, "x".repeat(9999)))],
    ["zstd", readFileSync(join(golden, "corpus.jsonl.zst"))],
    ["bzip2", readFileSync(join(golden, "corpus.jsonl.bz2"))],
  ])("that are cut short or changed are refused even when not strict: %s", async (name, bytes) => {
    const loosely = { strict: false };
    for (const end of [10, bytes.length - 1])
      await expect(readAs("a.jsonl.x", bytes.subarray(0, end), loosely)).rejects.toThrow(
        new RegExp(`expected a whole ${name} file, got a file that is cut short; copy or download it again`),
      );
    const changed = Buffer.from(bytes);
    changed.fill(0xff, 12, 24);
    // What unpacks to other text is found by the reader of the text at the latest.
    await expect(readAs("a.jsonl.x", changed)).rejects.toThrow(DataFormatError);
  });
});

describe("Parquet", () => {
  test.each(["snappy", "zstd", "gzip", "brotli", "none"])("with %s is read in row groups", async (codec) => {
    const path = join(golden, `passages-${codec}.parquet`);
    expect(await readPaths([path])).toEqual([
      { id: "7", title: "A", text: "first", extra: { tags: ["x", "y"] } },
      { id: "8", title: "", text: "second", extra: { tags: [] } },
      { id: "1152921504606846976", title: "C", text: "third", extra: { tags: null } },
    ]);
  });

  test("without ids gets the file and the row", async () => {
    const passages = await readPaths([join(golden, "no-id.parquet")]);
    expect(passages.map(({ id }) => id)).toEqual(["no-id.parquet#0", "no-id.parquet#1"]);
  });

  test("without a text, cut short or damaged is refused in one line", async () => {
    const noText = readPaths([join(golden, "no-text.parquet")]);
    await expect(noText).rejects.toThrow(/expected a column "text" .*got title, tags; .*columns\.text=NAME/);
    const bytes = await readFile(join(golden, "passages-zstd.parquet"));
    await expect(readAs("a.parquet", bytes.subarray(0, 900))).rejects.toThrow(
      /Parquet file, got one that is cut short/,
    );
    await expect(readAs("b.parquet", "PAR1")).rejects.toThrow(/cut short/);
    const changed = Buffer.from(bytes);
    changed.fill(0xff, 4, 400);
    await expect(readAs("c.parquet", changed)).rejects.toThrow(/Parquet file, got damaged data/);
  });
});

describe("tables", () => {
  const expected = [
    { id: "1", title: "T", text: 'a "b", c' },
    { id: "2", title: "U", text: "two\nlines" },
  ];
  test.each([
    ["CSV with a header", "a.csv", 'ID,Title,Text\r\n1,T,"a ""b"", c"\r\n2,U,"two\nlines"\r\n'],
    ["CSV with a mark and semicolons", "a.csv", '\ufeffid;title;text\n1;T;"a ""b"", c"\n\n2;U;"two\nlines"'],
    ["DPR with a header", "a.tsv", 'id\ttext\ttitle\n1\t"a ""b"", c"\tT\n2\t"two\nlines"\tU\n'],
    ["DPR without a header", "a.tsv", '1\t"a ""b"", c"\tT\n2\t"two\nlines"\tU\n'],
  ])("are read: %s", async (_, name, content) => {
    expect(await readAs(name, content)).toEqual(expected);
  });

  test("may end their lines in CR, or in several ways", async () => {
    expect((await readAs("a.csv", "id,text\r1,a\r2,b\r")).map(({ text }) => text)).toEqual(["a", "b"]);
    expect((await readAs("b.csv", "id,text\r\n1,a\n2,b\r\n")).map(({ text }) => text)).toEqual(["a", "b"]);
  });

  test("of KILT have both parts in one column", async () => {
    const content = '\ufeff0\t"Title: A ""b"" Text:  Some ""c"" text"\r\n1\tTitle: C Text: d\r\n';
    expect(await readAs("a.tsv", content)).toEqual([
      { id: "0", title: 'A "b"', text: 'Some "c" text' },
      { id: "1", title: "C", text: "d" },
    ]);
  });

  test("of MS MARCO have quotes that are text", async () => {
    const content = '0\t"Yes" he said\n1\t"Never\n2\ta "b\n';
    expect((await readAs("a.tsv", content)).map(({ text }) => text)).toEqual([
      '"Yes" he said',
      '"Never',
      'a "b',
    ]);
  });

  test("without ids get the file and the row; other columns are kept", async () => {
    expect(await readAs("a.csv", "text,lang\nx,en\n")).toEqual([
      { id: "a.csv#0", title: "", text: "x", extra: { lang: "en" } },
    ]);
  });

  test("have bad rows by their line, counted over lines within quotes", async () => {
    await expect(readAs("a.csv", 'id,text\n1,"a\nb"\n2\n')).rejects.toThrow(
      /a\.csv:4: expected 2 columns \(id, text\), got 1/,
    );
  });

  test("with a quote that is never closed name the line where its row starts", async () => {
    await expect(readAs("a.csv", 'id,text\n1,a\n2,"b\n3,c\n')).rejects.toThrow(
      /a\.csv:3: .*quote that is never closed/,
    );
  });

  test("with two columns of one name are refused where they are read, since one would hide the other", async () => {
    for (const header of ["id,text,Text", "id,text,ID", "id,title,text,title"])
      await expect(readAs("a.csv", `${header}\n${header.replace("id", "1")}\n`)).rejects.toThrow(
        /a\.csv:1: expected columns with names of their own, got "(text|id|title)" twice/,
      );
    await expect(readAs("a.csv", "id,body,body\n1,a,b\n", { columns: { text: "body" } })).rejects.toThrow(
      /a\.csv:1: .*got "body" twice/,
    );
    expect(await readAs("a.csv", "id,text,note,note\n1,a,x,y\n")).toEqual([
      { id: "1", title: "", text: "a", extra: { note: "y" } },
    ]);
    expect(await readAs("b.csv", "id,text,,\n1,a,,\n")).toEqual([{ id: "1", title: "", text: "a" }]);
  });

  test("whose columns nobody can tell are refused, not guessed", async () => {
    await expect(readAs("a.csv", "first,last,age\nA,B,3\n")).rejects.toThrow(
      /a\.csv:1: .*got 3 columns \(first, last, age\)/,
    );
    await expect(readAs("a.tsv", "query-id\tcorpus-id\tscore\nq\td\t1\n")).rejects.toThrow(/got 3 columns/);
  });

  test("in another encoding are read when it is declared, and refused otherwise", async () => {
    const bytes = Buffer.from("id,text\n1,Hélène\n", "latin1");
    await expect(readAs("a.csv", bytes)).rejects.toThrow(
      /a\.csv:2: expected UTF-8 .*--encoding windows-1252/,
    );
    expect((await read("a.csv", { encoding: "windows-1252" }))[0]?.text).toBe("Hélène");
    await expect(read("a.csv", { encoding: "latin-99" })).rejects.toThrow(ConfigError);
  });
});

const dump = (pages: string) =>
  `<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/">\n<siteinfo/>\n${pages}\n</mediawiki>`;
const page = (id: number, text: string, rest = "<ns>0</ns>") =>
  `<page><title>P &amp; ${id}</title>${rest}<id>${id}</id><revision><id>9</id><text>${text}</text></revision></page>`;

describe("a Wikipedia dump", () => {
  const long = Array.from({ length: 150 }, (_, i) => `word${i}`).join(" ");

  test("gives articles as plain text of 100 words, without redirects and other namespaces", async () => {
    const pages = [
      page(1, "'''A''' is [[England|English]].&lt;ref&gt;r&lt;/ref&gt;\n\n== H ==\nMore {{x}} text."),
      page(2, "#REDIRECT [[A]]", '<ns>0</ns><redirect title="A" />'),
      page(3, "talk", "<ns>1</ns>"),
      page(4, long),
    ];
    const passages = await readAs("pages-articles.xml", dump(pages.join("\n")));
    expect(passages.map(({ id, title }) => [id, title])).toEqual([
      ["1", "P & 1"],
      ["4#0", "P & 4"],
      ["4#1", "P & 4"],
    ]);
    expect(passages[0]?.text).toMatch(/^A is English\.\n+More text\.$/);
    expect(passages.slice(1).map(({ text }) => text.split(" ").length)).toEqual([100, 50]);
    expect(passages[2]?.source).toEqual({
      document: "4",
      start: (passages[1]?.text.length as number) + 1,
      end: long.length,
    });
  });

  test("that is cut short or broken is refused with the line", async () => {
    const whole = dump(`${page(1, "a b")}\n${page(2, "c d")}`);
    await expect(readAs("a.xml", whole.slice(0, -60))).rejects.toThrow(
      /a\.xml:4: .*Wikipedia dump, got a file that is cut short/,
    );
    await expect(readAs("b.xml", dump("<page><title>x</page>"))).rejects.toThrow(
      /b\.xml:3: expected the XML of a Wikipedia dump/,
    );
    await expect(readAs("c.xml", "<rss></rss>")).rejects.toThrow(/XML file that is no Wikipedia dump/);
  });
});
