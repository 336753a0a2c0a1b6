/** `forager table` where servers fail and calls are interrupted: what was measured stays, what failed is asked again. */
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runForTest, runWithSignal } from "../../../test/run-cli.ts";
import { type Answer, startServer } from "../../shared/server.fixture.ts";

let folder: string;
const at = (name: string): string => join(folder, name);
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "forager-table-"));
});
afterAll(() => rm(folder, { recursive: true }));

const usage = { prompt_tokens: 10, completion_tokens: 5 };
const answered: Answer = {
  json: { choices: [{ message: { content: "<answer> x " }, finish_reason: "stop" }], usage },
};

async function recipe(name: string, url: string): Promise<string> {
  const model = { type: "openai", url, model: name, profile: "llamacpp", retries: 0, concurrency: 1 };
  await writeFile(
    at(`${name}.yaml`),
    `name: ${name}
data: { type: world, world: { name: lab, entities: 40, nameWords: 20, relations: 1, trainQuestions: 10, testQuestions: 6 } }
environment: { mode: direct, maxTurnTokens: 24 }
evaluation: { n: 6 }
model: ${JSON.stringify(model)}
`,
  );
  return at(`${name}.yaml`);
}

test("a method whose server is down is a row with its reason and is asked again when the server is back", async () => {
  let isDown = true;
  const server = await startServer(() => (isDown ? { status: 400, text: "no" } : answered));
  const other = await startServer(() => answered);
  const call = [
    "table",
    await recipe("down", server.url),
    await recipe("up", other.url),
    "--out",
    at("down"),
    "--json",
  ];
  expect(await runForTest(...call)).toMatchObject({
    code: 1,
    json: {
      measured: 1,
      reference: "up",
      failed: [{ name: "down", failure: expect.stringMatching(/^6 of 6 questions failed.*400/) }],
    },
  });
  isDown = false;
  const again = await runForTest(...call);
  expect(again).toMatchObject({ code: 0, json: { measured: 2, failed: [] } });
  expect(again.stderr).toContain("up is measured already");
});

test("an interrupted method goes on with the questions that are left, and those that failed alone are asked again", async () => {
  const controller = new AbortController();
  let calls = 0;
  const server = await startServer(() => {
    calls++;
    if (calls === 3) return { status: 400, text: "no" };
    if (calls === 5) controller.abort(new Error("stop"));
    return answered;
  });
  const call = ["table", await recipe("agent", server.url), "--out", at("agent"), "--json"];
  const stopped = await runWithSignal(controller.signal, ...call);
  expect(stopped.code).toBe(130);
  expect(calls).toBe(5);
  expect(await readdir(at("agent/results"))).toEqual(["agent.kept.jsonl"]);
  // Three of the four that ended were kept; the third failed, the fifth was interrupted.
  expect(await runForTest(...call)).toMatchObject({ code: 0, json: { rows: [{ name: "agent", n: 6 }] } });
  expect(calls).toBe(5 + 3);
  expect(await readdir(at("agent/results"))).not.toContain("agent.kept.jsonl");
  await runForTest(...call);
  expect(calls).toBe(8);
});

test("of a method that is measured but for some questions these alone are asked again", async () => {
  let calls = 0;
  const server = await startServer(() => (++calls === 2 ? { status: 400, text: "no" } : answered));
  const call = ["table", await recipe("partly", server.url), "--out", at("partly"), "--json"];
  expect(await runForTest(...call)).toMatchObject({ code: 0, json: { rows: [{ n: 5 }] } });
  const again = await runForTest(...call);
  expect(again.stderr).toContain("partly is asked again what failed: 1 of 6 questions");
  expect(again).toMatchObject({ code: 0, json: { rows: [{ n: 6 }] } });
  expect(calls).toBe(7);
});

test("a method is measured again when its questions or its corpus have been corrected, and else is not", async () => {
  let calls = 0;
  const server = await startServer(() => {
    calls++;
    return answered;
  });
  const passage = (text: string) => `${JSON.stringify({ id: "p", contents: `"T"\n${text}` })}\n`;
  const question = (answer: string) =>
    `${JSON.stringify({ id: "q", question: "Who?", golden_answers: [answer] })}\n`;
  const model = { type: "openai", url: server.url, model: "m", profile: "llamacpp", retries: 0 };
  await writeFile(at("corpus.jsonl"), passage("Ada did it."));
  await writeFile(at("questions.jsonl"), question("y"));
  await writeFile(
    at("files.yaml"),
    `name: files
data: { type: files, corpus: corpus.jsonl, questions: { evaluation: questions.jsonl } }
environment: { mode: direct, maxTurnTokens: 24 }
model: ${JSON.stringify(model)}
`,
  );
  const call = ["table", at("files.yaml"), "--out", at("files"), "--json"];
  const measured = async (em: number) => {
    const made = await runForTest(...call);
    expect(made).toMatchObject({ code: 0, json: { rows: [{ n: 1, em }] } });
    return made.stderr;
  };
  await measured(0);
  expect(await measured(0)).toContain("files is measured already");
  await writeFile(at("questions.jsonl"), question("x"));
  expect(await measured(1)).toContain("files is measured again: its questions are not those of its result");
  await writeFile(at("corpus.jsonl"), passage("Eve did it."));
  expect(await measured(1)).toContain("files is measured again: its corpus and index are not those");
  expect(await measured(1)).toContain("files is measured already");
  expect(calls).toBe(3);
  // A measurement that is interrupted takes no earlier result away.
  const other = ["--set", "environment.maxTurnTokens=20"];
  const stopped = await runWithSignal(AbortSignal.abort(new Error("stop")), ...call, ...other);
  expect(stopped.code).toBe(130);
  expect(await measured(1)).toContain("files is measured already");
  await runForTest(...call, ...other);
  expect(calls).toBe(4);
});

test("several seeds of a method are one row", async () => {
  const server = await startServer(() => answered);
  const path = await recipe("seeded", server.url);
  for (const seed of [1, 2])
    await runForTest("eval", path, "--set", `seed=${seed}`, "--out", at(`seeded-${seed}.json`));
  const pair = `${at("seeded-1.json")},${at("seeded-2.json")}`;
  const made = await runForTest("table", pair, at("seeded-1.json"), "--out", at("seeds"), "--json");
  expect(made).toMatchObject({
    code: 0,
    json: { methods: 2, rows: [{ account: expect.stringContaining("means of 2 seeds") }, { n: 6 }] },
  });
});
