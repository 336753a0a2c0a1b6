import { appendFile, mkdtemp, readFile, rm, stat, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { DataFormatError, FileError } from "../errors.ts";
import { appendJsonLines, jsonLines, readJsonLines, repairJsonLines, writeJsonLines } from "./json-lines.ts";

const schema = z.object({ n: z.number() });
let folder: string;
let path: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "forager-lines-"));
  path = join(folder, "rows.jsonl");
});
afterEach(() => rm(folder, { recursive: true }));

it("reads what was appended, in order", async () => {
  await appendJsonLines(path, [{ n: 1 }, { n: 2 }]);
  await appendJsonLines(path, [{ n: 3 }]);
  expect(await readJsonLines(path, schema)).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }]);
});

it("reads nothing where there is no file", async () => {
  expect(await readJsonLines(path, schema)).toEqual([]);
});

it("survives a kill at every byte: earlier lines are read, and the next line is appended whole", async () => {
  await appendJsonLines(path, [{ n: 11 }, { n: 22 }]);
  const whole = await readFile(path);
  for (let length = 0; length <= whole.length; length++) {
    await writeFile(path, whole.subarray(0, length));
    const found = await readJsonLines(path, schema);
    await repairJsonLines(path);
    expect(await readJsonLines(path, schema)).toEqual(found);
    await appendJsonLines(path, [{ n: 33 }]);
    expect(await readJsonLines(path, schema)).toEqual([...found, { n: 33 }]);
  }
});

describe("a file of several pieces, with lines longer than one", () => {
  // Two bytes a character from an odd place on: pieces end within characters.
  const long = "é".repeat(700_000);
  const texts = [
    "",
    long,
    "b",
    `${long}${long}`,
    ...Array.from({ length: 300 }, (_, i) => `${i}`.repeat(5_000)),
  ];
  const records = texts.map((s, n) => ({ n, s }));
  const recordSchema = z.object({ n: z.number(), s: z.string() });

  it("is read as it was written, with CRLF too", async () => {
    await writeJsonLines(path, records);
    expect(await readJsonLines(path, recordSchema)).toEqual(records);
    await writeFile(path, records.map((record) => `${JSON.stringify(record)}\r\n`).join(""));
    expect(await readJsonLines(path, recordSchema)).toEqual(records);
  });

  it("loses a torn last line alone, which is cut off before the next is appended", async () => {
    await writeJsonLines(path, [...records, { n: -1, s: long }]);
    const { size } = await stat(path);
    await truncate(path, size - 3);
    expect(await readJsonLines(path, recordSchema)).toEqual(records);
    await repairJsonLines(path);
    await appendJsonLines(path, [{ n: -2, s: "" }]);
    expect(await readJsonLines(path, recordSchema)).toEqual([...records, { n: -2, s: "" }]);
  });
});

it("takes records from an iterable as it writes them, and hands them on as it reads them", async () => {
  let taken = 0;
  let mostAhead = 0;
  const text = "x".repeat(400_000);
  function* values() {
    for (; taken < 40; taken++) {
      const value = {
        n: taken,
        text,
        toJSON: () => {
          mostAhead = Math.max(mostAhead, taken - value.n);
          return { n: value.n, text };
        },
      };
      yield value;
    }
  }
  await writeJsonLines(path, values());
  expect([taken, mostAhead]).toEqual([40, 0]);
  await appendFile(path, "no JSON\n");
  const read: number[] = [];
  // The damaged last line is not reached by who stops before it.
  for await (const { n } of jsonLines(path, schema)) if (read.push(n) === 30) break;
  expect(read).toHaveLength(30);
  await expect(readJsonLines(path, schema)).rejects.toThrow(`${path}:41: expected one JSON object`);
});

it("leaves the file as it was when a record cannot be made", async () => {
  await writeJsonLines(path, [{ n: 1 }]);
  function* failing() {
    yield { n: 2 };
    throw new Error("no more");
  }
  await expect(writeJsonLines(path, failing())).rejects.toThrow("no more");
  expect(await readJsonLines(path, schema)).toEqual([{ n: 1 }]);
});

it("says which file cannot be read", async () => {
  await expect(readJsonLines(folder, schema)).rejects.toThrow(`cannot read ${folder}`);
});

it("names file and line of a line in the middle that is damaged", async () => {
  await writeFile(path, '{"n":1}\n{"n":\n{"n":3}\n');
  await expect(readJsonLines(path, schema)).rejects.toThrow(`${path}:2: expected one JSON object`);
});

it("names file, line and key of a value that is not what was expected, also on the last line", async () => {
  await writeFile(path, '{"n":1}\n{"n":"two"}');
  const reading = readJsonLines(path, schema);
  await expect(reading).rejects.toThrow(DataFormatError);
  await expect(reading).rejects.toThrow(`${path}:2: n: `);
});

it("says which file cannot be written", async () => {
  await expect(appendJsonLines(join(folder, "absent", "rows.jsonl"), [1])).rejects.toThrow(FileError);
});
