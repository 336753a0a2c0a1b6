import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { runForTest, runWithSignal } from "../../../test/run-cli.ts";
import { trainBytePair } from "../../tokenizer/byte-pair-training.ts";
import { readTokenizer, writeTokenizer } from "../../tokenizer/tokenizer-file.ts";

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

  test("a query of stop words alone searches titles, and says so; other queries say nothing", async () => {
    const records = [
      { id: "band", title: "The Who", text: "A band from London." },
      { id: "lake", title: "Lake Garda", text: "Who is the one who knows the lake?" },
    ];
    await writeFile(at("who.jsonl"), records.map((record) => `${JSON.stringify(record)}\n`).join(""));
    const build = (out: string, ...more: readonly string[]) =>
      runForTest("index", at("who.jsonl"), "--out", at(out), ...more);
    const remark = "has only stop words, which are indexed in titles alone";
    await build("titles");
    for (const more of [[], ["--explain"]]) {
      const { stdout, stderr } = await runForTest("search", at("titles"), "the who", ...more);
      expect(stdout).toContain("The Who");
      expect(stdout).not.toContain("Garda");
      expect(stderr).toContain(remark);
    }
    expect((await runForTest("search", at("titles"), "of a")).stderr).toContain(remark);
    expect((await runForTest("search", at("titles"), "who knows")).stderr).not.toContain(remark);
    await build("everywhere", "--set", "stopWords=false");
    const { stdout, stderr } = await runForTest("search", at("everywhere"), "the who");
    expect(stdout).toMatch(/The Who[\s\S]*Lake Garda/);
    expect(stderr).not.toContain(remark);
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

test("explains what each stage did", async () => {
  const found = await runForTest("search", at("index"), "capital of Italy", "--explain", "--json");
  expect(found).toMatchObject({
    code: 0,
    json: {
      stages: [
        {
          name: "bm25",
          ranked: [
            { id: "it", rank: 1 },
            { id: "fr", rank: 2 },
          ],
        },
      ],
    },
  });
  const shown = await runForTest("search", at("index"), "capital of Italy", "--explain");
  expect(shown.stdout).toMatch(/^bm25: 2 passages in [\d.]+ ms\n {2}1\. it {2}[\d.]+ {2}Italy/);
});

test("vectors that are not there are asked for with what to do", async () => {
  const { code, stderr } = await runForTest("search", at("index"), "x", "--mode", "dense");
  expect(code).toBe(1);
  expect(stderr).toMatch(/^forager: .*has no vectors.*forager index --out .* --dense MODEL/);
});

test("records its answers for replay", async () => {
  await runForTest("search", at("index"), "capital of Italy", "-k", "1", "--record", at("calls.jsonl"));
  const recorded = await readFile(at("calls.jsonl"), "utf8");
  expect(recorded).toContain("capital of Italy");
  expect(recorded).toContain('"id":"it"');
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

  test("a folder that exists, beside what a kill right behind its end left there, which is removed", async () => {
    await runForTest("index", at("corpus.jsonl"), "--out", at("killed"));
    await mkdir(at(".killed.building"));
    await writeFile(at(".killed.building/segment-00000.terms.txt"), "x");
    expect((await runForTest("index", at("corpus.jsonl"), "--out", at("killed"))).code).toBe(1);
    expect(await readdir(folder)).not.toContain(".killed.building");
    expect((await runForTest("search", at("killed"), "Italy")).code).toBe(0);
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
    const { code, stdout, stderr } = await runForTest("index", at(file), "--out", at("new"), "--strict");
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toMatch(message);
    expect(stderr.trim()).not.toContain("\n");
    expect((await readdir(folder)).sort()).toEqual(before);
  });

  test("unless it is strict, what cannot be read is left out, counted and shown with its place", async () => {
    const text = '{"id":"1","text":"x"}\n{oops\n{"id":"1","text":"y"}\n{"id":"2","title":"","text":" "}\n';
    await writeFile(at("wild.jsonl"), text);
    const built = await runForTest("index", at("wild.jsonl"), "--out", at("wild"), "--json");
    expect(built).toMatchObject({ code: 0, json: { passages: 1, skipped: 3, bytes: expect.any(Number) } });
    for (const line of [2, 3, 4]) expect(built.stderr).toMatch(new RegExp(`wild\\.jsonl:${line}: `));
    expect(built.stderr).toContain("1 bad line");
  });

  test("corpus options go through their schema, and documents are cut as asked", async () => {
    await mkdir(at("docs"));
    await writeFile(at("docs/page.md"), `# Rivers\n\n${"The Danube flows east. ".repeat(30)}`);
    const cut = ["--set", "chunk.by=words", "--set", "chunk.size=40", "--json"];
    const built = await runForTest("index", at("docs"), "--out", at("cut"), ...cut);
    // 120 words in sentences of four, whole sentences up to 40 words, and what is left of the heading.
    expect(built).toMatchObject({ code: 0, json: { passages: 4 } });
    const wrong = await runForTest("index", at("docs"), "--out", at("none"), "--encoding", "klingon");
    expect(wrong.code).not.toBe(0);
    expect(wrong.stderr).toMatch(/^forager: .*klingon/);
    const typo = await runForTest("index", at("docs"), "--out", at("none"), "--format", "markdwon");
    expect(typo.stderr).toContain("markdown");
  });

  test("documents are cut by tokens of the tokenizer that is named", async () => {
    await writeTokenizer(at("tokens"), trainBytePair(["abc"], { vocabularySize: 300, specialTokens: [] }));
    await writeFile(at("letters.txt"), "abcabc ".repeat(40));
    const line = ["index", at("letters.txt"), "--set", "chunk.by=tokens", "--set", "chunk.size=50", "--json"];
    const cut = await runForTest(...line, "--out", at("letters"), "--tokenizer", at("tokens"));
    expect(cut.code).toBe(0);
    expect((cut.json as { passages: number }).passages).toBeGreaterThan(1);
    const without = await runForTest(...line, "--out", at("none"));
    expect(without.code).not.toBe(0);
    expect(without.stderr).toContain("tokenizer");
  });

  test("tokens are counted by the tokenizers of multilingual encoders too, whose ids models cannot be given", async () => {
    await mkdir(at("unigram"));
    const metaspace = { type: "Metaspace", replacement: "\u2581", prepend_scheme: "always", split: true };
    const scores = { "</s>": 0, "\u2581": -2, a: -1, b: -1, c: -1 };
    const model = {
      model: { type: "Unigram", unk_id: 0, vocab: Object.entries(scores) },
      normalizer: { type: "Precompiled", precompiled_charsmap: "" },
      pre_tokenizer: metaspace,
      post_processor: null,
      decoder: metaspace,
      added_tokens: [{ id: 0, content: "</s>", special: true }],
    };
    await writeFile(at("unigram/tokenizer.json"), JSON.stringify(model));
    await writeFile(at("unigram/tokenizer_config.json"), JSON.stringify({ eos_token: "</s>" }));
    await writeFile(at("abc.txt"), "abcabc ".repeat(40));
    const line = ["index", at("abc.txt"), "--set", "chunk.by=tokens", "--set", "chunk.size=50", "--json"];
    const cut = await runForTest(...line, "--out", at("abc"), "--tokenizer", at("unigram"));
    // 280 tokens, at most seven words of seven in a passage.
    expect(cut).toMatchObject({ code: 0, json: { passages: 6 } });
    await expect(readTokenizer(at("unigram"))).rejects.toThrow(/Precompiled.* is not supported/);
  });

  test("neither a corpus nor a model is a usage error", async () => {
    expect(await runForTest("index", "--out", at("none"))).toMatchObject({ code: 2 });
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
