/**
 * A retrieval server that dies in the middle of a batch: the step finishes with what was found, what failed is marked and
 * trained on by nobody, and the run that cannot go on without it keeps its state until the server is back.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { parseRecipe } from "../src/config/load-recipe.ts";
import { type Recipe, recipeSchema } from "../src/config/recipe.ts";
import { RetrieverError } from "../src/errors.ts";
import { RunFolder } from "../src/reporting/run-folder.ts";
import { EpisodesFailedError } from "../src/training/sample-groups.ts";
import { metricsIn, runTraining } from "../src/training/training.fixture.ts";

const document = { id: "1", contents: '"Garda"\nThe largest lake in Italy.' };

/** A server of `/retrieve` that is gone, with all its connections, once it has answered `most` requests. */
async function serve(
  port: number,
  most: number,
): Promise<{ readonly port: number; readonly server: Server }> {
  let answered = 0;
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const part of request) text += part;
    if (request.method !== "POST") return void response.writeHead(404).end();
    if (answered++ >= most) {
      server.close();
      return void server.closeAllConnections();
    }
    const { queries } = JSON.parse(text) as { queries: string[] };
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ result: queries.map(() => [{ document, score: 1 }]) }));
  });
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, server };
}

/** In mode rag each episode searches with its question before its first turn. */
const recipeAt = (folder: string, port: number): Recipe =>
  parseRecipe(
    `
name: dying
data: { type: files, corpus: corpus.jsonl, questions: { train: train.jsonl, evaluation: held-out.jsonl } }
retriever: { type: remote, url: "http://127.0.0.1:${port}", retries: 0, backoffMs: 1, concurrency: 1 }
environment: { codec: compact, prompt: bare, passageTemplate: text, mode: rag, k: 1, maxTurnTokens: 4, maxObservationTokens: 32 }
model: { type: fresh, layers: 1, width: 16, heads: 2, keyValueHeads: 1, feedForward: 24, contextLength: 192, vocabularySize: 300 }
engine: { type: embedded, threads: 1 }
stages:
  - type: reinforcement
    name: grpo
    steps: 3
    questionsPerStep: 12
    episodeRetries: 0
    schedule: { learningRate: 0.01 }
    reward: { type: format }
    algorithm: { groupSize: 1, rejectGroupsWithoutSignal: false }
evaluation: { n: 2 }
checkpoint: { everySteps: 9 }
`,
    { file: join(folder, "dying.yaml") },
  );

async function writeData(folder: string): Promise<void> {
  const question = (id: number): string =>
    JSON.stringify({
      id: String(id),
      question: `which lake ${id}`,
      golden_answers: ["Garda"],
      supporting: ["1"],
    });
  await writeFile(join(folder, "corpus.jsonl"), JSON.stringify(document));
  await writeFile(join(folder, "train.jsonl"), [1, 2, 3, 4, 5, 6, 7, 8].map(question).join("\n"));
  await writeFile(join(folder, "held-out.jsonl"), [11, 12].map(question).join("\n"));
}

test("the step in which a retrieval server dies finishes, and the run goes on when it is back", async () => {
  const folder = await mkdtemp(join(tmpdir(), "forager-dying-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  await writeData(folder);

  // One request to see that it is well, then two a batch: its first query, and all that came meanwhile. It dies within the second step.
  const { port } = await serve(0, 1 + 2 + 2 + 1);
  const recipe = recipeAt(folder, port);
  const run = join(folder, "run");
  const ending = runTraining(run, recipe);
  await expect(ending).rejects.toThrow(EpisodesFailedError);
  await expect(ending).rejects.toThrow(/all 12 episodes of a step .*nothing listens there.*train --resume/);
  const rows = await metricsIn(run);
  expect(rows.map((row) => [row.step, row["stop/retrieverFailure"]])).toEqual([
    [1, 0],
    [2, 11 / 12],
  ]);
  expect(rows[1]?.["loss/tokens"]).toBeGreaterThan(0);

  await serve(port, Number.POSITIVE_INFINITY);
  await runTraining(run, recipe, { resume: true });
  const all = await metricsIn(run);
  expect(all.slice(0, 2)).toEqual(rows);
  expect(all.map((row) => [row.step, row["stop/retrieverFailure"]])).toEqual([
    [1, 0],
    [2, 11 / 12],
    [3, 0],
  ]);
});

test("a warm-up whose retrieval server dies keeps the steps that are done, and says how it goes on", async () => {
  const folder = await mkdtemp(join(tmpdir(), "forager-dying-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  await writeData(folder);
  const { port } = await serve(0, 8);
  const { stages: _, ...rest } = recipeAt(folder, port);
  const stages = [
    {
      type: "supervised",
      name: "warm-up",
      steps: 9,
      batchSize: 1,
      teacher: { type: "goldPassages" },
      schedule: { learningRate: 0.01 },
    },
  ];
  const environment = { ...rest.environment, mode: "search", maxTurnTokens: 60 };
  const recipe = recipeSchema.parse({ ...rest, environment, stages });
  const run = join(folder, "run");
  const ending = runTraining(run, recipe);
  await expect(ending).rejects.toThrow(RetrieverError);
  await expect(ending).rejects.toThrow(
    `; the run is kept and then goes on with: npx forager train --resume ${run}`,
  );
  const rows = await metricsIn(run);
  expect(rows.length).toBeGreaterThan(0);
  expect((await (await RunFolder.open(run)).latestCheckpoint())?.step).toBe(rows.length);
});
