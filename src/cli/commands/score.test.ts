import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { runForTest, runWithSignal } from "../../../test/run-cli.ts";

let folder: string;
const at = (name: string): string => join(folder, name);
const lines = (...records: readonly object[]): string =>
  records.map((record) => `${JSON.stringify(record)}\n`).join("");

const capitals = [
  ["fr", "France", "Paris"],
  ["it", "Italy", "Rome"],
  ["es", "Spain", "Madrid"],
  ["pt", "Portugal", "Lisbon"],
] as const;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "forager-score-"));
  await writeFile(
    at("corpus.jsonl"),
    lines(
      ...capitals.map(([id, title, city]) => ({
        id,
        title,
        text: `The capital is ${city}, a city of ${title}.`,
      })),
    ),
  );
  await writeFile(
    at("questions.jsonl"),
    lines(
      ...capitals.map(([id, title, city]) => ({
        id: `q-${id}`,
        question: `What is the capital of ${title}?`,
        golden_answers: [city],
        supporting: [id],
      })),
      { id: "q-yes", question: "Is Rome a city?", golden_answers: ["yes"] },
    ),
  );
  await writeFile(at("beir.jsonl"), lines({ _id: "q-fr", text: "France" }, { _id: "q-zz", text: "zebra" }));
  await writeFile(at("qrels.tsv"), "query-id\tcorpus-id\tscore\nq-fr\tfr\t1\nq-it\tit\t2\n");
  await runForTest("index", at("corpus.jsonl"), "--out", at("index"));
});
afterAll(() => rm(folder, { recursive: true }));

const search = (queries: string, run: string, ...more: readonly string[]) =>
  runForTest("search", at("index"), "--queries", at(queries), "--run", at(run), ...more);

describe("search with a file of queries", () => {
  test("writes a TREC run, best first, with the ids of the queries", async () => {
    const { code, json } = await search("questions.jsonl", "run.trec", "-k", "2", "--json");
    expect([code, json]).toMatchObject([
      0,
      { run: at("run.trec"), queries: 5, k: 2, withoutResults: 0, method: "bm25" },
    ]);
    const rows = (await readFile(at("run.trec"), "utf8"))
      .trimEnd()
      .split("\n")
      .map((line) => line.split(" "));
    expect(rows.slice(0, 2).map(([query, q0, , rank, , tag]) => [query, q0, rank, tag])).toEqual([
      ["q-fr", "Q0", "1", "bm25"],
      ["q-fr", "Q0", "2", "bm25"],
    ]);
    expect(
      rows
        .filter(([, , , rank]) => rank === "1")
        .map(([query, , passage]) => [query, passage])
        .slice(0, 4),
    ).toEqual(capitals.map(([id]) => [`q-${id}`, id]));
    expect(rows).toHaveLength(10);
  });

  test("reads queries of BEIR, says what found nothing, and takes 20 passages by default", async () => {
    const { code, stdout, stderr } = await search("beir.jsonl", "beir.trec");
    expect(code).toBe(0);
    expect(stdout).toContain("2 queries are answered in ");
    expect(stdout).toContain("1 of them found nothing");
    expect(stderr).toContain("2/2 queries");
    expect((await readFile(at("beir.trec"), "utf8")).split(" ", 3)).toEqual(["q-fr", "Q0", "fr"]);
  });

  test("never overwrites a file", async () => {
    await writeFile(at("taken.trec"), "mine");
    const { code, stderr } = await search("beir.jsonl", "taken.trec");
    expect([code, stderr]).toEqual([
      1,
      `forager: ${at("taken.trec")} exists already; choose another file or remove it\n`,
    ]);
    expect(await readFile(at("taken.trec"), "utf8")).toBe("mine");
  });

  test.each<[string, string, RegExp]>([
    ["no text", '{"_id":"1","title":"x"}\n', /bad\.jsonl:1: expected "text", "query" or "question"/],
    [
      "an id twice",
      '{"id":1,"query":"x"}\n\n{"id":"1","query":"y"}\n',
      /bad\.jsonl:3: expected ids without repeats, got "1" of line 1 again/,
    ],
    ["no id", '{"id":["x"],"query":"x"}\n', /bad\.jsonl:1: expected "id" or "_id"/],
    ["no JSON", "what is this\n", /bad\.jsonl:1: expected one JSON object/],
    ["no query", "\n", /bad\.jsonl: expected queries/],
    ["an id with spaces", '{"id":"a b","query":"France"}\n', /cannot hold the query id "a b".*write JSON/],
  ])("%s: one line, and no run", async (_name, text, message) => {
    await writeFile(at("bad.jsonl"), text);
    const before = await readdir(folder);
    const { code, stderr } = await search("bad.jsonl", "bad.trec");
    expect(code).toBe(1);
    expect(stderr).toMatch(message);
    expect(await readdir(folder)).toEqual(before);
  });

  test("half of the options, or a query too, is bad usage", async () => {
    for (const more of [[], ["--queries", "q"], ["--run", "r"], ["text", "--queries", "q", "--run", "r"]]) {
      const { code, stderr } = await runForTest("search", at("index"), ...more);
      expect(code).toBe(2);
      expect(stderr).toContain("give either a query, or --queries FILE with --run FILE");
    }
  });

  test("an interrupt ends with 130 and no run", async () => {
    const { code } = await runWithSignal(
      AbortSignal.abort(),
      "search",
      at("index"),
      "--queries",
      at("beir.jsonl"),
      "--run",
      at("interrupted.trec"),
    );
    expect(code).toBe(130);
    expect((await readdir(folder)).filter((name) => name.includes("interrupted"))).toEqual([]);
  });
});

