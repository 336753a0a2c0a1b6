import { describe, expect, test } from "vitest";
import { ForagerError } from "../../errors.ts";
import { isBudgetSpent } from "../../shared/budget.ts";
import { silence, testWorld } from "../../shared/server.fixture.ts";
import { keys, organic, serper } from "./web.fixture.ts";

describe("the budget", () => {
  test("in calls stops before a call too many, with an error of its own", async () => {
    const { retriever, server } = await serper(organic, { budget: { maxCalls: 3 } });
    await retriever.retrieve(["a", "b"], 1);
    const error = await retriever.retrieve(["c", "d"], 1).catch((e: unknown) => e);
    expect(isBudgetSpent(error)).toBe(true);
    expect(error).toBeInstanceOf(ForagerError);
    expect((error as Error).message).toMatch(
      /the search budget of 3 calls is spent: 2 calls for \$0.002 were made/,
    );
    expect(server.requests).toHaveLength(2);
    expect(await retriever.retrieve(["a"], 1)).toHaveLength(1);
    expect(await retriever.retrieve(["c"], 1)).toHaveLength(1);
  });

  test("in dollars counts the price of a call", async () => {
    const { retriever } = await serper(organic, { budget: { maxDollars: 0.05 }, pricePerCall: 0.02 });
    await retriever.retrieve(["a"], 1);
    // More than ten results are billed twice.
    await expect(retriever.retrieve(["b"], 11)).rejects.toThrow("the search budget of $0.05 is spent");
    await retriever.retrieve(["b"], 10);
    expect(retriever.spent()).toEqual({ calls: 2, tokens: 0, dollars: 0.04 });
  });

  test("is never exceeded by calls in flight", async () => {
    const { retriever, server } = await serper(organic, { budget: { maxCalls: 5 } });
    const asked = await Promise.allSettled(
      Array.from({ length: 12 }, (_, i) => retriever.retrieve([`q${i}`], 1)),
    );
    expect(asked.filter(({ status }) => status === "fulfilled")).toHaveLength(5);
    expect(server.requests).toHaveLength(5);
  });

  test("gets back calls that the service refused, keeps those whose reply was lost", async () => {
    const refusing = await serper(() => ({ status: 500, text: "" }), { retries: 3 });
    await expect(refusing.retriever.retrieve(["a"], 1)).rejects.toThrow("attempt 4 of 4");
    expect(refusing.retriever.spent().calls).toBe(0);
    const losing = await serper((request, count) => (count < 3 ? silence : organic(request)), {
      timeoutMs: 400,
    });
    await losing.retriever.retrieve(["a"], 1);
    expect(losing.retriever.spent().calls).toBe(3);
    const spent = await serper(() => silence, { timeoutMs: 40, budget: { maxCalls: 2 } });
    const error = await spent.retriever.retrieve(["a"], 1).catch((e: unknown) => e);
    expect(isBudgetSpent(error)).toBe(true);
    expect(spent.server.requests).toHaveLength(2);
  });

  test("gets back what was not sent after another query failed", async () => {
    const { retriever, server } = await serper(() => ({ status: 400, text: "bad" }), { concurrency: 2 });
    await expect(retriever.retrieve(["a", "b", "c", "d", "e"], 1)).rejects.toThrow('got 400: "bad"');
    await expect.poll(() => retriever.spent().calls).toBeLessThanOrEqual(1);
    expect(server.requests.length).toBeLessThanOrEqual(2);
  });

  test("keeps what was on its way when another query failed", async () => {
    const { retriever, server } = await serper(
      async ({ body }) => {
        if ((body as { q: string }).q === "slow") return silence;
        await expect.poll(() => server.requests.length).toBe(2);
        return { status: 400, text: "bad" };
      },
      { concurrency: 2 },
    );
    await expect(retriever.retrieve(["fast", "slow"], 1)).rejects.toThrow('got 400: "bad"');
    await new Promise((resolve) => setTimeout(resolve, 20)); // the aborted query ends
    expect(retriever.spent().calls).toBe(1);
  });

  test("keeps an answer that is too large, gives back what waits for another attempt", async () => {
    const large = await serper(() => ({ text: "x".repeat(17 << 20) }));
    await expect(large.retriever.retrieve(["a"], 1)).rejects.toThrow("expected a reply of at most");
    expect(large.retriever.spent().calls).toBe(1);
    const controller = new AbortController();
    const reason = new Error("enough");
    const world = testWorld(keys);
    const stopped = { ...world, sleep: async () => controller.abort(reason) };
    const { retriever } = await serper(() => ({ status: 500, text: "" }), {}, stopped);
    await expect(retriever.retrieve(["a"], 1, controller.signal)).rejects.toBe(reason);
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(retriever.spent().calls).toBe(0);
  });

  test("counts an answer that cannot be read", async () => {
    const { retriever } = await serper(() => ({ text: "<html>" }));
    await expect(retriever.retrieve(["a"], 1)).rejects.toThrow('expected JSON, got "<html>"');
    expect(retriever.spent().calls).toBe(1);
  });
});
