/**
 * Questions from files over a corpus from files, from a model that exists: what the teacher shows, training on it, and the
 * baselines of the same model. The model is that of a training of two steps, and knows nothing.
 */
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { runForTest } from "../../../test/run-cli.ts";
import { RunFolder } from "../../reporting/run-folder.ts";

let folder: string;
const at = (name: string): string => join(folder, name);
const lines = (...records: readonly object[]): string =>
  records.map((record) => `${JSON.stringify(record)}\n`).join("");

const corpus = lines(
  { id: "f", title: "Faust", text: "A play by Johann Goethe." },
  { id: "g", title: "Johann Goethe", text: "He was born in Frankfurt." },
  { id: "k", title: "Franz Kafka", text: "He was born in Prague." },
  { id: "s", title: "Emma", text: "A novel by Jane Austen." },
);
const train = lines(
  { id: "1", question: "Who wrote Faust?", golden_answers: ["Johann Goethe"], supporting: ["f"] },
  {
    id: "2",
    question: "Where was the author of Faust born?",
    golden_answers: ["Frankfurt"],
    supporting: ["f", "g"],
  },
  { id: "3", question: "Who wrote the Trial?", golden_answers: ["Franz Kafka"], supporting: ["s"] },
  { id: "4", question: "Who wrote Ulysses?", golden_answers: ["James Joyce"] },
);
const heldOut = (from: number): string =>
  lines(
    ...[0, 1, 2].map((i) => ({
      id: `${i}`,
      question: `Who wrote Emma, part ${from + i}?`,
      golden_answers: ["Jane Austen"],
      supporting: ["s"],
    })),
  );
const recipe = (model: string): string => `name: real
data:
  type: files
  folder: data
  corpus: corpus.jsonl
  questions: { train: train.jsonl, evaluation: [a.jsonl, b.jsonl] }
environment: { codec: compact, prompt: bare, k: 1, maxSearches: 2, maxTurnTokens: 60, maxObservationTokens: 60 }
model: ${model}
engine: { threads: 1 }
stages:
  - { type: supervised, name: warm-up, steps: 1, batchSize: 4, teacher: { type: goldPassages }, schedule: { learningRate: 0.001 } }
  - type: reinforcement
    name: grpo
    steps: 1
    questionsPerStep: 2
    schedule: { learningRate: 0.001 }
    algorithm: { groupSize: 2 }
evaluation: { n: 4 }
`;
const fresh =
  "{ type: fresh, layers: 1, width: 16, heads: 2, keyValueHeads: 2, feedForward: 32, contextLength: 400, vocabularySize: 300 }";

let model: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "forager-real-"));
  await mkdir(at("data"));
  await writeFile(at("data/corpus.jsonl"), corpus);
  await writeFile(at("data/train.jsonl"), train);
  await writeFile(at("data/a.jsonl"), heldOut(0));
  await writeFile(at("data/b.jsonl"), heldOut(3));
  await writeFile(at("fresh.yaml"), recipe(fresh));
  expect(await runForTest("train", at("fresh.yaml"), "--out", at("run"))).toMatchObject({ code: 0 });
  model = at("run/checkpoints/2");
  await writeFile(at("real.yaml"), recipe("run/checkpoints/2"));
});
afterAll(() => rm(folder, { recursive: true }));

test("demonstrate counts what is served and why the rest is not, and keeps what was shown", async () => {
  const out = at("shown.jsonl");
  const { code, stdout } = await runForTest("demonstrate", at("fresh.yaml"), "--out", out);
  expect(code).toBe(0);
  expect(stdout).toContain("<search> Johann Goethe</search>");
  expect(stdout).toMatch(/demonstrations +2\n/);
  expect(stdout).toMatch(/noGoldPassages: 1, goldNotFound: 1, answerNotShown: 0, tooLong: 0/);
  expect((await readFile(out, "utf8")).trim().split("\n")).toHaveLength(2);
  const first = await runForTest("demonstrate", at("fresh.yaml"), "--n", "1", "--show", "0", "--json");
  expect(first.json).toMatchObject({ demonstrations: 1, searches: { 1: 1 }, file: null });
  const again = await runForTest("demonstrate", at("fresh.yaml"), "--out", out);
  expect(again).toMatchObject({ code: 1, stderr: expect.stringContaining("choose another file") });
});

test("a warm-up leaves out and counts what it cannot show; the contract names the model that was started from", async () => {
  const rows = await (await RunFolder.open(at("run"))).readMetrics();
  expect(rows[0]).toMatchObject({ "demonstration/count": 2, "demonstration/dropped": 2 });
  expect(await (await RunFolder.open(at("run"))).readContract()).toMatchObject({ model: { type: "fresh" } });
  const trained = await runForTest("train", at("real.yaml"), "--out", at("second"));
  expect(trained.code).toBe(0);
  expect(await (await RunFolder.open(at("second"))).readContract()).toMatchObject({
    model: { type: "pretrained", source: model, hash: expect.stringMatching(/^[0-9a-f]{64}$/) },
    mode: "search",
  });
});

