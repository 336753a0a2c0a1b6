// Where entries sit and what their slots keep; that decoding with them is right is in embedded-policy.test.ts.
import { describe, expect, test } from "vitest";
import { CompletionJob } from "./completion-job.ts";
import { tinyModel, tinyTokenizer } from "./engine.fixture.ts";
import { SlotPool } from "./slot-pool.ts";

const options = { maxTokens: 9, temperature: 0, topP: 1, topK: 0, stop: [] };
const setting = { tokenizer: tinyTokenizer, contextLength: tinyModel.contextLength };
const jobOf = (job: CompletionJob): CompletionJob => job;

function jobFor(episode: string | undefined, tokens: readonly number[]): CompletionJob {
  const context = { text: "", tokens, seed: 1, ...(episode === undefined ? {} : { episode }) };
  return new CompletionJob(context, options, setting);
}

/** Admits jobs and returns those left over. */
function admit(pool: SlotPool<CompletionJob>, ...jobs: readonly CompletionJob[]): CompletionJob[] {
  return pool.admit(jobs, jobOf);
}

/** Pretends that all pending tokens were computed; each row of a slot then holds its token in every float. */
function compute(pool: SlotPool<CompletionJob>): CompletionJob[] {
  const extensions = pool.pending();
  pool.reserve(extensions);
  const { slotWidth, buffers } = pool.cache;
  for (const { slot, cached, tokens } of extensions) {
    const data = Float32Array.from({ length: tokens.length * slotWidth }, (_, i) =>
      Number(tokens[Math.floor(i / slotWidth)]),
    );
    const rows = { data, sequence: 0, chunk: tokens.length, start: cached, count: tokens.length };
    for (const index of buffers.keys()) pool.cache.append(index, slot, rows);
  }
  return extensions.flatMap((extension) => pool.extended(extension) ?? []);
}

function releaseAll(pool: SlotPool<CompletionJob>): void {
  pool.releaseWhere(() => true);
}

/** The first float of each of the first rows of a slot. */
function rowsOf({ cache }: SlotPool<CompletionJob>, slot: number, count: number): number[] {
  const stride = cache.slots * cache.slotWidth;
  return Array.from(
    { length: count },
    (_, row) => cache.buffers[0]?.[row * stride + slot * cache.slotWidth] as number,
  );
}

const newPool = (maxSlots: number, cacheMemory = 1e9): SlotPool<CompletionJob> =>
  new SlotPool(tinyModel, { maxSlots, cacheMemory });