describe("score", () => {
  beforeAll(async () => {
    await search("questions.jsonl", "good.trec");
    await writeFile(at("bad.trec"), capitals.map(([id]) => `q-${id} Q0 pt 1 1.5 bad\n`).join(""));
  });

  test("gives trec_eval's metrics by the qrels, over all their queries", async () => {
    const { code, json } = await runForTest("score", at("bad.trec"), "--qrels", at("qrels.tsv"), "--json");
    expect(code).toBe(0);
    expect(json).toMatchObject({
      run: at("bad.trec"),
      averaging: "judged",
      n: 2,
      withoutResults: 0,
      withoutJudgement: 2,
      metrics: { "recall@5": { n: 2, mean: 0, ci: [0, 0] } },
    });
  });

  test("gives gold recall and answer recall by the questions, with yes and no left out", async () => {
    const { json } = await runForTest(
      "score",
      at("good.trec"),
      "--questions",
      at("questions.jsonl"),
      "--index",
      at("index"),
      "--metrics",
      "recall@1,answer@1",
      "--per-query",
      "--json",
    );
    expect(json).toMatchObject({ n: 4, metrics: { "recall@1": { mean: 1 }, "answer@1": { n: 4, mean: 1 } } });
    expect((json as { queries: unknown[] }).queries[0]).toEqual({
      id: "q-fr",
      values: { "recall@1": 1, "answer@1": 1 },
    });
  });

  test("averages over queries with results when asked to", async () => {
    const line = ["score", at("beir.trec"), "--qrels", at("qrels.tsv"), "--metrics", "mrr", "--json"];
    expect((await runForTest(...line)).json).toMatchObject({ n: 2, metrics: { mrr: { mean: 0.5 } } });
    expect((await runForTest(...line)).stderr).toContain(
      "1 queries have no result and count 0 (--only-retrieved",
    );
    const retrieved = await runForTest(...line, "--only-retrieved");
    expect(retrieved.stderr).toContain("1 queries without a result are left out");
    expect(retrieved.json).toMatchObject({ averaging: "retrieved", n: 1, metrics: { mrr: { mean: 1 } } });
    const high = await runForTest(...line, "--relevant-from", "2");
    expect(high.json).toMatchObject({ relevantFrom: 2, withoutRelevant: 1, metrics: { mrr: { mean: 0 } } });
  });

  test("compares two runs, paired and corrected, and says so", async () => {
    const line = [
      "score",
      at("good.trec"),
      "--questions",
      at("questions.jsonl"),
      "--against",
      at("bad.trec"),
    ];
    const { code, json } = await runForTest(...line, "--metrics", "recall@1,mrr", "--json");
    expect(code).toBe(0);
    const { differences } = json as { differences: readonly Record<string, unknown>[] };
    expect(differences.map(({ metric }) => metric)).toEqual(["recall@1", "mrr"]);
    // Three of four queries better: the least p is 2 / 2^3, twice that for two metrics.
    expect(differences[0]).toMatchObject({ before: 0.25, after: 1, p: 0.25, adjustedP: 0.5, n: 4 });
    expect(differences[0]).toMatchObject({ verdict: "not distinguishable" });
    const { stdout } = await runForTest(...line);
    expect(stdout).toContain("p corrected for 5 metrics (Holm)");
  });

  test("gives a run that found nothing zeros, and says so", async () => {
    await writeFile(at("zebras.jsonl"), lines({ id: "q-fr", query: "zebra" }, { id: "q-it", query: "gnu" }));
    expect((await search("zebras.jsonl", "nothing.trec")).code).toBe(0);
    const { code, json, stderr } = await runForTest(
      "score",
      at("nothing.trec"),
      "--qrels",
      at("qrels.tsv"),
      "--json",
    );
    expect([code, json]).toMatchObject([
      0,
      { n: 2, withoutResults: 2, judgedAt10: null, metrics: { "recall@5": { n: 2, mean: 0 } } },
    ]);
    expect(stderr).toContain("nothing.trec: the run is empty: no query found anything");
    expect(stderr).toContain("2 queries have no result and count 0");
  });

  test("shows a table, every query when asked, and what the reader should know", async () => {
    const { stdout, stderr } = await runForTest(
      "score",
      at("bad.trec"),
      "--qrels",
      at("qrels.tsv"),
      "--per-query",
    );
    expect(stdout).toMatch(/^query +recall@5/);
    expect(stdout).toMatch(/\nmetric +mean +95 % interval +queries\n/);
    expect(stderr).toContain("2 queries of the run are left out: nobody judged them");
    expect(stderr).toContain("none of the first ten results of any query is judged");
  });

  test.each<[string, readonly string[], RegExp, number]>([
    ["no judgements", [], /--qrels FILE is missing/, 2],
    [
      "an unknown metric",
      ["--qrels", "qrels.tsv", "--metrics", "f1@3"],
      /unknown metric "f1@3"; expected precision@K/,
      2,
    ],
    [
      "answers without an index",
      ["--questions", "questions.jsonl", "--metrics", "answer@5"],
      /answer@K needs --questions FILE and --index/,
      2,
    ],
    [
      "an index without questions",
      ["--qrels", "qrels.tsv", "--index", "index"],
      /give the --questions too/,
      2,
    ],
    ["qrels that are a run", ["--qrels", "good.trec"], /good\.trec:1: expected 4 columns/, 1],
    ["qrels of other queries", ["--qrels", "strange.txt"], /have no query in common/, 2],
    ["a missing file", ["--qrels", "none.txt"], /cannot read .*none\.txt: no such file/, 1],
  ])("%s: one line", async (_name, more, message, expected) => {
    await writeFile(at("strange.txt"), "x 0 y 1\n");
    const args = more.map((word) => (/\.(tsv|txt|jsonl|trec)$|^index$/.test(word) ? at(word) : word));
    const { code, stdout, stderr } = await runForTest("score", at("good.trec"), ...args);
    expect([code, stdout]).toEqual([expected, ""]);
    expect(stderr).toMatch(message);
    expect(stderr.trim()).not.toContain("\n");
  });
});
