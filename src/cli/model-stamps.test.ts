import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parseRecipe } from "../config/load-recipe.ts";
import { endpointOptions } from "../rollout/endpoint/model-server.fixture.ts";
import { modelStamp, modelsAsked, stampOf } from "./model-stamps.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "forager-stamps-"));
});
afterAll(() => rm(folder, { recursive: true }));

const served = (given: Readonly<Record<string, unknown>>) =>
  endpointOptions("http://127.0.0.1:1", { profile: "vllm", ...given });

test("a served model is the same under another budget, but not when it is asked otherwise", async () => {
  const stamp = await stampOf([served({ budget: { maxCalls: 1 } })]);
  expect(await stampOf([served({ budget: { maxCalls: 9 }, retries: 0 })])).toBe(stamp);
  expect(await stampOf([served({ thinking: false })])).not.toBe(stamp);
});

test("a recording whose file has changed is another model", async () => {
  const file = join(folder, "policy.jsonl");
  await writeFile(file, "one");
  const stamp = await stampOf([{ type: "replay", file }]);
  expect(await stampOf([{ type: "replay", file }])).toBe(stamp);
  await writeFile(file, "other");
  expect(await stampOf([{ type: "replay", file }])).not.toBe(stamp);
});

test("generator, ranker and judge are asked beside the agent, each as it is named", async () => {
  const world = "name: x\ndata: { type: world, world: { name: lab } }\nmodel: smollm2-135m\n";
  const url = "url: http://127.0.0.1:1, model: m, profile: vllm";
  const recipe = (text: string) => parseRecipe(`${world}${text}`, { file: join(folder, "recipe.yaml") });
  const text = `environment: { mode: planner, codec: planner, prompt: planner }
generator: { model: { type: openai, ${url}, thinking: false } }
planner: { judge: { type: model, model: qwen3-0.6b } }
`;
  const planner = recipe(text);
  expect(await modelsAsked({ recipe: planner, model: "smollm2-135m" })).toEqual([
    "smollm2-135m",
    expect.objectContaining({ type: "openai", thinking: false }),
    "qwen3-0.6b",
  ]);
  const source = { recipe: planner, model: "smollm2-135m" };
  const terse = recipe(text.replace("model: qwen3-0.6b", "model: qwen3-0.6b, maxTokens: 8"));
  expect(await modelStamp(source)).not.toBe(await modelStamp({ ...source, recipe: terse }));
  await mkdir(join(folder, "weights"), { recursive: true });
  const ranked = recipe("ranker: { type: generative, model: weights, candidates: 10 }\n");
  const asked = await modelsAsked({ recipe: ranked, model: "smollm2-135m" });
  expect(asked).toEqual(["smollm2-135m", join(folder, "weights")]);
  const stamp = await stampOf(asked);
  await writeFile(join(folder, "weights", "model.gguf"), "new");
  expect(await stampOf(asked)).not.toBe(stamp);
});
