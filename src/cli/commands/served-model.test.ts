/** Evaluating and asking a model behind a server, and the same again from recordings when the server is gone. */
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { runForTest } from "../../../test/run-cli.ts";
import type { EvaluationResult } from "../../evaluation/result.ts";
import type { Message } from "../../rollout/endpoint/messages.ts";
import { type Answer, startServer } from "../../shared/server.fixture.ts";

let folder: string;
const at = (name: string): string => join(folder, name);

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "forager-served-"));
});
afterAll(() => rm(folder, { recursive: true }));

const world = `seed: 3
data:
  type: world
  world: { name: lab, entities: 40, nameWords: 20, relations: 1, trainQuestions: 10, testQuestions: 12 }
environment: { maxSearches: 2, maxTurnTokens: 24, maxObservationTokens: 60 }
evaluation: { n: 8 }
`;

/** Searches for the question, then answers with the first word that was found. */
async function searchingServer(instead: (count: number) => Answer | undefined = () => undefined) {
  return await startServer(({ body }, count) => {
    const answer = instead(count);
    if (answer !== undefined) return answer;
    const { messages } = body as { readonly messages: readonly Message[] };
    const found = messages.find(({ role }) => role === "assistant")?.content;
    const question = /Question: ([^\n]*)/.exec(messages[0]?.content ?? "")?.[1];
    const content =
      found === undefined
        ? `<search> ${question} `
        : `<answer> ${/Title: "?(\w+)/.exec(found)?.[1] ?? "none"} `;
    const usage = { prompt_tokens: 100, completion_tokens: 10, prompt_tokens_details: { cached_tokens: 40 } };
    return { json: { choices: [{ message: { role: "assistant", content }, finish_reason: "stop" }], usage } };
  });
}

async function recipeFor(name: string, model: Readonly<Record<string, unknown>>): Promise<string> {
  const path = at(`${name}.yaml`);
  await writeFile(path, `name: ${name}\n${world}model: ${JSON.stringify(model)}\n`);
  return path;
}

const served = (url: string, more: Readonly<Record<string, unknown>> = {}) => ({
  type: "openai",
  url,
  model: "tiny",
  profile: "llamacpp",
  ...more,
});

async function resultAt(path: string): Promise<EvaluationResult> {
  return JSON.parse(await readFile(path, "utf8")) as EvaluationResult;
}

/** A result without what differs from run to run. */
function comparable({ items, cost }: EvaluationResult): unknown {
  const parts = Object.entries(cost?.parts ?? {}).map(([name, part]) => [name, { ...part, seconds: 0 }]);
  return {
    cost: { ...cost, parts: Object.fromEntries(parts) },
    items: items.map((item) => ({ ...item, timeMs: 0, retrievalMs: 0 })),
  };
}

