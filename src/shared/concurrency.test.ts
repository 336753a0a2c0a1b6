import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createLimiter, createPace, onAbort, runTogether, untilAborted } from "./concurrency.ts";

const pause = (ms = 0): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

describe("a limiter", () => {
  test("runs so many at once, first come first served, and goes on after failures", async () => {
    const limiter = createLimiter(2);
    const { signal } = new AbortController();
    let running = 0;
    let most = 0;
    const order: number[] = [];
    const works = Array.from({ length: 8 }, (_, index) =>
      limiter.run(async () => {
        order.push(index);
        most = Math.max(most, ++running);
        await pause(1);
        running--;
        if (index % 3 === 0) throw new Error("failed");
        return index;
      }, signal),
    );
    const ended = await Promise.allSettled(works);
    expect(ended.filter(({ status }) => status === "rejected")).toHaveLength(3);
    expect(order).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    expect(most).toBe(2);
  });

  test("lets go of those that are aborted while they wait", async () => {
    const limiter = createLimiter(1);
    const first = limiter.run(() => pause(10), new AbortController().signal);
    const controller = new AbortController();
    const reason = new Error("enough");
    const waiting = limiter.run(async () => expect.fail("ran"), controller.signal);
    controller.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    await first;
    expect(await limiter.run(async () => 7, new AbortController().signal)).toBe(7);
  });
});

describe("tasks that run together", () => {
  test("keep their order, and never more run than asked for", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 0, max: 30 }),
        fc.integer({ min: 1, max: 5 }),
        async (count, concurrency) => {
          let running = 0;
          const tasks = Array.from({ length: count }, (_, index) => async () => {
            expect(++running).toBeLessThanOrEqual(concurrency);
            await Promise.resolve();
            running--;
            return index;
          });
          expect(await runTogether(tasks, { concurrency, signal: undefined })).toEqual([...tasks.keys()]);
        },
      ),
    );
  });

  test("stop when one fails: the others are aborted and no more are begun", async () => {
    const begun: number[] = [];
    const reasons: unknown[] = [];
    const failure = new Error("failed");
    const tasks = [0, 1, 2, 3].map((index) => async (signal: AbortSignal) => {
      begun.push(index);
      if (index === 0) throw failure;
      await pause(5);
      reasons.push(signal.reason);
    });
    await expect(runTogether(tasks, { concurrency: 2, signal: undefined })).rejects.toBe(failure);
    await pause(20);
    expect([begun, reasons]).toEqual([[0, 1], [failure]]);
  });
});

test("many calls on one signal are no leak", async () => {
  const warnings: Error[] = [];
  const note = (warning: Error): number => warnings.push(warning);
  process.on("warning", note);
  const { signal } = new AbortController();
  await Promise.all(Array.from({ length: 50 }, () => untilAborted(pause(1), signal)));
  await pause(1);
  process.off("warning", note);
  expect(warnings).toEqual([]);
});

test("an abort calls once and in order what still waits for it", () => {
  const controller = new AbortController();
  const called: string[] = [];
  const forgets = ["a", "b", "c", "d"].map((name) =>
    onAbort(controller.signal, () => {
      called.push(name);
      if (name === "b") forgets[2]?.();
    }),
  );
  forgets[0]?.();
  controller.abort();
  onAbort(controller.signal, () => called.push("late"));
  expect(called).toEqual(["b", "d"]);
});

test("a pace spaces calls evenly and does not make up for idle time", async () => {
  let now = 1000;
  const starts: number[] = [];
  const sleep = async (ms: number): Promise<void> => {
    now += ms;
  };
  const pace = createPace(4, { now: () => now, sleep });
  for (let i = 0; i < 3; i++) {
    await pace(new AbortController().signal);
    starts.push(now);
  }
  now += 10_000;
  for (let i = 0; i < 2; i++) {
    await pace(new AbortController().signal);
    starts.push(now);
  }
  expect(starts).toEqual([1000, 1250, 1500, 11_500, 11_750]);
});
