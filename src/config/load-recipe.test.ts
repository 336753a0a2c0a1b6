import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { FileError } from "../errors.ts";
import { loadRecipe, parseRecipe, resolvedYaml } from "./load-recipe.ts";
import { files, messageOf, parse, yaml } from "./recipe.fixture.ts";

describe("a recipe that is right", () => {
  test("gets every default filled in", () => {
    const recipe = parse(yaml);
    expect(recipe.seed).toBe(1);
    expect(recipe.engine).toMatchObject({ type: "embedded", cacheMemory: "4GB" });
    expect(recipe.stages[1]).toMatchObject({ name: "grpo", steps: 7, sampling: { temperature: 1 } });
  });

  test("comes out of its resolved form unchanged", () => {
    for (const recipe of [parse(yaml), parse(files)])
      expect(parseRecipe(resolvedYaml(recipe), { file: "/elsewhere/recipe.yaml" })).toEqual(recipe);
  });

  test("may use aliases for what repeats", () => {
    const text = yaml
      .replace("schedule: { learningRate: 0.001 }", "schedule: &s { learningRate: 0.001 }")
      .replace("schedule: { learningRate: 0.0001 }", "schedule: *s");
    expect(parse(text).stages.map((stage) => stage.schedule.learningRate)).toEqual([0.001, 0.001]);
  });
});

describe("the recipe that a run keeps", () => {
  test("folds marks where it records no folding, as before there was a choice", async () => {
    const folder = await mkdtemp(join(tmpdir(), "forager-run-recipe-"));
    const path = join(folder, "recipe.yaml");
    const foldingOf = async (text: string, ...overrides: string[]): Promise<unknown> => {
      await writeFile(path, text);
      const { retriever } = await loadRecipe(path, { overrides });
      return retriever.type === "bm25" ? retriever.folding : retriever.type;
    };
    const resolved = resolvedYaml(parse(yaml));
    expect(resolved).toContain("  folding: letters\n");
    const before = resolved.replace("  folding: letters\n", "");
    expect(await foldingOf(before)).toBe("letters");
    await writeFile(join(folder, "contract.json"), "{}");
    expect(await foldingOf(before)).toBe("marks");
    expect(await foldingOf(resolved)).toBe("letters");
    expect(await foldingOf(before, "retriever.folding=letters")).toBe("letters");
    expect(await foldingOf(resolvedYaml(parse(files)))).toBe("index");
    await rm(folder, { recursive: true });
  });
});

describe("overrides", () => {
  test.each([
    ["seed=3", { seed: 3 }],
    ["environment.k=5", { environment: { k: 5 } }],
    ["stages.1.steps=3", { stages: [{ steps: 5 }, { steps: 3 }] }],
    ["stages.grpo.steps=3", { stages: [{ steps: 5 }, { steps: 3 }] }],
    ["stages.grpo.algorithm.groupSize=4", { stages: [{}, { algorithm: { groupSize: 4 } }] }],
    ["checkpoint={keep: 9}", { checkpoint: { keep: 9 } }],
    ["name=other=1", undefined],
  ])("%s goes through the schema", (override, expected) => {
    if (expected === undefined) expect(messageOf(yaml, override)).toContain("--set name=other=1");
    else expect(parse(yaml, override)).toMatchObject(expected);
  });

  test("may set a key of a section that the recipe leaves out", () => {
    expect(parse(yaml, "engine.threads=1").engine).toMatchObject({ type: "embedded", threads: 1 });
    expect(messageOf(yaml, "engine.thread=1")).toContain(
      'unknown key "engine.thread"; did you mean "threads"?',
    );
  });

  test("the last of several wins", () => {
    expect(parse(yaml, "seed=3", "seed=4").seed).toBe(4);
  });

  test.each([
    ["seed", "--set seed: expected key.key=value"],
    ["=3", "--set =3: expected key.key=value"],
    ["a..b=3", "--set a..b=3: expected key.key=value"],
    ["environment.kk=3", '--set environment.kk=3: unknown key "environment.kk"'],
    [
      "stages.grpo.stepz=3",
      '--set stages.grpo.stepz=3: unknown key "stages.grpo.stepz"; did you mean "steps"?',
    ],
    [
      "algorithm.groupSize=3",
      '--set algorithm.groupSize=3: unknown key "algorithm"; it is a key of a stage: stages.grpo.algorithm',
    ],
    ["nowhere.at.all=3", '--set nowhere.at.all=3: unknown key "nowhere"; known: name, seed'],
    ["stages.gpro.steps=3", 'none named "gpro"; did you mean "grpo"?'],
    ["stages.7.steps=3", "--set stages.7.steps=3: stages has 2 entries (0 to 1)"],
    ["environment.k=[", "--set environment.k=[:1: not valid YAML"],
    ["seed.x=1", undefined],
    ["environment.k=three", '--set environment.k=three: "environment.k": expected a number, got "three"'],
  ])("%s says what is wrong", (override, expected) => {
    if (expected === undefined)
      expect(messageOf(`seed: 1\n${yaml}`, override)).toContain("seed is 1 and has no key");
    else expect(messageOf(yaml, override)).toContain(expected);
  });
});

