import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { makeQuestion, makeTrajectory } from "../../test/make-trajectory.ts";
import { endpointOptions } from "../rollout/endpoint/model-server.fixture.ts";
import type { Trajectory } from "../rollout/trajectory.ts";
import { episodesFile, tellingOf } from "./kept-episodes.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "forager-kept-"));
});
afterAll(() => rm(folder, { recursive: true }));

const episode = (id: string) => makeTrajectory({ question: makeQuestion({ id }), group: `atlas/${id}` });

test("episodes come back as they were, with the calls of their ranker", async () => {
  const file = join(folder, "ranked.jsonl");
  const ranked = {
    ...episode("1"),
    rankings: [makeTrajectory({ ranking: { turn: 0, place: 0, query: "q", count: 1 } })],
  };
  const first = episodesFile(file, "m");
  expect((await first.load("a")).size).toBe(0);
  first.add(ranked);
  first.add(episode("2"));
  await first.close();
  const known = await episodesFile(file, "m").load("a");
  expect([...known.keys()]).toEqual(["atlas/1", "atlas/2"]);
  expect(known.get("atlas/1")).toEqual(ranked);
});

test("a line that a kill cut short is left out, and another setting begins anew", async () => {
  const file = join(folder, "torn.jsonl");
  const first = episodesFile(file, "m");
  await first.load("a");
  first.add(episode("1"));
  await first.close();
  await writeFile(file, `${await readFile(file, "utf8")}{"setting":"a","epi`);
  const again = episodesFile(file, "m");
  expect((await again.load("a")).size).toBe(1);
  again.add(episode("2"));
  await again.close();
  expect((await episodesFile(file, "m").load("a")).size).toBe(2);
  expect((await episodesFile(file, "m").load("b")).size).toBe(0);
  expect((await episodesFile(file, "m").load("a")).size).toBe(0);
});

test("an evaluation that goes on tells what was finished before, and one that is stored leaves nothing", async () => {
  const file = join(folder, "told.jsonl");
  const first = episodesFile(file, "m");
  await first.load("a");
  first.add(episode("1"));
  await first.close();
  const finished: Trajectory[] = [];
  await tellingOf(episodesFile(file, "m"), finished).load("a");
  expect(finished.map(({ group }) => group)).toEqual(["atlas/1"]);
  await first.remove();
  expect((await episodesFile(file, "m").load("a")).size).toBe(0);
});

test("what cannot be written is told when the file is closed", async () => {
  const file = episodesFile(join(folder, "nowhere", "x.jsonl"), "m");
  await file.load("a");
  file.add(episode("1"));
  await expect(file.close()).rejects.toThrow("nowhere");
});

test("episodes of a model whose files have changed are not taken for those of now", async () => {
  const [file, model] = [join(folder, "model.jsonl"), join(folder, "model.gguf")];
  await writeFile(model, "weights");
  const first = episodesFile(file, model);
  await first.load("a");
  first.add(episode("1"));
  await first.close();
  expect((await episodesFile(file, model).load("a")).size).toBe(1);
  await writeFile(model, "other weights");
  expect((await episodesFile(file, model).load("a")).size).toBe(0);
});

test("a served model goes on under another budget, but not when it is asked otherwise", async () => {
  const file = join(folder, "served.jsonl");
  const model = (given: Readonly<Record<string, unknown>>) =>
    endpointOptions("http://127.0.0.1:1", { profile: "vllm", ...given });
  const first = episodesFile(file, model({ budget: { maxCalls: 1 } }));
  await first.load("a");
  first.add(episode("1"));
  await first.close();
  expect((await episodesFile(file, model({ budget: { maxCalls: 9 }, retries: 0 })).load("a")).size).toBe(1);
  expect((await episodesFile(file, model({ thinking: false })).load("a")).size).toBe(0);
});
