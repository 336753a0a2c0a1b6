import { appendFile, mkdtemp, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { PolicyError } from "../../errors.ts";
import { BudgetSpentError } from "../../shared/budget.ts";
import type { Completion, Context, Policy, SamplingOptions } from "../policy.ts";
import { recordPolicy } from "./record-policy.ts";
import { replayPolicy } from "./replay-policy.ts";

const options: SamplingOptions = { maxTokens: 9, temperature: 1, topP: 1, topK: 0, stop: ["</answer>"] };
const context = (text: string, seed = 1): Context => ({ text, seed, episode: `nq/${text}#0` });

/** Counts its calls; fails for "bad" and has no budget for "dear". */
function counting(): Policy & { calls: number } {
  const policy = {
    identity: { type: "counting", model: "a" },
    calls: 0,
    complete: async (contexts: readonly Context[]): Promise<Completion[]> =>
      contexts.map(({ text }) => {
        if (text === "bad") throw new PolicyError("the server is down");
        if (text === "dear")
          throw new BudgetSpentError("policy", "spent", { calls: 1, tokens: 0, dollars: 0 });
        const usage = { promptTokens: 3, completionTokens: 2, cachedTokens: 1, dollars: 0.25 };
        return {
          text: `${text} ${policy.calls++}`,
          tokens: [1, 2],
          logprobs: [-0.5, 0],
          finishReason: "stop",
          usage,
        };
      }),
  };
  return policy;
}

async function newFile(name = "policy.jsonl"): Promise<string> {
  return join(await mkdtemp(join(tmpdir(), "forager-policy-")), "new", name);
}

test.each(["policy.jsonl", "policy.jsonl.gz"])(
  "%s gives back what was recorded, without the policy",
  async (name) => {
    const file = await newFile(name);
    const recording = await recordPolicy(counting(), file);
    const asked = ["a", "b", "a"].map((text) => context(text));
    const said = await recording.complete(asked, options);
    await recording.close();
    const replay = await replayPolicy(file);
    expect(replay.identity).toEqual({ type: "counting", model: "a" });
    expect(await replay.complete(asked, options)).toEqual(said);
    // The last answer again, whoever asks.
    const [again] = await replay.complete([{ ...context("a"), episode: "other" }], options);
    expect(again).toEqual(said[2]);
  },
);

test("an error is given back, a budget that was spent leaves no trace", async () => {
  const file = await newFile();
  const recording = await recordPolicy(counting(), file);
  await expect(recording.complete([context("bad")], options)).rejects.toThrow("the server is down");
  await expect(recording.complete([context("dear")], options)).rejects.toThrow(BudgetSpentError);
  await recording.close();
  const replay = await replayPolicy(file);
  await expect(replay.complete([context("bad")], options)).rejects.toThrow(
    new PolicyError("the server is down"),
  );
  await expect(replay.complete([context("dear")], options)).rejects.toThrow(
    "nothing of this question was recorded",
  );
});

test("what was not recorded is an error that names the question", async () => {
  const file = await newFile();
  const recording = await recordPolicy(counting(), file);
  await recording.complete([context("a")], options);
  await recording.close();
  const replay = await replayPolicy(file);
  const other: [Context, SamplingOptions][] = [
    [context("a", 2), options],
    [{ ...context("a"), tokens: [1] }, options],
    [context("a"), { ...options, maxTokens: 8 }],
    [context("a"), { ...options, temperature: 0 }],
    [context("a"), { ...options, stop: [] }],
  ];
  for (const [asked, sampling] of other)
    await expect(replay.complete([asked], sampling)).rejects.toThrow(
      /no completion for question nq\/a after "a": 1 completions of it were, with another/,
    );
  await expect(replay.complete([context("c")], options)).rejects.toThrow(
    'no completion for question nq/c after "c": nothing of this question was recorded',
  );
});

test("sessions of one policy go on in one file, those of another or with other settings are refused", async () => {
  const file = await newFile();
  for (const text of ["a", "b"]) {
    const recording = await recordPolicy(counting(), file, {
      contextLength: 64,
      tokenizer: "abc",
      hasTemplate: true,
    });
    await recording.complete([context(text)], options);
    await recording.close();
  }
  const replay = await replayPolicy(file, "abc");
  expect(replay).toMatchObject({ contextLength: 64, hasTemplate: true });
  expect(await replay.complete([context("a"), context("b")], options)).toHaveLength(2);
  await expect(replayPolicy(file)).rejects.toThrow(
    "expected the tokenizer abc, with which it was recorded, got no tokenizer",
  );
  await expect(recordPolicy(counting(), file)).rejects.toThrow(
    "differ in contextLength (64 and none), tokenizer (abc and none), hasTemplate",
  );
});

test("a line that was cut short is left out and said; damage elsewhere, and other files, are refused", async () => {
  const file = await newFile();
  const recording = await recordPolicy(counting(), file);
  await recording.complete([context("a")], options);
  await recording.close();
  await appendFile(file, '{"call":1,"key":"');
  const replay = await replayPolicy(file);
  expect(replay.warnings).toEqual([expect.stringContaining("the last line is cut short")]);
  const again = await recordPolicy(counting(), file);
  await again.complete([context("b")], options);
  await again.close();
  expect((await readFile(file, "utf8")).trimEnd().split("\n")).toHaveLength(4);
  await writeFile(file, '{"recording":"forager-retrieval","version":1}\n');
  await expect(replayPolicy(file)).rejects.toThrow(/:1: expected a line of a recording/);
  await writeFile(file, "");
  await expect(replayPolicy(file)).rejects.toThrow("expected a recording, got an empty file");
  await expect(replayPolicy(`${file}.none`)).rejects.toThrow("no such recording");
});