describe("eval of a recipe", () => {
  const score = async (name: string, ...set: readonly string[]) => {
    const overrides = set.flatMap((each) => ["--set", each]);
    const run = await runForTest(
      "eval",
      at("real.yaml"),
      ...overrides,
      "--out",
      at(`${name}.json`),
      "--json",
    );
    expect(run.stderr).not.toContain("forager:");
    const kept = (await readFile(at(`${name}.trajectories.jsonl`), "utf8")).trim().split("\n");
    return { json: run.json, trajectories: kept.map((line) => JSON.parse(line)) };
  };

  test("scores the model it starts from, on questions of every file, and keeps every trajectory", async () => {
    const { json, trajectories } = await score("search");
    expect(json).toMatchObject({ n: 4, contract: { limits: { mode: "search" } } });
    expect(trajectories.map(({ question }) => `${question.dataset}/${question.id}`)).toEqual([
      "a/0",
      "a/1",
      "b/0",
      "b/1",
    ]);
  });

  test("scores it without searches, with the passages of the question or without, for a paired comparison", async () => {
    const direct = await score("direct", "environment.mode=direct");
    expect(direct.json).toMatchObject({ n: 4, searches: 0 });
    const rag = await score(
      "rag",
      "environment={mode: rag, codec: plain, prompt: answer, k: 2, maxObservationTokens: 60, maxTurnTokens: 8}",
    );
    expect(rag.json).toMatchObject({ n: 4, searches: 1, contract: { limits: { mode: "rag" } } });
    expect(rag.trajectories[0].segments[0].text).toContain("A novel by Jane Austen.");
    expect(rag.trajectories[0].turns[0].passages.map(({ id }: { id: string }) => id)).toContain("s");
    const refused = await runForTest("compare", at("direct.json"), at("rag.json"));
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining("do not measure the same") });
    const forced = await runForTest("compare", at("direct.json"), at("rag.json"), "--force", "--json");
    expect(forced.json).toMatchObject({ n: 4, verdict: expect.any(String) });
  });

  test("of a fresh model is refused, and a recipe needs no other", async () => {
    expect(await runForTest("eval", at("fresh.yaml"))).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("makes a fresh model, which knows nothing yet"),
    });
    expect(await runForTest("eval", at("real.yaml"), "--recipe", at("fresh.yaml"))).toMatchObject({
      code: 2,
    });
  });
});

test("a model of a hub is fetched with a note, once, and known by its commit", async () => {
  const asked: string[] = [];
  const hub = createServer(async (request, response) => {
    asked.push(request.url ?? "");
    const bytes = await readFile(join(model, (request.url ?? "").split("/").at(-1) as string)).catch(
      () => undefined,
    );
    if (bytes === undefined) response.writeHead(404).end();
    else response.writeHead(200, { "content-length": bytes.length, "x-repo-commit": "c0ffee" }).end(bytes);
  });
  await new Promise<void>((resolve) => hub.listen(0, "127.0.0.1", resolve));
  try {
    vi.stubEnv("HF_ENDPOINT", `http://127.0.0.1:${(hub.address() as AddressInfo).port}`);
    vi.stubEnv("HF_TOKEN", "");
    vi.stubEnv("FORAGER_CACHE", at("cache"));
    const train = ["train", at("real.yaml"), "--set", "model=hf:me/tiny@v1"];
    const first = await runForTest(...train, "--out", at("hub-run"));
    expect(first).toMatchObject({ code: 0, stderr: expect.stringMatching(/fetching model\.safetensors/) });
    expect(await (await RunFolder.open(at("hub-run"))).readContract()).toMatchObject({
      model: { type: "pretrained", source: "hf:me/tiny@v1", hub: "me/tiny@v1", commit: "c0ffee" },
    });
    const count = asked.length;
    const again = await runForTest("eval", at("real.yaml"), "--set", "model=hf:me/tiny@v1", "--json");
    expect(again).toMatchObject({ code: 0, json: { n: 4 } });
    expect(asked).toHaveLength(count);
  } finally {
    vi.unstubAllEnvs();
    hub.close();
  }
});

test("a warm-up in the mode of a baseline shows every question's answer", async () => {
  const set = ["environment.mode=direct", "stages.warm-up.teacher={type: plan}"];
  const overrides = set.flatMap((each) => ["--set", each]);
  const trained = await runForTest("train", at("real.yaml"), ...overrides, "--out", at("direct-run"));
  expect(trained.code).toBe(0);
  const rows = await (await RunFolder.open(at("direct-run"))).readMetrics();
  expect(rows[0]).toMatchObject({ "demonstration/count": 4, "demonstration/dropped": 0 });
});