describe("eval", () => {
  test("says what it cost, and is repeated from recordings without any server", async () => {
    const server = await searchingServer();
    const price = { input: 1, cached: 0.25, output: 4 };
    const recipe = await recipeFor("recorded", served(server.url, { price }));
    const first = await runForTest(
      ...["eval", recipe, "--out", at("first.json"), "--json"],
      ...["--set", `recordPolicy=${at("policy.jsonl")}`, "--set", `recordRetrieval=${at("retrieval.jsonl")}`],
    );
    expect(first.stderr).not.toContain("error");
    expect(first.code).toBe(0);
    const cost = {
      calls: 16,
      promptTokens: 1600,
      cachedTokens: 640,
      completionTokens: 160,
      dollars: expect.closeTo((960 + 640 * 0.25 + 160 * 4) / 1e6, 12),
      pricing: "priced",
    };
    expect(first.json).toMatchObject({ n: 8, failed: 0, searches: 1, cost });
    const result = await resultAt(at("first.json"));
    expect(result.items[0]).toMatchObject({
      modelCalls: 2,
      promptTokens: 200,
      policyTokens: 20,
      contextTokens: 110,
    });
    expect(result.contract.model).toEqual({ type: "llamacpp chat", model: `tiny at ${server.url}/v1` });

    const asked = server.requests.length;
    const replay = await recipeFor("replayed", { type: "replay", file: "policy.jsonl" });
    const second = await runForTest(
      ...["eval", replay, "--out", at("second.json"), "--set", "retriever.type=replay", "--set"],
      `retriever.file=${at("retrieval.jsonl")}`,
    );
    expect(second.code).toBe(0);
    expect(second.stdout).toContain(
      "16 calls, 1600 prompt tokens (640 cached), 160 completion tokens, $0.00176",
    );
    expect(server.requests).toHaveLength(asked);
    expect(comparable(await resultAt(at("second.json")))).toEqual(comparable(result));
    const compared = await runForTest("compare", at("first.json"), at("second.json"), "--json");
    expect(compared.json).toMatchObject({ n: 8, difference: 0, contractDifferences: [] });
  });

  test("names the question whose completion was not recorded", async () => {
    const server = await searchingServer();
    const recipe = await recipeFor("few", served(server.url));
    const set = (text: string) => ["--set", text];
    await runForTest("eval", recipe, ...set("evaluation.n=1"), ...set(`recordPolicy=${at("few.jsonl")}`));
    const replay = await recipeFor("more", { type: "replay", file: "few.jsonl" });
    const run = await runForTest(
      "eval",
      replay,
      ...set("evaluation.n=2"),
      "--out",
      at("more.json"),
      "--json",
    );
    expect(run).toMatchObject({ code: 0, json: { n: 1, failed: 1 } });
    expect(run.stderr).toMatch(
      /1 of 2 questions failed and count in no score; the first, \S+: .*no completion/,
    );
    const [, failed] = (await resultAt(at("more.json"))).items;
    expect(failed).toMatchObject({
      stopReason: "policyFailure",
      failure: expect.stringContaining(`no completion for question ${failed?.dataset}/${failed?.id}`),
    });
  });

  test("ends with a budget, keeps what was done and says where", async () => {
    const server = await searchingServer();
    const recipe = await recipeFor("poor", served(server.url, { budget: { maxCalls: 9 }, concurrency: 2 }));
    const run = await runForTest("eval", recipe, "--out", at("poor.json"));
    expect(run.code).toBe(1);
    expect(run.stderr).toMatch(
      /the model budget of 9 calls is spent: 9 calls with 990 tokens for \$0 were made.*; 4 questions of \S+ were finished, their trajectories are in \S+poor\.unfinished\.trajectories\.jsonl/,
    );
    expect(server.requests).toHaveLength(9);
    const kept = (await readFile(at("poor.unfinished.trajectories.jsonl"), "utf8")).trimEnd().split("\n");
    expect(kept.map((line) => (JSON.parse(line) as { stopReason: string }).stopReason)).toEqual(
      Array.from({ length: 4 }, () => "answer"),
    );
    // A budget is of one command; the same one goes on with the four questions that are left.
    expect(await runForTest("eval", recipe, "--out", at("poor.json"), "--json")).toMatchObject({
      code: 0,
      json: { n: 8, failed: 0, cost: { calls: 16 } },
    });
    expect(server.requests).toHaveLength(9 + 8);
    expect((await readdir(folder)).filter((name) => /^poor\..*(kept|unfinished)/.test(name))).toEqual([]);
  });

  test("keeps its episodes in a folder that is not there yet, and goes on where the trajectories are written already", async () => {
    const server = await searchingServer();
    const recipe = await recipeFor("deep", served(server.url, { budget: { maxCalls: 9 }, concurrency: 2 }));
    const call = ["eval", recipe, "--out", at("results/deep.json"), "--json"];
    expect((await runForTest(...call)).code).toBe(1);
    // As a kill between trajectories and result leaves them.
    await writeFile(at("results/deep.trajectories.jsonl"), "");
    expect(await runForTest(...call)).toMatchObject({ code: 0, json: { n: 8, failed: 0 } });
    expect(server.requests).toHaveLength(9 + 8);
    expect((await readdir(at("results"))).sort()).toEqual(["deep.json", "deep.trajectories.jsonl"]);
  });

  test("judges the rest alone when the budget of the judge was spent", async () => {
    const server = await searchingServer();
    const usage = { prompt_tokens: 10, completion_tokens: 1 };
    const yes = { message: { role: "assistant", content: "yes" }, finish_reason: "stop" };
    const judge = await startServer(() => ({ json: { choices: [yes], usage } }));
    const recipe = await recipeFor("judged", served(server.url));
    const model = JSON.stringify(served(judge.url, { budget: { maxCalls: 5 } }));
    const call = ["eval", recipe, "--out", at("judged.json"), "--json", "--set"];
    const judging = `evaluation.judge={ type: model, rule: coverExactMatch, model: ${model} }`;
    const stopped = await runForTest(...call, judging);
    expect([stopped.code, judge.requests.length]).toEqual([1, 5]);
    expect(stopped.stderr).toMatch(/8 questions of \S+ were finished.*the same command goes on behind them/);
    const judged = await runForTest(...call, judging);
    expect(judged).toMatchObject({ code: 0, json: { n: 8 } });
    expect([server.requests.length, judge.requests.length]).toEqual([16, 8]);
    const { summary, cost } = await resultAt(at("judged.json"));
    expect([summary.overall.score?.mean, cost?.parts?.judge?.calls]).toEqual([1, 8]);
  });

  test("asks under all conditions of --decompose within one budget", async () => {
    const server = await searchingServer();
    const recipe = await recipeFor("split", served(server.url, { budget: { maxCalls: 20 } }));
    const run = await runForTest("eval", recipe, "--decompose", "--out", at("split.json"));
    expect(run.code).toBe(1);
    expect(run.stderr).toContain("the model budget of 4 calls is spent");
    expect(server.requests).toHaveLength(20);
    expect((await resultAt(at("split.json"))).summary.overall.n).toBe(8);
  });

  test("counts money as 0 and says unpriced without a price; failures of the server are failed items", async () => {
    const server = await searchingServer((count) =>
      count % 5 === 0 ? { status: 400, text: "no" } : undefined,
    );
    const run = await runForTest("eval", await recipeFor("failing", served(server.url)));
    expect(run.stdout).toContain("$0, unpriced");
    expect(run.stdout).toMatch(/failed/);
    expect(run.code).toBe(0);
  });

  test("is bad news where every question failed", async () => {
    const server = await searchingServer(() => ({ status: 400, text: "no" }));
    const run = await runForTest("eval", await recipeFor("down", served(server.url)), "--json");
    expect(run).toMatchObject({ code: 1, json: { n: 0, em: null } });
    expect(run.stderr).toMatch(/ questions failed and count in no score; the first/);
  });
});

