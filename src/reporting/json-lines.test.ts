import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { z } from "zod";
import { DataFormatError, FileError } from "../errors.ts";
import { appendJsonLines, readJsonLines, repairJsonLines } from "./json-lines.ts";

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
