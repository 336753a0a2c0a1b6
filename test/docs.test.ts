/**
 * The pages say what is true: recipe fragments parse, fields shown with defaults have those defaults, metric keys exist,
 * command lines are understood, and links between files lead somewhere.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { algorithmOptionsSchema } from "../src/algorithm/options.ts";
import { commands } from "../src/cli/commands.ts";
import { findCommand, parseCommand } from "../src/cli/parse.ts";
import { recipeSchema } from "../src/config/recipe.ts";
import { environmentOptionsSchema } from "../src/environment/environment-options.ts";
import { isMetricKey, metricKeys } from "../src/reporting/metric-keys.ts";
import { bm25OptionsSchema } from "../src/retrieval/lexical/bm25.ts";

const root = join(import.meta.dirname, "..");
const algorithmPages = pages("docs/algorithms");
const allPages = [
  ...pages("."),
  ...pages("docs"),
  ...algorithmPages,
  ...pages("docs/decisions"),
  ...pages("docs/reproductions"),
  "docs/real-runs/smollm2-135m/README.md",
];

function pages(folder: string): string[] {
  return readdirSync(join(root, folder))
    .filter((file) => file.endsWith(".md"))
    .map((file) => (folder === "." ? file : `${folder}/${file}`));
}

function read(page: string): string {
  return readFileSync(join(root, page), "utf8");
}

/** The YAML fragments of a page, each an object with top-level keys of a recipe. */
function fragments(page: string): Record<string, unknown>[] {
  return [...read(page).matchAll(/```yaml\n([\s\S]*?)```/g)].map(
    ([, text]) => parse(text as string) as Record<string, unknown>,
  );
}

function fragment(page: string): Record<string, unknown> {
  const [first] = fragments(page);
  if (!first) throw new Error(`${page} has no YAML fragment`);
  return first;
}

const metricRooms = [...new Set(Object.keys(metricKeys).map((key) => key.split("/")[0] as string))];
const keyPattern = new RegExp(`\`((?:${metricRooms.join("|")})/\\w+)\``, "g");

function namedKeys(page: string): string[] {
  return [...read(page).matchAll(keyPattern)].map((match) => match[1] as string);
}

describe.each(algorithmPages)("%s", (page) => {
  test("shows parts of recipes that the schema accepts", () => {
    const shape: Record<string, { parse(value: unknown): unknown }> = recipeSchema.shape;
    for (const shown of fragments(page))
      for (const [key, value] of Object.entries(shown)) {
        expect(shape).toHaveProperty(key);
        shape[key]?.parse(value);
      }
  });

  test("names metric keys to watch", () => {
    expect(namedKeys(page).length).toBeGreaterThan(0);
  });
});

test.each(allPages)("%s names only metric keys that exist, of every room", (page) => {
  expect(namedKeys(page).filter((key) => !isMetricKey(key))).toEqual([]);
});

test("every metric key stands in the page of metrics, and is found there", () => {
  expect(new Set(namedKeys("docs/metrics.md"))).toEqual(new Set(Object.keys(metricKeys)));
  expect(metricRooms).toEqual(expect.arrayContaining(["staleness", "engine", "demonstration"]));
});

test("the options of GRPO are shown with their defaults", () => {
  const [stage] = fragment("docs/algorithms/grpo.md").stages as { algorithm: object }[];
  expect(algorithmOptionsSchema.parse(stage?.algorithm)).toEqual(algorithmOptionsSchema.parse({}));
});

test("the options of PPO are shown with their defaults, all of them", () => {
  const [stage] = fragment("docs/algorithms/ppo.md").stages as [{ algorithm: object }];
  const critic = { schedule: { learningRate: 1e-5 } };
  expect(stage.algorithm).toEqual(algorithmOptionsSchema.parse({ type: "ppo", critic }));
});

test("the options of BM25 are shown with their defaults, all of them", () => {
  const { retriever } = fragment("docs/algorithms/bm25.md");
  expect(retriever).toEqual(bm25OptionsSchema.parse({}));
});

test("the environment of Search-R1 is the default", () => {
  const { environment } = fragment("docs/algorithms/search-r1.md");
  expect(environmentOptionsSchema.parse(environment)).toEqual(environmentOptionsSchema.parse({}));
});

test.each(allPages)("links of %s lead to files that exist", (page) => {
  const targets = [...read(page).matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)].map((match) => match[1] as string);
  const missing = targets.filter(
    (target) => !target.startsWith("http") && !existsSync(join(root, dirname(page), target)),
  );
  expect(missing).toEqual([]);
});

/** Command lines of the program in code blocks and in the comments of recipes, one a line; `[...]` is a form, no example. */
function commandLines(text: string): string[] {
  const lines = [...text.matchAll(/^(?:# +|\$ )?(?:npx )?forager ([a-z].*)$/gm)].map(
    (match) => match[1] as string,
  );
  return lines.filter((line) => !line.includes("[")).map((line) => line.replace(/ +#.*$/, ""));
}

/** Words of a shell line, with double or single quotes around some. */
function words(line: string): string[] {
  return [...line.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(([, a, b, c]) => a ?? b ?? (c as string));
}

const recipes = readdirSync(join(root, "recipes"), { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".yaml"))
  .map((file) => `recipes/${file}`);

test("command lines are found where they are shown", () => {
  expect(commandLines(read("docs/algorithms/bm25.md"))).toContain("index corpus.jsonl --out indexes/corpus");
  expect(commandLines(read("recipes/lab.yaml")).length).toBeGreaterThan(0);
});

test.each([...allPages, ...recipes])("command lines of %s are understood", (page) => {
  for (const line of commandLines(read(page).replaceAll(/\\\n\s*/g, ""))) {
    const [name = "", ...rest] = words(line);
    if (name.startsWith("-")) continue;
    expect(() => parseCommand(findCommand(commands, name), rest)).not.toThrow();
    for (const word of rest.filter((each) => /^recipes\//.test(each)))
      expect(existsSync(join(root, word))).toBe(true);
  }
});

test.each(allPages)("scripts that %s names exist", (page) => {
  const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };
  const named = [...read(page).matchAll(/npm run ([a-z][\w:-]*)/g)].map((match) => match[1] as string);
  expect(named.filter((name) => !Object.hasOwn(scripts, name))).toEqual([]);
});
