import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Passage } from "./passage.ts";
import { readCorpora } from "./read-corpora.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "forager-corpora-"));
  const line = (id: string) => `${JSON.stringify({ id, title: `title ${id}`, text: "text" })}\n`;
  await writeFile(join(folder, "a.jsonl"), line("1") + line("2"));
  await writeFile(join(folder, "b.jsonl"), line("3"));
  await writeFile(join(folder, "again.jsonl"), line("4") + line("2"));
});
afterAll(() => rm(folder, { recursive: true }));

async function read(...names: string[]): Promise<Passage[]> {
  const passages: Passage[] = [];
  for await (const passage of readCorpora(names.map((name) => join(folder, name)))) passages.push(passage);
  return passages;
}

test("several files are one corpus in their order", async () => {
  expect((await read("b.jsonl", "a.jsonl")).map(({ id }) => id)).toEqual(["3", "1", "2"]);
});

test("an id of an earlier file is refused with both files named", async () => {
  await expect(read("a.jsonl", "again.jsonl")).rejects.toThrow(
    /again\.jsonl:2: expected ids .* got "2", which .*a\.jsonl:2 has too/,
  );
});
