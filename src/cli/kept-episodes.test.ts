import { mkdir, mkdtemp, readFile, rm, rmdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { makeQuestion, makeTrajectory } from "../../test/make-trajectory.ts";
import type { Trajectory } from "../rollout/trajectory.ts";
import { episodesFile, tellingOf } from "./kept-episodes.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "forager-kept-"));
});
afterAll(() => rm(folder, { recursive: true }));

let notes: string[] = [];
beforeEach(() => {
  notes = [];
});
const kept = (file: string, stamp = "m") => episodesFile(file, { stamp, note: (text) => notes.push(text) });

const episode = (id: string) => makeTrajectory({ question: makeQuestion({ id }), group: `atlas/${id}` });

test("episodes come back as they were, with the calls of their ranker", async () => {
  const file = join(folder, "ranked.jsonl");
  const ranked = {
    ...episode("1"),
    rankings: [makeTrajectory({ ranking: { turn: 0, place: 0, query: "q", count: 1 } })],
  };
  const first = kept(file);
  expect((await first.load("a")).size).toBe(0);
  first.add(ranked);
  first.add(episode("2"));
  await first.close();
  const known = await kept(file).load("a");
  expect([...known.keys()]).toEqual(["atlas/1", "atlas/2"]);
  expect(known.get("atlas/1")).toEqual(ranked);
});

test("a line that a kill cut short is left out", async () => {
  const file = join(folder, "torn.jsonl");
  const first = kept(file);
  await first.load("a");
  first.add(episode("1"));
  await first.close();
  await writeFile(file, `${await readFile(file, "utf8")}{"setting":"a","epi`);
  const again = kept(file);
  expect((await again.load("a")).size).toBe(1);
  again.add(episode("2"));
  await again.close();
  expect((await kept(file).load("a")).size).toBe(2);
});

test("another setting says that it takes none of the episodes, and leaves them where they are", async () => {
  const file = join(folder, "settings.jsonl");
  const first = kept(file);
  await first.load("a");
  first.add(episode("1"));
  await first.close();
  expect(notes).toEqual([]);
  const other = kept(file);
  expect((await other.load("b")).size).toBe(0);
  expect(notes).toEqual([expect.stringMatching(/^1 episodes in \S+settings\.jsonl are of another recipe/)]);
  other.add(episode("2"));
  await other.close();
  expect([...(await kept(file).load("a")).keys()]).toEqual(["atlas/1"]);
  expect([...(await kept(file).load("b")).keys()]).toEqual(["atlas/2"]);
});

test("an evaluation that goes on tells what was finished before, and one that is stored leaves nothing", async () => {
  const file = join(folder, "told.jsonl");
  const first = kept(file);
  await first.load("a");
  first.add(episode("1"));
  await first.close();
  const finished: Trajectory[] = [];
  await tellingOf(kept(file), finished).load("a");
  expect(finished.map(({ group }) => group)).toEqual(["atlas/1"]);
  await first.remove();
  expect((await kept(file).load("a")).size).toBe(0);
});

test("the folder of the episodes is made", async () => {
  const file = join(folder, "new", "deep", "x.jsonl");
  const first = kept(file);
  await first.load("a");
  first.add(episode("1"));
  await first.close();
  expect(notes).toEqual([]);
  expect((await kept(file).load("a")).size).toBe(1);
});

test("what cannot be written is said when the file is closed, and loses nothing that can be later", async () => {
  const file = join(folder, "blocked.jsonl");
  const first = kept(file);
  await first.load("a");
  await mkdir(file);
  first.add(episode("1"));
  await first.close();
  expect(notes).toEqual([
    expect.stringMatching(/^1 episodes are not kept for another call: .*blocked\.jsonl/),
  ]);
  await rmdir(file);
  first.add(episode("2"));
  await first.close();
  expect(notes).toHaveLength(1);
  expect([...(await kept(file).load("a")).keys()]).toEqual(["atlas/1", "atlas/2"]);
});

test("episodes of other models are not taken for those of now, and a judged one for the one that was played", async () => {
  const file = join(folder, "models.jsonl");
  const first = kept(file);
  await first.load("a");
  first.add(episode("1"));
  const usage = { calls: 1, promptTokens: 1, cachedTokens: 0, completionTokens: 1, contextTokens: 2 };
  const assessment = { score: 1, ruleScore: 0, unreadable: 0, judged: 1, usage } as const;
  first.add({ ...episode("1"), assessment });
  await first.close();
  expect((await kept(file).load("a")).get("atlas/1")?.assessment).toEqual(assessment);
  expect((await kept(file, "other").load("a")).size).toBe(0);
  expect(notes).toEqual([expect.stringMatching(/^1 episodes in /)]);
});
