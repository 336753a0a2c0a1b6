import fc from "fast-check";
import { expect, test } from "vitest";
import { Gate } from "./gate.ts";

const never = new AbortController().signal;

test("runs no more than its number at one time, all of them, in the order of arrival", async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 4 }), fc.array(fc.nat(3)), async (concurrency, waits) => {
      const gate = new Gate(concurrency, waits.length);
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
  const gate = new Gate(1, 1);
  let finish = (): void => undefined;
  const first = gate.run(() => new Promise<void>((resolve) => (finish = resolve)), never);
  const controller = new AbortController();
  const second = gate.run(async () => "ran", controller.signal);
  expect(gate.isFull).toBe(true);
  controller.abort(new Error("gone"));
  await expect(second).rejects.toThrow("gone");
  expect(gate.isFull).toBe(false);
  const third = gate.run(async () => "third", never);
  finish();
  await first;
  expect(await third).toBe("third");
  expect(gate.running).toBe(0);
  await expect(gate.run(async () => 1, AbortSignal.abort(new Error("late")))).rejects.toThrow("late");
  expect(gate.running).toBe(0);
});
