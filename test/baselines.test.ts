/**
 * Every baseline that ships runs: its recipe is understood by `train` and `eval`, one that is trained takes two steps, one
 * that is only asked answers ten questions, all on a small world with a model that knows nothing. Then one table of them.
 */
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RunFolder } from "../src/reporting/run-folder.ts";
import { runForTest, type TestRun } from "./run-cli.ts";
import { tinyRecipe } from "./tiny-recipe.ts";

const recipes = join(import.meta.dirname, "..", "recipes", "baselines");
const names = [
  "cot",
  "direct",
  "ircot",
  "r1",
  "rag",
  "rejection-sampling",
  "search-o1",
  "self-planner",
  "sft",
];
const recipe = (name: string): string => join(recipes, `${name}.yaml`);

let folder: string;
const at = (name: string): string => join(folder, name);
const set = (...overrides: readonly string[]): string[] =>
  overrides.flatMap((override) => ["--set", override]);
/** The world, limits and engine of the tiny recipe instead of those that need large files. */
const small = set(
  "data={ type: world, world: { name: lab, entities: 80, nameWords: 40, relations: 1, trainQuestions: 40, testQuestions: 10 } }",
  "retriever={ type: bm25 }",
  "engine={ type: embedded, threads: 1, tokenBudget: 4096 }",
  "environment.maxTurnTokens=12",
  "environment.maxObservationTokens=60",
  "evaluation.n=10",
);
const model =
  "model={ type: fresh, layers: 1, width: 16, heads: 2, keyValueHeads: 2, feedForward: 32, contextLength: 2048, vocabularySize: 300 }";

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "forager-baselines-"));
  await writeFile(at("tiny.yaml"), tinyRecipe);
  const one = set(
    "model.contextLength=2048",
    "stages.grpo.steps=1",
    "stages.warm-up.steps=1",
    "evaluation.n=2",
  );
  const trained = await runForTest("train", at("tiny.yaml"), "--out", at("agent"), ...one);
  expect(trained.stderr).toContain("after");
});
afterAll(() => rm(folder, { recursive: true }));

test("the baselines that ship are these", async () => {
  expect((await readdir(recipes)).sort()).toEqual(names.map((name) => `${name}.yaml`));
});

describe.each(names)("%s", (name) => {
  test.each(["train", "eval"])("is understood by %s --dry-run", async (command) => {
    const run = await runForTest(command, recipe(name), "--dry-run", "--json");
    expect(run.code).toBe(0);
    expect(run.json).toMatchObject({
      recipe: { name, data: { questions: { evaluation: expect.arrayContaining(["nq"]) } } },
    });
  });
});

test.each([
  ["sft", ["stages.sft.steps=2", "stages.sft.batchSize=4"]],
  ["r1", ["stages.grpo.steps=2", "stages.grpo.questionsPerStep=2", "stages.grpo.algorithm.groupSize=2"]],
  [
    "rejection-sampling",
    [
      "stages.rounds.steps=2",
      "stages.rounds.questionsPerStep=2",
      "stages.rounds.algorithm={ type: rejectionSampling, groupSize: 2, threshold: 0, epochs: 2, minibatchSize: 3 }",
    ],
  ],
])("%s takes two steps", async (name, overrides) => {
  const run = await runForTest(
    "train",
    recipe(name),
    "--out",
    at(name),
    ...small,
    ...set(model, ...overrides),
    "--json",
  );
  expect(run.stderr).not.toContain("bug");
  expect(run.code).toBe(0);
  const rows = (await readFile(at(`${name}/metrics.jsonl`), "utf8"))
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(rows).toHaveLength(2);
  if (name === "rejection-sampling") {
    expect(rows[0]).toMatchObject({ "demonstration/count": expect.any(Number), "optimizer/updates": 4 });
    expect(rows[0]["demonstration/count"] + rows[0]["demonstration/dropped"]).toBe(4);
  }
});

/** The tiny model under the rules of a baseline. */
async function evaluated(name: string, ...more: readonly string[]): Promise<TestRun> {
  return await runForTest("eval", at("agent"), "--recipe", recipe(name), ...small, ...more, "--json");
}

test.each(["direct", "cot", "rag", "ircot", "search-o1"])("%s answers ten questions", async (name) => {
  const run = await evaluated(name, "--out", at(`${name}.json`));
  expect(run.stderr).not.toContain("bug");
  expect(run.code).toBe(0);
  expect(run.json).toMatchObject({ n: 10, failed: 0, contract: { n: 10, split: "test" } });
});

test("a generator that plans for itself answers ten questions, is judged by itself, and all of it is recorded", async () => {
  const planner = (out: string, ...more: readonly string[]) =>
    evaluated(
      "self-planner",
      ...set("environment.maxSearches=2", `generator.model=${at("agent")}`, "generator.maxAnswerTokens=8"),
      ...set("planner.judge.maxTokens=4", ...more),
      ...["--out", at(out)],
    );
  const own = await planner("self.json", `recordPolicy=${at("policy.jsonl")}`);
  expect(own.code, own.stderr).toBe(0);
  expect(own.json).toMatchObject({
    n: 10,
    planner: { score: expect.any(Number), judgeUnreadable: expect.any(Number) },
    cost: {
      pricing: "unpriced",
      parts: {
        agent: { calls: expect.any(Number) },
        generator: { calls: 10 },
        judge: { calls: expect.any(Number) },
      },
    },
  });
  const checkpoint = await (await RunFolder.open(at("agent"))).latestCheckpoint();
  const again = await planner(
    "replayed.json",
    `generator.model={ type: replay, file: ${at("policy.generator.jsonl")}, tokenizer: ${checkpoint?.path} }`,
  );
  expect(again.code, again.stderr).toBe(0);
  const items = async (name: string): Promise<unknown[]> =>
    JSON.parse(await readFile(at(name), "utf8")).items.map(({ answer, score }: Record<string, unknown>) => ({
      answer,
      score,
    }));
  expect(await items("replayed.json")).toEqual(await items("self.json"));
});

