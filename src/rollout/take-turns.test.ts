import { expect, it } from "vitest";
import type { Completion, Policy } from "./policy.ts";
import { takeTurns } from "./take-turns.ts";

const options = { maxTokens: 1, temperature: 0, topP: 1, topK: 0, stop: [] };
const tick = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 5));

/** A policy whose completions end when they are told to. */
function held(name: string, log: string[]) {
  const ends: (() => void)[] = [];
  const policy: Policy = {
    identity: { type: "test", model: name },
    complete: async ([context]) => {
      log.push(`${name} ${context?.text}`);
      if (context?.text === "fail") throw new Error("failed");
      await new Promise<void>((end) => ends.push(end));
      return [] as Completion[];
    },
  };
  return { policy, end: () => ends.shift()?.() };
}

it("starts what waited together, once the other policy has nothing under way", async () => {
  const log: string[] = [];
  const [a, b] = [held("a", log), held("b", log)];
  const [first, second] = takeTurns(a.policy, b.policy);
  const ask = (policy: Policy, text: string) => policy.complete([{ text, seed: 1 }], options);
  const work = [ask(first, "1"), ask(second, "2"), ask(first, "3"), ask(second, "4")];
  await tick();
  expect(log).toEqual(["a 1", "a 3"]);
  a.end();
  await tick();
  expect(log).toEqual(["a 1", "a 3"]);
  a.end();
  await tick();
  expect(log).toEqual(["a 1", "a 3", "b 2", "b 4"]);
  work.push(ask(first, "5"));
  b.end();
  b.end();
  await tick();
  expect(log.at(-1)).toBe("a 5");
  a.end();
  await Promise.all(work);
});

it("keeps the turn of who goes on at once, and goes on after a failure", async () => {
  const log: string[] = [];
  const [a, b] = [held("a", log), held("b", log)];
  const [first, second] = takeTurns(a.policy, b.policy);
  const ask = (policy: Policy, text: string) => policy.complete([{ text, seed: 1 }], options);
  const again = ask(first, "1").then(() => ask(first, "2"));
  const other = ask(second, "fail");
  await tick();
  a.end();
  await tick();
  expect(log).toEqual(["a 1", "a 2"]);
  a.end();
  await again;
  await expect(other).rejects.toThrow("failed");
  const last = ask(first, "3");
  await tick();
  expect(log.at(-1)).toBe("a 3");
  a.end();
  await last;
});