describe("a recipe that is wrong says where and what", () => {
  test.each([
    ["an empty file", "", "/recipes/small.yaml: the recipe is empty"],
    ["only a comment", "# nothing\n", "the recipe is empty"],
    ["a list", "- 1\n", "/recipes/small.yaml:1: a recipe is a mapping"],
    ["broken YAML", "name: [a\nseed: 1\n", /^\/recipes\/small\.yaml:\d: not valid YAML/],
    ["a key twice", `${yaml}name: again\n`, '/recipes/small.yaml:21: the key "name" stands twice'],
    ["two documents", `${yaml}---\nname: x\n`, "not valid YAML"],
    ["an unknown tag", yaml.replace("small", "!!js/function small"), "not valid YAML"],
    ["an alias of nothing", yaml.replace("small", "*nothing"), "/recipes/small.yaml"],
    [
      "aliases that multiply",
      `a: &a [1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c]\n`,
      "aliases expand beyond reason",
    ],
    [
      "an unknown key",
      yaml.replace("  k: 2", "  kk: 2"),
      '/recipes/small.yaml:6: unknown key "environment.kk"',
    ],
    ["a mistyped key", yaml.replace("  maxTurnTokens", "  maxTurnToken"), 'did you mean "maxTurnTokens"?'],
    [
      "an unknown key at the top",
      yaml.replace("stages:", "stagse:"),
      '/recipes/small.yaml:11: unknown key "stagse"; did you mean "stages"? (and 1 more: stages)',
    ],
    [
      "a wrong type",
      yaml.replace("  k: 2", "  k: two"),
      '/recipes/small.yaml:6: "environment.k": expected a number',
    ],
    ["a fraction", yaml.replace("  k: 2", "  k: 2.5"), '"environment.k": expected a whole number, got 2.5'],
    ["a number too small", yaml.replace("  k: 2", "  k: 0"), "expected a number of at least 1, got 0"],
    [
      "a number too large",
      yaml.replace("layers: 1", "layers: 500"),
      "expected a number of at most 200, got 500",
    ],
    [
      "a missing key",
      yaml.replace("    steps: 7\n", ""),
      '/recipes/small.yaml:16: "stages.grpo.steps" is missing',
    ],
    [
      "an unknown variant",
      yaml.replace("type: world", "type: wrld"),
      '"data.type": expected one of "world", "files", got "wrld"; did you mean "world"?',
    ],
    ["a missing variant", yaml.replace("  type: world\n", ""), '"data.type" is missing; expected one of'],
    [
      "an unknown choice",
      yaml.replace("  k: 2", "  codec: serach-r1"),
      'got "serach-r1"; did you mean "search-r1"?',
    ],
    [
      "no stages",
      yaml.replace(/stages:[\s\S]*/, "stages: []\n"),
      '"stages": a fresh model knows nothing; give at least one stage',
    ],
    ["a bad name", yaml.replace("small", "Small Name"), '"name": expected lower-case letters'],
    [
      "null for a mapping",
      yaml.replace("environment:\n  k: 2\n  maxTurnTokens: 16\n  maxObservationTokens: 40", "environment:"),
      '"environment": expected a mapping',
    ],
    ["paths of a wrong type", files.replace("passages.jsonl", "7"), '"data.corpus": expected text or a list'],
  ])("%s", (_name, text, expected) => {
    expect(messageOf(text)).toMatch(typeof expected === "string" ? asPattern(expected) : expected);
  });

  test("in one line", () => {
    expect(messageOf("name: x\nfoo: 1\n")).not.toContain("\n");
  });

  test("a file that is missing or a folder", async () => {
    const folder = await mkdtemp(join(tmpdir(), "forager-recipe-"));
    await expect(loadRecipe(join(folder, "no.yaml"))).rejects.toThrow(FileError);
    await expect(loadRecipe(folder)).rejects.toThrow(/it is a folder/);
    await writeFile(join(folder, "r.yaml"), yaml);
    expect((await loadRecipe(join(folder, "r.yaml"))).name).toBe("small");
    await rm(folder, { recursive: true });
  });
});

describe("rules that span several options", () => {
  test.each([
    [
      "two stages of one name",
      yaml.replace("name: grpo", "name: warm-up"),
      '/recipes/small.yaml:17: "stages.1.name": two stages are named "warm-up"',
    ],
    [
      "turn and observation beyond the context",
      yaml.replace("maxTurnTokens: 16", "maxTurnTokens: 90"),
      "one turn (90) and one observation (40) need more than 128 tokens",
    ],
    [
      "width and heads that do not match",
      yaml.replace("width: 16", "width: 17"),
      "width must be a multiple of heads",
    ],
    [
      "demonstrations without plans",
      files.replace(
        "{ type: reinforcement, name: grpo, steps: 1, questionsPerStep: 1, schedule",
        "{ type: supervised, name: sft, steps: 1, schedule",
      ),
      "the teacher plan follows plans, which only questions of built-in worlds have",
    ],
    ["a model of an unknown kind", files.replace("../model", "{ type: fresch }"), 'did you mean "fresh"?'],
    ["a model that is a number", files.replace("../model", "7"), '"model": expected'],
    ["a model without a name", files.replace("../model", '""'), '"model.source"'],
  ])("%s", (_name, text, expected) => {
    expect(messageOf(text)).toContain(expected);
  });
});

function asPattern(text: string): RegExp {
  return new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
}
