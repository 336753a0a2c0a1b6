// Where entries sit and what their slots keep; that decoding with them is right is in embedded-policy.test.ts.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { tokenBytes } from "./cache-budget.ts";
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
  for (const { slot, cached, tokens } of extensions) {
    for (const rows of headsOf(pool, slot)) {
      const width = rows.length / pool.cache.capacity;
      for (const [i, token] of tokens.entries())
        rows.fill(token, (cached + i) * width, (cached + i + 1) * width);
    }
  }
  return extensions.flatMap((extension) => pool.extended(extension) ?? []);
}

function releaseAll(pool: SlotPool<CompletionJob>): void {
  pool.releaseWhere(() => true);
}

/** The rows of each head of a slot, in all buffers. */
function headsOf({ cache }: SlotPool<CompletionJob>, slot: number): Float32Array[] {
  return Array.from({ length: cache.bufferCount }, (_, buffer) =>
    Array.from({ length: tinyModel.keyValueHeads }, (_, head) => cache.rows(buffer, slot, head)),
  ).flat();
}

/** The first float of each of the first rows of a slot, the same in all heads. */
function rowsOf(pool: SlotPool<CompletionJob>, slot: number, count: number): number[] {
  const [first, ...others] = headsOf(pool, slot).map((rows) => {
    const width = rows.length / pool.cache.capacity;
    return Array.from({ length: count }, (_, row) => rows[row * width] as number);
  });
  for (const rows of others) expect(rows).toEqual(first);
  return first as number[];
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

describe("what contexts share", () => {
  const prompt = Array.from({ length: 40 }, (_, i) => i + 1);

  test("is computed in one slot; the others wait, copy it and run what is their own", () => {
    const pool = newPool(4);
    const jobs = ["a", "b", "c"].map((name, i) => jobFor(name, [...prompt, ...(i === 2 ? [99, 98] : [])]));
    admit(pool, ...jobs);
    expect(pool.pending()).toEqual([{ slot: 0, cached: 0, tokens: prompt }]);
    expect(heldCount(pool)).toBe(2);
    expect(compute(pool)).toEqual([jobs[0]]);
    expect(pool.pending().slice(1)).toEqual([
      { slot: 1, cached: 39, tokens: [40] },
      { slot: 2, cached: 40, tokens: [99, 98] },
    ]);
    expect([heldCount(pool), rowsOf(pool, 1, 39), rowsOf(pool, 2, 40)]).toEqual([
      0,
      prompt.slice(0, 39),
      prompt,
    ]);
  });

  test("is taken from an idle slot at once", () => {
    const pool = newPool(2);
    admit(pool, jobFor("a", prompt));
    compute(pool);
    releaseAll(pool);
    admit(pool, jobFor("b", prompt), jobFor("a", [...prompt, 7]));
    expect(pool.pending()).toEqual([
      { slot: 0, cached: 40, tokens: [7] },
      { slot: 1, cached: 39, tokens: [40] },
    ]);
  });

  test("is not waited for when it is short", () => {
    const pool = newPool(2);
    admit(pool, jobFor("a", [...prompt.slice(0, 15), 77]), jobFor("b", [...prompt.slice(0, 15), 88]));
    expect([heldCount(pool), pool.pending().length]).toEqual([0, 2]);
  });

  test("reaches those that wait for one that waits", () => {
    const pool = newPool(3);
    const longer = [...prompt, ...prompt];
    admit(pool, jobFor("a", prompt), jobFor("b", longer), jobFor("c", longer));
    expect(pool.pending()).toHaveLength(1);
    compute(pool);
    expect(pool.pending().map(({ slot }) => slot)).toEqual([0, 1]);
    compute(pool);
    expect(pool.pending().map(({ slot, cached }) => [slot, cached])).toEqual([
      [0, 40],
      [1, 80],
      [2, 79],
    ]);
  });

  test("is computed by another when the first gives up in the middle", () => {
    const pool = newPool(3);
    const [a, b, c] = ["a", "b", "c"].map((name) => jobFor(name, prompt));
    admit(pool, a as CompletionJob, b as CompletionJob, c as CompletionJob);
    const part = { slot: 0, cached: 0, tokens: prompt.slice(0, 20) };
    pool.reserve([part]);
    pool.extended(part);
    pool.releaseWhere((job) => job === a);
    expect(pool.pending().map(({ slot, cached }) => [slot, cached])).toEqual([
      [1, 20],
      [2, 20],
    ]);
  });
});

/** Busy slots that wait for rows of another one. */
function heldCount(pool: SlotPool<CompletionJob>): number {
  return pool.busyCount - pool.pending().length;
}

/** Expects in each busy slot, unless one is held back, the rows of its own tokens. */
function expectOwnRows(pool: SlotPool<CompletionJob>): void {
  if (heldCount(pool) > 0) return;
  const jobs = pool.entries();
  for (const [index, { slot, cached }] of pool.pending().entries()) {
    expect(rowsOf(pool, slot, cached)).toEqual(jobs[index]?.tokens.slice(0, cached));
  }
}

describe("the memory of keys and values", () => {
  const perToken = tokenBytes(tinyModel);
  const long = (name: string, count: number): CompletionJob =>
    jobFor(
      name,
      Array.from({ length: count }, (_, i) => (i * name.charCodeAt(0)) % 290),
    );

  test("keeps entries waiting that do not fit beside those that run", () => {
    // Room for two entries of 100 + 9 tokens, and no more.
    const pool = newPool(8, 218 * perToken);
    const jobs = ["a", "b", "c"].map((name) => long(name, 100));
    expect(admit(pool, ...jobs)).toEqual([jobs[2]]);
    compute(pool);
    expect(pool.cache).toMatchObject({ slots: 2, capacity: 109 });
    pool.releaseWhere((job) => job === jobs[0]);
    expect(admit(pool, jobs[2] as CompletionJob)).toEqual([]);
  });

  test("drops slots that were idle longest for one that comes back", () => {
    const pool = newPool(8, 220 * perToken);
    for (const name of ["a", "b", "c", "d"]) admit(pool, long(name, 40));
    compute(pool);
    releaseAll(pool);
    expect(pool.cache.slots).toBe(4);
    admit(pool, long("b", 95));
    expect(pool.cache.slots).toBe(2);
    expect(pool.pending()[0]?.cached).toBe(40);
    admit(pool, long("d", 41));
    expect(pool.pending().map(({ cached }) => cached)).toEqual([40, 40]);
  });

  test("is bounded whatever comes, and everything that fits alone gets done", () => {
    const steps = fc.array(
      fc.record({
        episode: fc.integer({ min: 0, max: 9 }),
        length: fc.integer({ min: 1, max: 250 }),
        beginning: fc.integer({ min: 0, max: 2 }),
        computed: fc.integer({ min: 0, max: 3 }),
      }),
      { minLength: 1, maxLength: 40 },
    );
    fc.assert(
      fc.property(steps, fc.integer({ min: 260, max: 1500 }), (arrivals, tokens) => {
        const pool = newPool(6, tokens * perToken);
        let queue: CompletionJob[] = [];
        const turn = (): void => {
          queue = pool.admit(queue, jobOf);
          const done = compute(pool);
          const { slots, capacity } = pool.cache;
          expect(slots * capacity).toBeLessThanOrEqual(tokens);
          expectOwnRows(pool);
          pool.releaseWhere((job) => done.includes(job));
        };
        for (const { episode, length, beginning, computed } of arrivals) {
          queue.push(
            jobFor(
              `${episode}`,
              Array.from({ length }, (_, i) => (i < 150 ? beginning : episode) + 1),
            ),
          );
          for (let i = 0; i < computed; i++) turn();
        }
        for (let i = 0; i < 3 * arrivals.length && (queue.length > 0 || pool.busyCount > 0); i++) turn();
        expect([queue.length, pool.busyCount]).toEqual([0, 0]);
      }),
    );
  });
});
