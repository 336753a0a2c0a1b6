import { appendFile, mkdtemp, open, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { VectorJournal } from "./vector-journal.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "forager-journal-"));
});
afterAll(() => rm(folder, { recursive: true }));

async function rowsOnReopening(): Promise<number> {
  const journal = await VectorJournal.open(folder, "vectors.f32");
  const { rows } = journal;
  await journal.close();
  return rows;
}

test("going on keeps the whole lines where they are, so that a kill at that moment loses nothing", async () => {
  const path = join(folder, "journal.jsonl");
  const journal = await VectorJournal.open(folder, "vectors.f32");
  await journal.append(Buffer.from("first part"), 2);
  await journal.append(Buffer.from("second"), 1);
  await journal.close();
  const whole = await readFile(path, "utf8");
  await appendFile(path, '{"rows":1,');
  // A process that is killed after truncating writes no more.
  const handle = await open(path);
  const write = vi.spyOn(Object.getPrototypeOf(handle), "write").mockRejectedValue(new Error("killed"));
  await handle.close();
  await rowsOnReopening().catch(() => undefined);
  write.mockRestore();
  expect(await readFile(path, "utf8")).toBe(whole);
  expect(await rowsOnReopening()).toBe(3);
});

test("parts whose bytes have changed are cut off, lines included, and others take their place", async () => {
  const bytes = await readFile(join(folder, "vectors.f32"), "utf8");
  await writeFile(join(folder, "vectors.f32"), bytes.replace("second", "sec0nd"));
  const journal = await VectorJournal.open(folder, "vectors.f32");
  expect(journal.rows).toBe(2);
  await journal.append(Buffer.from("third"), 4);
  await journal.close();
  expect(await readFile(join(folder, "vectors.f32"), "utf8")).toBe("first partthird");
  expect(await rowsOnReopening()).toBe(6);
});