test("answers of any baseline are judged beside exact match, by a rule or a model", async () => {
  const rule = await evaluated(
    "direct",
    ...set("evaluation.judge={ rule: coverExactMatch }"),
    "--out",
    at("rule.json"),
  );
  expect(rule.json).toMatchObject({
    score: expect.any(Number),
    contract: { answerJudge: { judge: "coverExactMatch" } },
  });
  const judge = `evaluation.judge={ type: model, model: ${at("agent")}, maxTokens: 4 }`;
  const model = await evaluated("direct", ...set(judge), "--out", at("judged.json"));
  expect(model.code, model.stderr).toBe(0);
  const { items, cost } = JSON.parse(await readFile(at("judged.json"), "utf8"));
  const answered = items.filter(({ answer }: { answer?: string }) => answer !== undefined).length;
  expect(cost.parts.judge?.calls ?? 0).toBe(answered);
  const nobody = await evaluated(
    "direct",
    ...set("evaluation.judge={ type: model }"),
    "--out",
    at("nobody.json"),
  );
  expect(nobody.stderr).toMatch(/evaluation\.judge\.model.*name one/);
});

test("benchmarks are asked by name, each with its split, and gold answers that cannot score are refused", async () => {
  const question = (id: string, text: string, gold: string): string =>
    `${JSON.stringify({ id, question: text, golden_answers: [gold] })}\n`;
  await mkdir(at("data/nq"), { recursive: true });
  await writeFile(
    at("data/nq/test.jsonl"),
    question("test_0", "who?", "Ada") + question("test_1", "when?", "1843"),
  );
  await writeFile(at("data/hotpotqa.jsonl"), question("dev_0", "where?", "London"));
  await writeFile(at("data/corpus.jsonl"), '{"id":"0","contents":"\\"Ada\\"\\nAda wrote it."}\n');
  const data = set(
    `data={ type: files, folder: ${at("data")}, corpus: ${at("data/corpus.jsonl")}, questions: { train: nq, evaluation: [nq, hotpotqa] } }`,
  );
  const call = ["eval", at("agent"), "--recipe", recipe("direct"), ...small, ...data, "--json", "--out"];
  expect(await runForTest(...call, at("named.json"))).toMatchObject({
    code: 0,
    json: { n: 3, contract: { split: "nq:test+hotpotqa:dev", n: 3, sampling: { temperature: 0 } } },
  });
  await writeFile(at("data/hotpotqa.jsonl"), question("dev_0", "which article?", "The"));
  const refused = await runForTest(...call, at("refused.json"));
  expect(refused.code).toBe(2);
  expect(refused.stderr).toContain('hotpotqa/dev_0 ("The")');
});

test("RAG gets as many passages as the agent of a result saw, and the room for them", async () => {
  const agent = await evaluated("ircot", "--out", at("seen.json"));
  const { result } = { result: JSON.parse(await readFile(at("seen.json"), "utf8")) };
  expect(agent.code).toBe(0);
  const seen = result.summary.overall.passagesSeen.mean;
  const run = await evaluated("rag", "--k-from", at("seen.json"), "--out", at("rag-k.json"));
  expect(run.json).toMatchObject({ contract: { k: Math.round(seen) } });
  const wrong = await evaluated("direct", "--k-from", at("seen.json"), "--out", at("direct-k.json"));
  expect(wrong.code).toBe(2);
});

test("the loss of an agent is split by asking it with no, real and oracle retrieval", async () => {
  const run = await evaluated("ircot", "--decompose", "--out", at("split.json"));
  expect(run.code).toBe(0);
  expect(run.json).toMatchObject({
    decomposition: {
      n: 10,
      em: { none: { n: 10 }, real: { n: 10 }, oracle: { n: 10 } },
      notUsed: { mean: expect.any(Number) },
    },
  });
  const oracle = JSON.parse(await readFile(at("split.oracle.json"), "utf8"));
  expect(oracle.contract.retriever.parameters.condition).toBe("oracle");
  expect(oracle.summary.overall.retrievalRecall.mean).toBe(1);
});

test("one table of all accounts for what is broken, keeps what is measured, and goes on", async () => {
  const targets = [at("agent"), at("direct.json"), at("rag.json"), at("nowhere.yaml")];
  const call = [
    "table",
    ...targets,
    "--out",
    at("table"),
    ...set("evaluation.n=2"),
    "--reference",
    "direct",
    "--json",
  ];
  const first = await runForTest(...call);
  expect(first.code).toBe(1);
  expect(first.json).toMatchObject({
    methods: 4,
    measured: 3,
    failed: [{ name: "nowhere", failure: expect.stringContaining("nowhere.yaml") }],
    reference: "direct",
  });
  expect((await runForTest(...call)).stderr).toContain("agent is measured already");
  const markdown = await readFile(at("table/table.md"), "utf8");
  for (const name of ["agent", "direct", "rag", "nowhere"]) expect(markdown).toContain(`- ${name}\\:`);
  expect(await readFile(at("table/table.csv"), "utf8")).toMatch(
    /^method,set,n,failed,metric,mean,low,high,.*,total_tokens,.*,failure\n/,
  );
  const unknown = await runForTest("table", at("direct.json"), "--out", at("table"), "--reference", "nobody");
  expect(unknown.code).toBe(2);
  const page = await readFile(at("table/table.html"), "utf8");
  expect(page.match(/<svg/g)?.length).toBeGreaterThanOrEqual(2);
});