test("ask plays an episode, complete continues a prompt, train has nothing to train", async () => {
  const server = await searchingServer();
  const recipe = await recipeFor("asked", served(server.url));
  const asked = await runForTest("ask", recipe, "Who is it?", "--json");
  expect(asked.json).toMatchObject({
    answer: expect.any(String),
    searches: [{ query: "Who is it?" }],
    usage: { calls: 2, promptTokens: 200, completionTokens: 20 },
  });
  const completed = await runForTest("complete", "--model", recipe, "--prompt", "Question: x", "--json");
  expect(completed.json).toMatchObject({
    text: "<search> x ",
    usage: { promptTokens: 100, completionTokens: 10 },
  });
  const trained = await runForTest("train", recipe, "--out", at("never"));
  expect([trained.code, trained.stderr]).toEqual([
    2,
    expect.stringContaining(
      "there is nothing to train: a model behind a server has no weights here; use forager eval",
    ),
  ]);
  const chat = await runForTest("complete", "--model", recipe, "--prompt", "x", "--chat");
  expect([chat.code, chat.stderr]).toEqual([
    2,
    expect.stringContaining("--chat and --weights are for models"),
  ]);
  const weights = await runForTest("eval", recipe, "--weights", "int8");
  expect([weights.code, weights.stderr]).toEqual([2, expect.stringContaining("is computed elsewhere")]);
});

test("a key that is not there is said before anything is asked", async () => {
  const server = await searchingServer();
  const recipe = await recipeFor("locked", served(server.url, { apiKeyEnv: "FORAGER_NO_SUCH_KEY" }));
  const run = await runForTest("eval", recipe);
  expect(run.code).toBe(2);
  expect(run.stderr).toContain(
    "expected an API key in the environment variable FORAGER_NO_SUCH_KEY, got nothing",
  );
  expect(server.requests).toHaveLength(0);
});
