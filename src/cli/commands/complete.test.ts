import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { runForTest } from "../../../test/run-cli.ts";
import { EmbeddedEngine } from "../../engine/embedded-engine.ts";

const model = fileURLToPath(new URL("../../../test/golden/gguf/llama.gguf", import.meta.url));
const prompt = "the reon 12";

const complete = (...more: readonly string[]) =>
  runForTest("complete", "--model", model, "--prompt", prompt, "--max-tokens", "8", "--json", ...more);

interface Completed {
  readonly text: string;
  readonly tokens: readonly number[];
  readonly logprobs: readonly number[];
  readonly promptTokens: number;
}

test("gives text, tokens and the log-probability of each", async () => {
  const { code, json } = await complete("--temperature", "0");
  expect(code).toBe(0);
  const { text, tokens, logprobs } = json as Completed;
  expect(tokens).toHaveLength(8);
  const engine = await EmbeddedEngine.open(model, { threads: 1, tokenBudget: 256, maxSlots: 1 });
  try {
    const all = [...engine.tokenizer.encode(prompt), ...tokens];
    const [row] = await engine.logprobs([
      {
        inputs: Int32Array.from(all.slice(0, -1)),
        targets: Int32Array.from(all.slice(1)),
        weights: new Float32Array(all.length - 1).fill(1),
      },
    ]);
    for (const [i, value] of logprobs.entries()) expect(value).toBeCloseTo(row?.at(i - 8) as number, 4);
    expect(text).toBe(engine.tokenizer.decode(tokens));
  } finally {
    await engine.close();
  }
});

test("is greedy by default, and random by its seed", async () => {
  const tokens = async (...more: readonly string[]) => ((await complete(...more)).json as Completed).tokens;
  expect(await tokens()).toEqual(await tokens("--temperature", "0"));
  const sampled = await tokens("--temperature", "1", "--seed", "4");
  expect(await tokens("--temperature", "1", "--seed", "4")).toEqual(sampled);
  expect(await tokens("--temperature", "1", "--seed", "5")).not.toEqual(sampled);
});

test("says the log-probabilities of the weights that sampled, in fewer bits when asked", async () => {
  const [exact, rounded] = [await complete(), await complete("--weights", "int4")];
  const [a, b] = [exact, rounded].map(({ json }) => (json as Completed).logprobs[0] as number);
  expect(a).not.toBe(b);
  expect(Math.abs((a as number) - (b as number))).toBeLessThan(1);
  expect(await complete("--weights", "int3")).toMatchObject({ code: 2 });
});

test("puts the model's chat template around the prompt when asked", async () => {
  const [plain, chat] = [await complete(), await complete("--chat")];
  expect((chat.json as Completed).promptTokens).toBeGreaterThan((plain.json as Completed).promptTokens + 4);
});

test("refuses what makes no sense", async () => {
  for (const [option, value] of [
    ["temperature", "-1"],
    ["temperature", "warm"],
    ["top-p", "0"],
    ["top-p", ""],
  ])
    expect(await complete(`--${option}`, value as string)).toMatchObject({ code: 2 });
  expect(await runForTest("complete", "--model", model)).toMatchObject({ code: 2 });
  expect(await runForTest("complete", "--model", model, "--prompt", "")).toMatchObject({ code: 2 });
  const long = await runForTest("complete", "--model", model, "--prompt", "x ".repeat(80));
  expect(long).toMatchObject({ code: 1 });
  expect(long.stderr).toContain("leaves no room in a model of 64");
});
