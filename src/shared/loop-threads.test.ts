/** That several threads compute what one does, whoever comes late or fails. */
import { Worker } from "node:worker_threads";
import { afterEach, expect, test, vi } from "vitest";
import { runLoop } from "./loop-threads.ts";
import { startThread } from "./start-thread.ts";
import type { VectorLoop } from "./vector-loop.ts";

vi.mock("./start-thread.ts", async (importOriginal) => {
  const original = await importOriginal<typeof import("./start-thread.ts")>();
  return { startThread: vi.fn(original.startThread) };
});

const loop: VectorLoop<"x" | "y", "a"> = {
  arrays: ["x", "y"],
  scalars: ["a"],
  assignments: [["x", [["x", "*", "a"], "+", "y"]]],
  results: ["x"],
  squares: "y",
};

/** Arrays of uneven lengths, one empty, together large enough for several threads. */
const works = () =>
  [5, 0, 1_500_001, 600_003].map((length, work) => ({
    arrays: {
      x: Float32Array.from({ length }, (_, i) => Math.sin(i + work)),
      y: Float32Array.from({ length }, (_, i) => Math.cos(i * work)),
    },
    scalars: { a: work + 0.5 },
  }));

const bytes = ({ buffer }: Float32Array): Buffer => Buffer.from(buffer);

afterEach(() => vi.mocked(startThread).mockReset());

test("several threads leave the same bits and the same sum as one", async () => {
  const [alone, together] = [works(), works()];
  const sum = await runLoop(loop, alone, 1);
  expect(startThread).not.toHaveBeenCalled();
  // The first call may be over before the other threads have started.
  for (let call = 0; call < 3; call++) expect(await runLoop(loop, together, 3)).toBe(sum);
  for (let call = 1; call < 3; call++) await runLoop(loop, alone, 1);
  for (const [work, { arrays }] of together.entries())
    expect(Buffer.compare(bytes(arrays.x), bytes(alone[work]?.arrays.x as Float32Array))).toBe(0);
  expect(startThread).toHaveBeenCalledTimes(2);
  const squares = together.reduce((all, { arrays }) => all + arrays.y.reduce((s, y) => s + y * y, 0), 0);
  expect(sum / squares).toBeCloseTo(1, 12);
});

test("arrays that are not worth a message are gone through by the caller alone", async () => {
  const [small] = works();
  await runLoop(loop, [small as NonNullable<typeof small>], 2);
  expect(startThread).not.toHaveBeenCalled();
});

/** Takes one piece, and ends instead of doing it; what comes too late for a piece is answered. */
const dyingThread = `
  const { parentPort } = require("node:worker_threads");
  parentPort.on("message", ({ shared: { counts, sums } }) => {
    Atomics.add(counts, 2, 1);
    if (Atomics.add(counts, 0, 1) < sums.length) process.exit(3);
    Atomics.sub(counts, 2, 1);
    parentPort.postMessage("done");
  });`;

test("a thread that ends at a piece fails the call, and the next call has another", async () => {
  vi.resetModules();
  const fresh = await import("./loop-threads.ts");
  const { startThread: start } = await import("./start-thread.ts");
  vi.mocked(start).mockImplementationOnce(() => new Worker(dyingThread, { eval: true }));
  const call = async () => await fresh.runLoop(loop, works(), 2);
  const callUntilTaken = async () => {
    for (;;) await call();
  };
  await expect(callUntilTaken()).rejects.toMatchObject({
    message: "a thread that computes with the others ended with code 3",
    kind: "failed",
  });
  expect(await call()).toBe(await runLoop(loop, works(), 1));
  expect(start).toHaveBeenCalledTimes(2);
});

test("threads that cannot start are told of at the next call, and tried anew at the one after", async () => {
  vi.resetModules();
  const fresh = await import("./loop-threads.ts");
  const { startThread: start } = await import("./start-thread.ts");
  const failing = () => new Worker("throw new Error('no room')", { eval: true });
  vi.mocked(start).mockImplementationOnce(failing);
  const alone = await runLoop(loop, works(), 1);
  expect(await fresh.runLoop(loop, works(), 2)).toBe(alone);
  await new Promise((resolve) => vi.mocked(start).mock.results[0]?.value.once("exit", resolve));
  await expect(fresh.runLoop(loop, works(), 2)).rejects.toMatchObject({
    message: "a thread that computes with the others failed: no room",
    kind: "failed",
  });
  expect(await fresh.runLoop(loop, works(), 2)).toBe(alone);
  expect(start).toHaveBeenCalledTimes(2);
});
