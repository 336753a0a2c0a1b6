/** For tests of reading: files written into a folder of their own, read and collected. */
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeEach } from "vitest";
import { newCorpusReport } from "./corpus-report.ts";
import type { Passage } from "./passage.ts";
import { type ReadCorporaOptions, readCorpora } from "./read-corpora.ts";

/** Binary files for tests, with the script that made them. */
export const golden = join(import.meta.dirname, "../../test/golden/corpus");

let root: string | undefined;
let folder: string;
let count = 0;

/** Gives each test of the file an empty folder. */
export function useFolders(): void {
  beforeEach(async () => {
    root ??= await mkdtemp(join(tmpdir(), "forager-corpora-"));
    folder = join(root, String(count++));
    await mkdir(folder);
  });
  afterAll(async () => {
    if (root !== undefined) await rm(root, { recursive: true });
  });
}

/** A path in the folder of the test. */
export function at(name: string): string {
  return join(folder, name);
}

export async function write(files: Readonly<Record<string, string | Uint8Array>>): Promise<void> {
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(at(name)), { recursive: true });
    await writeFile(at(name), content);
  }
}

export async function readPaths(paths: readonly string[], options?: ReadCorporaOptions): Promise<Passage[]> {
  const passages: Passage[] = [];
  for await (const passage of readCorpora(paths, options)) passages.push(passage);
  return passages;
}

/** The passages of files in the folder of the test. */
export function read(names: string | readonly string[], options?: ReadCorporaOptions): Promise<Passage[]> {
  return readPaths([names].flat().map(at), options);
}

/** The passages of one file with the given name and content. */
export async function readAs(
  name: string,
  content: string | Uint8Array,
  options?: ReadCorporaOptions,
): Promise<Passage[]> {
  await write({ [name]: content });
  return await read(name, options);
}

/** The ids and the report of a reading that is not strict. */
export async function readLoosely(names: string | readonly string[]) {
  const report = newCorpusReport();
  const passages = await read(names, { strict: false, report });
  return { ids: passages.map(({ id }) => id), report };
}

/** Milliseconds of the fastest of three runs, to compare with those of another work of the same length. */
export async function fastest(work: () => unknown): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let run = 0; run < 3; run++) {
    const start = performance.now();
    await work();
    least = Math.min(least, performance.now() - start);
  }
  return least;
}

/** A line of JSON Lines. */
export const line = (id: unknown, text = `text ${id}`) => `${JSON.stringify({ id, title: "t", text })}\n`;
