/** Semantics lock of a rollout: how an episode ends when the context is full or the world fails. Change it only by decision. */
import { describe, expect, test } from "vitest";
import { PolicyError, RetrieverError } from "../errors.ts";
import type { Policy } from "./policy.ts";
import { play, prompt } from "./rollout.fixture.ts";
import { scriptedPolicy } from "./scripted-policy.ts";
import { tokenCount } from "./trajectory-view.ts";

describe("a context that is full", () => {
  test("before the first turn ends the episode; the prompt is whole", async () => {
    const trajectory = await play({ turns: ["<answer>b</answer>"], contextLength: 13 });
    expect(trajectory).toMatchObject({ stopReason: "contextLimit", turns: [] });
    expect(trajectory.segments.map((segment) => segment.text)).toEqual([prompt]);
  });

  test("cuts a turn short and ends the episode", async () => {
    const trajectory = await play({ turns: ["<answer>bcd</answer>"], contextLength: 16 });
    expect(trajectory).toMatchObject({ stopReason: "contextLimit", answer: undefined });
    expect(trajectory.segments[1]?.text).toBe("<answer>bc");
    expect(tokenCount(trajectory)).toBe(16);
  });

  test("does not spoil an answer that just fits", async () => {
    const trajectory = await play({ turns: ["<answer>b</answer>"], contextLength: 16 });
    expect(trajectory).toMatchObject({ stopReason: "answer", answer: "b" });
  });

  test("leaves out an observation after which nothing could be said; the search stays on record", async () => {
    const turns = ["<search>a</search>", "<answer>b</answer>"];
    const full = await play({ turns, contextLength: 13 + 3 + 6 });
    expect(full).toMatchObject({
      stopReason: "contextLimit",
      turns: [{ action: { query: "a" }, passages: [] }],
    });
    expect(full.segments).toHaveLength(2);
    const open = await play({ turns, contextLength: 13 + 3 + 6 + 3 });
    expect(open.stopReason).toBe("answer");
  });

  test("a turn that reaches its own limit is an invalid turn, not a full context", async () => {
    const trajectory = await play({
      turns: ["a long thought", "<answer>b</answer>"],
      environment: { maxTurnTokens: 4 },
      contextLength: 1000,
    });
    expect(trajectory.segments[1]?.text).toBe("a lo");
    expect(trajectory).toMatchObject({
      stopReason: "answer",
      turns: [{ action: { reason: "noAction" } }, {}],
    });
  });
});

describe("failures of the world", () => {
  test("a failing retriever marks the trajectory", async () => {
    const trajectory = await play({
      turns: ["<search>a</search>"],
      found: { a: new RetrieverError("the server is down") },
    });
    expect(trajectory).toMatchObject({
      stopReason: "retrieverFailure",
      failure: "the server is down",
      answer: undefined,
      turns: [],
    });
    expect(trajectory.segments.map((segment) => segment.source)).toEqual(["prompt", "policy"]);
  });

  test("a failing policy marks the trajectory", async () => {
    const trajectory = await play({ turns: ["hm"] });
    expect(trajectory).toMatchObject({
      stopReason: "policyFailure",
      failure: expect.stringContaining("no turn 1"),
    });
    expect(trajectory.turns).toHaveLength(1);
  });

  test("a policy that answers nothing is a failing policy", async () => {
    const policy: Policy = { identity: { type: "x", model: "x" }, complete: async () => [] };
    expect(await play({ policy })).toMatchObject({
      stopReason: "policyFailure",
      failure: expect.stringMatching(/got 0/),
    });
  });

  test("an abort ends the episode between turns and within them", async () => {
    expect(await play({ turns: ["hm"], signal: AbortSignal.abort() })).toMatchObject({
      stopReason: "aborted",
    });
    const controller = new AbortController();
    const policy = scriptedPolicy(() => {
      controller.abort();
      throw new PolicyError("interrupted");
    });
    expect(await play({ policy, signal: controller.signal })).toMatchObject({ stopReason: "aborted" });
  });

  test("a defect of the program is thrown", async () => {
    const policy = scriptedPolicy(() => {
      throw new TypeError("a bug");
    });
    await expect(play({ policy })).rejects.toThrow("a bug");
  });

  test("log-probabilities that do not match the tokens are a defect", async () => {
    const usage = { promptTokens: 1, completionTokens: 1 };
    const policy: Policy = {
      identity: { type: "x", model: "x" },
      complete: async () => [{ text: "a", tokens: [97], logprobs: [], finishReason: "stop", usage }],
    };
    await expect(play({ policy })).rejects.toThrow(/0 log-probabilities belong to 1 tokens/);
  });
});
