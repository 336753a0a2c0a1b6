/** `search --explain` with a cross-encoder: its stages do not end with the same passages. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runForTest } from "../../../test/run-cli.ts";
import { writeTinyModel } from "../../retrieval/dense/tiny-model.fixture.ts";

let folder: string;
const at = (name: string): string => join(folder, name);

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "forager-explain-"));
  const corpus = ["red red", "green", "red blue"].map((text, i) => ({
    id: `p${i}`,
    title: `Title ${i}`,
    text,
  }));
  await writeFile(at("corpus.jsonl"), corpus.map((record) => `${JSON.stringify(record)}\n`).join(""));
  await writeTinyModel(at("judge"), "cross-encoder");
  await runForTest("index", at("corpus.jsonl"), "--out", at("index"));
});
afterAll(() => rm(folder, { recursive: true }));

test("an explanation names what an early stage found and a later one dropped", async () => {
  // The judge adds up the ids of a passage's words, and blue has the highest.
  const line = ["search", at("index"), "red", "--rerank", at("judge"), "-k", "1", "--explain"];
  const { stdout } = await runForTest(...line);
  expect(stdout).toMatch(/^bm25: 2 passages in .*\n {2}1\. p0 {2}[\d.]+ {2}Title 0\n/);
  expect(stdout).toMatch(/\nrerank: .*\n {2}1\. p2 .*Title 2/);
});
