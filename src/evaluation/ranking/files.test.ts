import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { DataFormatError, FileError } from "../../errors.ts";
import { type QrelsFormat, qrelsText, readQrels, writeQrels } from "./qrels.ts";
import { createRun, readRun, runLines } from "./run-file.ts";

let folder: string;
const at = (name: string): string => join(folder, name);
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "forager-ranking-"));
});
afterAll(() => rm(folder, { recursive: true }));

async function file(text: string | Uint8Array, name = "file.txt"): Promise<string> {
  await writeFile(at(name), text);
  return at(name);
}

const plain = (table: ReadonlyMap<string, ReadonlyMap<string, number>>): unknown =>
  Object.fromEntries([...table].map(([query, row]) => [query, Object.fromEntries(row)]));

describe("judgements", () => {
  const expected = { q1: { d1: 1, d2: 0 }, q2: { "d-3": 2 } };

  test.each<[string, string | Uint8Array]>([
    ["TREC with spaces", "q1 0 d1 1\nq1 0 d2 0\nq2 Q0 d-3 2\n"],
    [
      "TREC with tabs, CRLF, blank lines and no last line end",
      "q1\t0\td1\t1\r\n\r\nq1\t0\td2\t0\r\nq2\t0\td-3\t2",
    ],
    [
      "TREC with runs of white space, a byte order mark and a whole float",
      "\ufeff q1  0\td1  1.0 \nq1 0 d2 0\nq2 0 d-3 2\n",
    ],
    ["BEIR", "query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td2\t0\nq2\td-3\t2\n"],
    [
      "BEIR with CRLF after a blank line",
      "\r\nquery-id\tcorpus-id\tscore\r\nq1\td1\t1\r\nq1\td2\t0\r\nq2\td-3\t2\r\n",
    ],
    ["JSON over several lines", '\n{ "q1": {"d1": 1, "d2": 0},\n  "q2": {"d-3": 2} }'],
    ["TREC with comments", "# judged by hand\nq1 0 d1 1\n#\nq1 0 d2 0\nq2 0 d-3 2\n"],
    ["a row twice", "q1 0 d1 1\nq1 0 d2 0\nq1 0 d1 1\nq2 0 d-3 2\n"],
  ])("are read from %s", async (_name, text) => {
    expect(plain(await readQrels(await file(text)))).toEqual(expected);
  });

  test("ids of BEIR may hold spaces", async () => {
    const path = await file("query-id\tcorpus-id\tscore\nq 1\td 1\t1\n");
    expect(plain(await readQrels(path))).toEqual({ "q 1": { "d 1": 1 } });
  });

  test.each<[string, string, RegExp]>([
    [
      "three columns without a header",
      "q1 d1 1\n",
      /:1: expected 4 columns .*query-id<tab>corpus-id<tab>score.* got "q1 d1 1"/,
    ],
    [
      "a grade that is no number",
      "q1 0 d1 1\n\nq1 0 d2 high\n",
      /:3: expected a grade, a whole number such as 1, got "high"/,
    ],
    ["a broken grade", "q1 0 d1 0.5\n", /:1: expected a grade/],
    ["a grade beyond what is exact", "q1 0 d1 99999999999999999999\n", /:1: expected a grade/],
    [
      "grades that contradict each other",
      "q1 0 d1 1\nq1 0 d1 2\n",
      /:2: expected each passage once for a query, got d1 for q1 again, with 2 after 1/,
    ],
    ["a run instead", "q1 Q0 d1 1 3.5 tag\n", /:1: expected 4 columns/],
    [
      "a BEIR line that was cut",
      "query-id\tcorpus-id\tscore\nq1\td1\n",
      /:2: expected 3 columns between tabs/,
    ],
    ["nothing", "\n", /expected judgements/],
    ["only a header", "query-id\tcorpus-id\tscore\n", /expected judgements/],
    ["JSON that was cut", '{"q1": {"d1"', /expected JSON/],
    [
      "JSON of another shape",
      '{"q1": [1]}',
      /expected \{"query id": \{"passage id": number\}\}, got \[1\] for q1/,
    ],
    [
      "JSON with a text for a grade",
      '{"q1": {"d1": "1"}}',
      /expected a grade, a whole number for query q1, passage d1, got "1"/,
    ],
  ])("%s: one line that says where", async (_name, text, message) => {
    const reading = readQrels(await file(text));
    await expect(reading).rejects.toThrow(DataFormatError);
    await expect(reading).rejects.toThrow(message);
    await expect(reading).rejects.toThrow(at("file.txt"));
  });

  test("bytes that are not UTF-8 are refused, a missing file too", async () => {
    await expect(readQrels(await file(Buffer.from([113, 32, 48, 32, 0xff, 10])))).rejects.toThrow(
      /expected UTF-8/,
    );
    await expect(readQrels(await file(Buffer.from([113, 32, 0xc3])))).rejects.toThrow(/expected UTF-8/);
    await expect(readQrels(at("none"))).rejects.toThrow(FileError);
    await expect(readQrels(folder)).rejects.toThrow(/it is a folder/);
  });

  test("may be packed", async () => {
    const path = await file(gzipSync("q1 0 d1 1\nq1 0 d2 0\nq2 0 d-3 2\n"), "qrels.gz");
    expect(plain(await readQrels(path))).toEqual(expected);
    await expect(readQrels(await file(gzipSync("q1 0 d1 1\n".repeat(99)).subarray(0, 30)))).rejects.toThrow(
      DataFormatError,
    );
  });

  test("come back as they were written, in each form", async () => {
    const id = fc.stringMatching(/^[a-zé😀_{#-]{1,5}$/u);
    const table = fc.dictionary(id, fc.dictionary(id, fc.integer({ min: -2, max: 3 }), { minKeys: 1 }), {
      minKeys: 1,
    });
    const endings: readonly [QrelsFormat, string][] = [
      ["trec", "txt"],
      ["beir", "tsv"],
      ["json", "json"],
    ];
    await fc.assert(
      fc.asyncProperty(table, fc.constantFrom(...endings), async (value, [, ending]) => {
        fc.pre(ending !== "txt" || !Object.keys(value).some((query) => /^[{#]/.test(query)));
        const qrels = new Map(
          Object.entries(value).map(([query, row]) => [query, new Map(Object.entries(row))]),
        );
        const path = at(`written.${ending}`);
        await writeQrels(path, qrels);
        expect(plain(await readQrels(path))).toEqual(value);
      }),
      { numRuns: 60 },
    );
  });

  test("an id that a format cannot hold is not written", () => {
    const qrels = new Map([["q 1", new Map([["d\t1", 1]])]]);
    expect(() => qrelsText(qrels, "trec")).toThrow(/cannot hold the query id "q 1"/);
    expect(() => qrelsText(qrels, "beir")).toThrow(/cannot hold the passage id "d\\t1"/);
    for (const query of ["#", "#1", "{1"])
      expect(() => qrelsText(new Map([[query, new Map([["d", 1]])]]), "trec")).toThrow(
        /do not begin with # or \{/,
      );
    expect(JSON.parse(qrelsText(qrels, "json"))).toEqual({ "q 1": { "d\t1": 1 } });
  });
});

describe("runs", () => {
  test("are read by score, whatever rank and tag say", async () => {
    const path = await file("q1 Q0 d1 9 0.5 bm25\r\nq1\tQ0\td2\t1\t-1e-3\tother\r\nq2 Q0 d1 1 7 t\n");
    expect([...(await readRun(path))]).toEqual([
      [
        "q1",
        [
          { id: "d1", score: 0.5 },
          { id: "d2", score: -0.001 },
        ],
      ],
      ["q2", [{ id: "d1", score: 7 }]],
    ]);
  });

  test.each<[string, string, RegExp]>([
    [
      "five columns",
      "q1 Q0 d1 1 0.5\n",
      /:1: expected 6 columns \(query, Q0, passage, rank, score, tag\), got 5/,
    ],
    [
      "a score that is none",
      "q1 Q0 d1 1 best t\n",
      /:1: expected a score, a finite number, in column 5, got "best"/,
    ],
    ["a score that is not finite", "q1 Q0 d1 1 NaN t\n", /:1: expected a score/],
    ["an infinite score", "q1 Q0 d1 1 Infinity t\n", /:1: expected a score/],
    [
      "a passage twice with other scores",
      "q1 Q0 d1 1 2 t\nq1 Q0 d1 2 1 t\n",
      /:2: expected each passage once/,
    ],
    [
      "JSON with null",
      '{"q1": {"d1": null}}',
      /expected a score, a finite number for query q1, passage d1, got null/,
    ],
  ])("%s: one line that says where", async (_name, text, message) => {
    await expect(readRun(await file(text))).rejects.toThrow(message);
  });

  test("come back as they were written, to the last bit, as TREC and as JSON", async () => {
    const run = new Map([
      [
        "q1",
        [
          { id: "d2", score: 1 / 3 },
          { id: "d1", score: 1e-20 },
        ],
      ],
      ["q2", [{ id: "日本", score: -5 }]],
    ]);
    for (const name of ["run.trec", "run.json"]) {
      expect(await createRun(at(name), run, "test")).toBe(2);
      expect(await readRun(at(name))).toEqual(run);
    }
    expect(await readFile(at("run.trec"), "utf8")).toContain("q2 Q0 日本 1 -5 test\n");
  });

  test("never replace a file, and leave nothing behind when they fail", async () => {
    await file("mine", "taken.trec");
    await expect(createRun(at("taken.trec"), [], "t")).rejects.toThrow(
      /taken\.trec exists already; choose another/,
    );
    expect(await readFile(at("taken.trec"), "utf8")).toBe("mine");
    const before = await readdir(folder);
    async function* failing() {
      yield ["q1", [{ id: "d1", score: 1 }]] as const;
      throw new Error("the retriever is gone");
    }
    await expect(createRun(at("failed.trec"), failing(), "t")).rejects.toThrow("the retriever is gone");
    await expect(createRun(at("taken.trec/run"), [], "t")).rejects.toThrow(FileError);
    expect(await readdir(folder)).toEqual(before);
  });

  test("of no query are empty files", async () => {
    expect(await createRun(at("none.json"), [], "t")).toBe(0);
    expect(await readFile(at("none.json"), "utf8")).toBe("{}\n");
    expect(await readRun(at("none.json"))).toEqual(new Map());
  });

  test("that found nothing are empty files and read back as empty runs", async () => {
    expect(await createRun(at("nothing.trec"), [["q1", []]], "t")).toBe(1);
    expect(await readFile(at("nothing.trec"), "utf8")).toBe("");
    expect(await readRun(at("nothing.trec"))).toEqual(new Map());
  });

  test("ids with white space are not written as TREC", () => {
    expect(() => runLines("q 1", [], "t")).toThrow(/cannot hold the query id "q 1"/);
    expect(() => runLines("q", [{ id: "", score: 1 }], "t")).toThrow(/cannot hold the passage id ""/);
  });
});
