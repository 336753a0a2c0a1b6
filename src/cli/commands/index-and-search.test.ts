import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { runForTest, runWithSignal } from "../../../test/run-cli.ts";

let folder: string;
const at = (name: string): string => join(folder, name);
const corpus = [
  { id: "fr", title: "France", text: "The capital of France is Paris." },
  { id: "it", contents: '"Italy"\nThe capital of Italy is Rome.' },
  { id: 3, title: "Escape", text: "A title with \u001b[31mcontrol codes\u001b[0m." },
];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "forager-index-"));
  await writeFile(at("corpus.jsonl"), corpus.map((record) => `${JSON.stringify(record)}\n`).join(""));
});
afterAll(() => rm(folder, { recursive: true }));

describe("index, then search", () => {
  test("finds what was indexed, with the documented JSON", async () => {
    const built = await runForTest("index", at("corpus.jsonl"), "--out", at("index"), "--json");
    expect(built).toMatchObject({ code: 0, json: { index: at("index"), passages: 3, method: "bm25" } });
    const found = await runForTest(
      "search",
      at("index"),
      "what is the capital of Italy?",
      "-k",
      "2",
      "--json",
    );
    expect(found.code).toBe(0);
    expect(found.stdout.trim().split("\n")).toHaveLength(1);
    const { results } = found.json as { results: Record<string, unknown>[] };
    expect(results).toHaveLength(2);
    expect(results[0]).toEqual({
      id: "it",
      title: "Italy",
      text: "The capital of Italy is Rome.",
      score: expect.any(Number),
    });
  });

  test("shows passages to people without letting them drive the terminal", async () => {
    const { code, stdout } = await runForTest("search", at("index"), "control codes");
    expect(code).toBe(0);
    expect(stdout).toContain("1. Escape (3, score ");
    expect(stdout).not.toContain("\u001b");
  });

  test("a query that nothing matches is no failure", async () => {
    expect(await runForTest("search", at("index"), "zebra", "--json")).toMatchObject({
      code: 0,
      json: { results: [] },
    });
    expect((await runForTest("search", at("index"), "zebra")).stdout).toContain("nothing found");
  });

  test("takes options of the retriever, checked by its schema", async () => {
    const line = ["index", at("corpus.jsonl"), "--out", at("tuned"), "--json", "--set", "b=0.4"];
    expect(await runForTest(...line)).toMatchObject({ code: 0, json: { parameters: { b: 0.4 } } });
    const wrong = await runForTest(
      "index",
      at("corpus.jsonl"),
      "--out",
      at("wrong"),
      "--set",
      "titleWieght=1",
    );
    expect(wrong.code).toBe(2);
    expect(wrong.stderr).toContain(
      '--set titleWieght=1: unknown key "titleWieght"; did you mean "titleWeight"?',
    );
  });
});

describe("bad input is one line, fails, and leaves what was there untouched", () => {
  test("a folder that exists", async () => {
    await mkdir(at("taken"));
    await writeFile(at("taken/note.txt"), "mine");
    const { code, stderr } = await runForTest("index", at("corpus.jsonl"), "--out", at("taken"));
    expect(code).toBe(1);
    expect(stderr).toBe(`forager: ${at("taken")} exists already; choose another folder or remove it\n`);
    expect(await readFile(at("taken/note.txt"), "utf8")).toBe("mine");
  });

  test.each([
    ["a corpus that is missing", undefined, "no.jsonl", /cannot read .*no\.jsonl: no such file/],
    ["an empty corpus", "", "empty.jsonl", /empty\.jsonl: expected passages/],
    [
      "a line that is no JSON",
      '{"id":"1","text":"x"}\n{oops\n',
      "broken.jsonl",
      /broken\.jsonl:2: expected one JSON object/,
    ],
    [
      "a line without text",
      '{"id":"1","title":"x"}\n',
      "textless.jsonl",
      /textless\.jsonl:1: expected "contents" or "text"/,
    ],
    [
      "an id twice",
      '{"id":"1","text":"x"}\n{"id":"1","text":"y"}\n',
      "twice.jsonl",
      /twice\.jsonl:2: expected ids without repeats/,
    ],
  ])("%s", async (_name, text, file, message) => {
    if (text !== undefined) await writeFile(at(file), text);
    const before = (await readdir(folder)).sort();
    const { code, stdout, stderr } = await runForTest("index", at(file), "--out", at("new"));
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toMatch(message);
    expect(stderr.trim()).not.toContain("\n");
    expect((await readdir(folder)).sort()).toEqual(before);
  });

  test("a folder that cannot be made", async () => {
    const { code, stderr } = await runForTest("index", at("corpus.jsonl"), "--out", at("corpus.jsonl/index"));
    expect(code).toBe(1);
    expect(stderr).toMatch(/^forager: .*corpus\.jsonl is a file, not a folder; choose another place\n$/);
  });

  test("a folder that is no index, and an index with a damaged part", async () => {
    expect((await runForTest("search", folder, "x")).stderr).toMatch(/^forager: cannot read the index/);
    await runForTest("index", at("corpus.jsonl"), "--out", at("damaged"));
    await writeFile(at("damaged/postings.u32"), "oops");
    const { code, stderr } = await runForTest("search", at("damaged"), "x");
    expect(code).toBe(1);
    expect(stderr).toMatch(/^forager: .*postings\.u32.*\n$/);
  });

  test("an interrupt ends with 130 and no folder", async () => {
    const { code, stderr } = await runWithSignal(
      AbortSignal.abort(),
      "index",
      at("corpus.jsonl"),
      "--out",
      at("interrupted"),
    );
    expect([code, stderr]).toEqual([130, "forager: interrupted\n"]);
    expect(await readdir(folder)).not.toContain("interrupted");
  });
});