describe("SlotPool", () => {
  test("gives slots in order up to its limit; the others wait", () => {
    const pool = newPool(2);
    const [a, b, c] = ["a", "b", "c"].map((name) => jobFor(name, [1, 2]));
    expect(admit(pool, a as CompletionJob, b as CompletionJob, c as CompletionJob)).toEqual([c]);
    expect(pool.entries()).toEqual([a, b]);
    expect(pool.busyCount).toBe(2);
    expect(pool.cache.slots).toBe(2);
  });

  test("an entry is ready when its last token is cached, not before, and never by an idle turn", () => {
    const pool = newPool(2);
    const job = jobFor("a", [5, 6, 7]);
    admit(pool, job);
    const [all] = pool.pending();
    expect(all).toEqual({ slot: 0, cached: 0, tokens: [5, 6, 7] });
    expect(pool.extended({ slot: 0, cached: 0, tokens: [9], isIdle: true })).toBeUndefined();
    expect(pool.extended({ slot: 0, cached: 0, tokens: [5, 6] })).toBeUndefined();
    expect(pool.pending()).toEqual([{ slot: 0, cached: 2, tokens: [7] }]);
    expect(pool.extended({ slot: 0, cached: 2, tokens: [7] })).toBe(job);
  });

  test("an episode that comes back finds its slot before newcomers do, and only new tokens are pending", () => {
    const pool = newPool(2);
    admit(pool, jobFor("a", [1, 2]), jobFor("b", [3]));
    compute(pool);
    releaseAll(pool);
    const late = jobFor("new", [8]);
    expect(admit(pool, late, jobFor("a", [1, 2, 4, 5]), jobFor("b", [3, 6]))).toEqual([late]);
    expect(pool.pending()).toEqual([
      { slot: 0, cached: 2, tokens: [4, 5] },
      { slot: 1, cached: 1, tokens: [6] },
    ]);
  });

  test("keeps what the new context shares with the old one, and at least one token to run", () => {
    const pool = newPool(1);
    const turns: readonly [number[], number][] = [
      [[1, 2, 3, 4], 0],
      [[1, 2, 9], 2],
      [[1, 2, 9], 2],
      [[1], 0],
      [[7, 7], 0],
    ];
    for (const [tokens, cached] of turns) {
      admit(pool, jobFor("a", tokens));
      expect(pool.pending()).toEqual([{ slot: 0, cached, tokens: tokens.slice(cached) }]);
      compute(pool);
      releaseAll(pool);
      expect(rowsOf(pool, 0, tokens.length)).toEqual(tokens);
    }
  });

  test("newcomers take the slot that was idle longest; equal beginnings are shared even then", () => {
    const pool = newPool(3);
    admit(pool, jobFor("a", [1]), jobFor("b", [2]), jobFor("c", [3]));
    compute(pool);
    releaseAll(pool);
    admit(pool, jobFor("a", [1, 1]));
    compute(pool);
    releaseAll(pool);
    admit(pool, jobFor("new", [2, 5]));
    expect(pool.pending()).toEqual([{ slot: 1, cached: 1, tokens: [5] }]);
  });

  test("two entries of one episode, or of none, take a slot each", () => {
    const pool = newPool(4);
    admit(pool, jobFor("a", [1, 2]));
    compute(pool);
    releaseAll(pool);
    const jobs = [
      jobFor("a", [1, 2, 3]),
      jobFor("a", [1, 2, 4]),
      jobFor(undefined, [5]),
      jobFor(undefined, [6]),
    ];
    expect(admit(pool, ...jobs)).toEqual([]);
    expect(new Set(pool.entries())).toEqual(new Set(jobs));
  });

  test("more slots and more rows keep what is cached", () => {
    const pool = newPool(3);
    admit(pool, jobFor("a", [1, 2, 3]));
    compute(pool);
    const long = Array.from({ length: 100 }, (_, i) => i);
    admit(pool, jobFor("b", long));
    compute(pool);
    expect(pool.cache).toMatchObject({ slots: 2, capacity: 128 });
    expect(rowsOf(pool, 0, 3)).toEqual([1, 2, 3]);
    expect(rowsOf(pool, 1, 100)).toEqual(long);
  });

  test("has never more rows than the model has positions", () => {
    const pool = new SlotPool<CompletionJob>(
      { ...tinyModel, contextLength: 70 },
      { maxSlots: 1, cacheMemory: 1e9 },
    );
    admit(
      pool,
      jobFor(
        "a",
        Array.from({ length: 69 }, () => 1),
      ),
    );
    compute(pool);
    expect(pool.cache.capacity).toBe(70);
  });

  test("shrinks when half of its slots are enough and the rest was long idle, keeping what is in use", () => {
    const pool = newPool(8);
    admit(pool, ...Array.from({ length: 8 }, (_, i) => jobFor(`${i}`, [i, i])));
    compute(pool);
    releaseAll(pool);
    let tokens = [6, 6];
    for (let turn = 0; turn < 80; turn++) {
      admit(pool, jobFor("6", tokens));
      expect(pool.pending()[0]?.cached).toBeGreaterThan(0);
      compute(pool);
      releaseAll(pool);
      tokens = [...tokens.slice(0, 40), turn];
    }
    expect(pool.cache.slots).toBe(1);
    expect(rowsOf(pool, 0, 2)).toEqual([6, 6]);
  });

  test("an empty pool after clear has nothing left to continue from", () => {
    const pool = newPool(2);
    admit(pool, jobFor("a", [1, 2]));
    compute(pool);
    pool.clear();
    expect([pool.busyCount, pool.cache.slots, pool.cache.capacity]).toEqual([0, 0, 0]);
    admit(pool, jobFor("a", [1, 2, 3]));
    expect(pool.pending()).toEqual([{ slot: 0, cached: 0, tokens: [1, 2, 3] }]);
  });
});
