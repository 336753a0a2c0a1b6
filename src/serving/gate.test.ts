import fc from "fast-check";
import { expect, test } from "vitest";
import { Gate } from "./gate.ts";

const until = async (condition: () => boolean): Promise<void> => {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
};

const never = new AbortController().signal;

test("runs no more than its number at one time, all of them, in the order of arrival", async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 4 }), fc.array(fc.nat(3)), async (concurrency, waits) => {
      const gate = new Gate(concurrency, waits.length, () => 0);
      const started: number[] = [];
      let most = 0;
      const results = await Promise.allSettled(
        waits.map((turns, number) =>
          gate.run(async () => {
            started.push(number);
            most = Math.max(most, gate.running);
            for (let turn = 0; turn < turns; turn++) await Promise.resolve();
            if (turns === 3) throw new Error("failed");
            return number;
          }, never),
        ),
      );
      expect(started).toEqual(waits.map((_, number) => number));
      expect(most).toBeLessThanOrEqual(concurrency);
      expect(results.map(({ status }) => status)).toEqual(
        waits.map((turns) => (turns === 3 ? "rejected" : "fulfilled")),
      );
      expect([gate.running, gate.waiting]).toEqual([0, 0]);
    }),
  );
});

test("lets go of who stops waiting, and of no place", async () => {
  const gate = new Gate(1, 1, () => 0);
  let finish = (): void => undefined;
  const first = gate.run(() => new Promise<void>((resolve) => (finish = resolve)), never);
  const controller = new AbortController();
  const second = gate.run(async () => "ran", controller.signal);
  expect(gate.isFull).toBe(true);
  controller.abort(new Error("gone"));
  await expect(second).rejects.toThrow("gone");
  expect(gate.isFull).toBe(false);
  await until(() => gate.running === 1);
  const third = gate.run(async () => "third", never);
  expect(gate.waiting).toBe(1);
  finish();
  await first;
  expect(await third).toBe("third");
  expect(gate.running).toBe(0);
  await expect(gate.run(async () => 1, AbortSignal.abort(new Error("late")))).rejects.toThrow("late");
  expect(gate.running).toBe(0);
});

test("lets the event loop turn between calls that compute for longer than a slice", async () => {
  let time = 0;
  const gate = new Gate(8, 100, () => time);
  let turns = 0;
  const count = (): void => {
    turns++;
    timer = setImmediate(count);
  };
  let timer = setImmediate(count);
  const seen: number[] = [];
  const compute = async (): Promise<void> => {
    time += 5;
    seen.push(turns);
  };
  await Promise.all(Array.from({ length: 10 }, () => gate.run(compute, never)));
  clearImmediate(timer);
  expect(new Set(seen).size).toBe(10);
});
