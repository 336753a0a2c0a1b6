/** What values of a recipe come to: paths, models, sizes, what is left out. */
import { resolve } from "node:path";
import { expect, test } from "vitest";
import { defaultCacheMemory } from "../engine/cache-budget.ts";
import { loraTargets } from "../engine/lora-options.ts";
import { byteSize } from "../shared/byte-size.ts";
import { parseRecipe, resolvedYaml } from "./load-recipe.ts";
import { files, messageOf, parse, yaml } from "./recipe.fixture.ts";

test("a recipe has its relative paths resolved from its own folder, those of overrides from the current one", () => {
  const { data, model, retriever } = parse(files, "data.questions.evaluation=d.jsonl");
  expect(data).toMatchObject({
    corpus: "/recipes/passages.jsonl",
    questions: { train: ["/recipes/a.jsonl", "/recipes/sub/b.jsonl"], evaluation: "/here/d.jsonl" },
  });
  expect(model).toEqual({ type: "pretrained", source: resolve("/model") });
  expect(retriever).toMatchObject({ path: "/abs/index" });
  const elsewhere = parse(
    files,
    "retriever={type: lance, uri: 's3://bucket/wiki', encoder: {model: hf:a/b}}",
  );
  expect(elsewhere.retriever).toMatchObject({ uri: "s3://bucket/wiki", encoder: { model: "hf:a/b" } });
});

test.each([
  ["smollm2-135m", "smollm2-135m"],
  ["hf:owner/name@v1", "hf:owner/name@v1"],
  ["models/small.gguf", "/here/models/small.gguf"],
  ["./smollm2-135m", "/here/smollm2-135m"],
  ["/abs/model", "/abs/model"],
  ["{type: pretrained, source: a}", "/here/a"],
])("--set model=%s names a model that exists", (text, source) => {
  expect(parse(files, `model=${text}`).model).toEqual({ type: "pretrained", source });
  expect(parse(yaml, `model=${text}`).model).toEqual({ type: "pretrained", source });
});

test("a recipe has the paths of its data start at data.folder, which an override may move as a whole", () => {
  const text = files.replace("  type: files\n", "  type: files\n  folder: sub\n");
  const pathsOf = (...overrides: string[]) => {
    const { data, retriever } = parse(text, ...overrides);
    expect(retriever).toMatchObject({ path: "/abs/index" });
    return data;
  };
  expect(pathsOf()).toMatchObject({ folder: "/recipes/sub", corpus: "/recipes/sub/passages.jsonl" });
  expect(pathsOf("data.folder=mine", "data.questions.evaluation=d.jsonl")).toMatchObject({
    folder: "/here/mine",
    corpus: "/here/mine/passages.jsonl",
    questions: { train: ["/here/mine/a.jsonl", "/here/mine/sub/b.jsonl"], evaluation: "/here/d.jsonl" },
  });
  expect(parseRecipe(resolvedYaml(parse(text)), { file: "/elsewhere/r.yaml" })).toEqual(parse(text));
});

test("bounds the memory of the sampler's cache by bytes or by a size with a unit, 4GB where it says nothing", () => {
  expect(byteSize(embedded(yaml).cacheMemory)).toBe(defaultCacheMemory);
  expect(byteSize(embedded(yaml, "engine.cacheMemory=500MB").cacheMemory)).toBe(5e8);
  expect(byteSize(embedded(yaml, "engine.cacheMemory=1000000").cacheMemory)).toBe(1e6);
  expect(messageOf(yaml, "engine.cacheMemory=much")).toContain("such as 2GB");
});

test("trains adapters where engine.lora says so, of rank 16 on all projections where it says no more", () => {
  expect(embedded(files).lora).toBeUndefined();
  expect(embedded(files, "engine.lora={}").lora).toEqual({ rank: 16, alpha: 32, targets: loraTargets });
  expect(embedded(files, "engine.lora.rank=4", "engine.lora.targets=[v_proj]").lora).toEqual({
    rank: 4,
    alpha: 32,
    targets: ["v_proj"],
  });
  expect(messageOf(files, "engine.lora.targets=[v_proj, v_proj]")).toContain("a target is named twice");
  expect(messageOf(files, "engine.lora.targets=[lm_head]")).toContain("engine.lora.targets");
  expect(messageOf(files, "engine.lora.dropout=0.1")).toContain('unknown key "engine.lora.dropout"');
  expect(messageOf(yaml, "engine.lora={}")).toContain("adapters are trained beside the weights of a model");
});

function embedded(...given: Parameters<typeof parse>) {
  const { engine } = parse(...given);
  if (engine.type !== "embedded") throw new Error("the embedded engine was expected");
  return engine;
}

test("what a teacher knows by heart must be asked in every split", () => {
  const memory = "stages.warm-up.teacher.habits={ memory: 0.5 }";
  expect(messageOf(yaml, memory)).toContain("set data.world.familiar of the world lab, or memory to 0");
  const lab = "data.world={ name: lab, relations: 2, hops: [1], familiar: 20 }";
  expect(parse(yaml, memory, lab).data).toMatchObject({ world: { familiar: 20 } });
});
