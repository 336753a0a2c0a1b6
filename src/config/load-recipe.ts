/**
 * A recipe file plus overrides, through the one schema. Everything wrong with it ends as one `ConfigError` line that
 * says where (file:line, or the override), which key, what was expected and what came.
 *
 * Relative paths in a recipe are relative to the recipe's own folder (those of its data to `data.folder`, where it has
 * one), those in an override to the current folder; loading makes them absolute, so that the copy in a run folder works
 * from anywhere. Whether the files exist is not looked at here.
 */
import { readFile } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, resolve } from "node:path";
import { stringify } from "yaml";
import { findBenchmark } from "../corpus/benchmarks.ts";
import { findKnownModel } from "../engine/known-models.ts";
import { ConfigError } from "../errors.ts";
import { recordedFoldingSchema } from "../retrieval/lexical/fold.ts";
import { exists, fileError } from "../shared/files.ts";
import { valueAt } from "./explain-issue.ts";
import { applyOverrides } from "./overrides.ts";
import { type Recipe, recipeSchema } from "./recipe.ts";
import { overrideBelow, overridePlace, validate } from "./validate.ts";
import { parseYaml } from "./yaml-source.ts";

export interface LoadOptions {
  /** `key.key=value`, applied in order. */
  readonly overrides?: readonly string[];
  /** Base of relative paths in overrides; default: the current folder of the process. */
  readonly folder?: string;
}

/**
 * Reads and checks the recipe at `path`. What the `recipe.yaml` of a run folder does not record is as it was before there
 * was a choice. Throws `ConfigError`, or `FileError` when it cannot be read.
 */
export async function loadRecipe(path: string, options: LoadOptions = {}): Promise<Recipe> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (cause) {
    throw fileError(`cannot read the recipe ${path}`, cause);
  }
  return parseRecipe(text, { ...options, file: path, isOfRun: await isRecipeOfRun(path) });
}

/** Whether it is the resolved recipe that a run folder keeps (`reporting/run-folder.ts`). */
async function isRecipeOfRun(path: string): Promise<boolean> {
  return basename(path) === "recipe.yaml" && (await exists(join(dirname(path), "contract.json")));
}

export interface ParseOptions extends LoadOptions {
  /** Names the recipe in errors, and is the base of its relative paths. */
  readonly file: string;
  /** Whether it is the resolved recipe that a run keeps; default: no. */
  readonly isOfRun?: boolean;
}

/** Checks the YAML `text` of a recipe. */
export function parseRecipe(text: string, options: ParseOptions): Recipe {
  const { file, overrides = [], folder = ".", isOfRun = false } = options;
  const source = parseYaml(text, file);
  if (source.value === null || source.value === undefined)
    throw new ConfigError(`${file}: the recipe is empty; start from one in recipes/`);
  if (typeof source.value !== "object" || Array.isArray(source.value))
    throw new ConfigError(`${file}:1: a recipe is a mapping of keys to values, such as "seed: 1"`);
  const home = dirname(resolve(file));
  const here = resolve(folder);
  const written = withAbsolutePaths(isOfRun ? withRecordedFolding(source.value) : source.value, {
    folder: home,
    data: dataFolder(source.value, overrides, { home, here }) ?? home,
  });
  const { value, applied } = applyOverrides(written, overrides);
  return validate(
    recipeSchema,
    withAbsolutePaths(value, { folder: here, data: here }),
    (path) =>
      overridePlace(applied, path) ??
      (valueAt(written, path) === undefined ? overrideBelow(applied, path) : undefined) ??
      `${file}:${source.lineOf(path)}`,
  );
}

/** A run that records no folding of its words folds marks. */
function withRecordedFolding(recipe: unknown): unknown {
  return changeAt(recipe, ["retriever"], (retriever) =>
    (retriever as { readonly type?: unknown } | null)?.type === "bm25"
      ? { folding: recordedFoldingSchema.parse(undefined), ...(retriever as object) }
      : retriever,
  );
}

/** The recipe with every default filled in, as YAML that loads to the same recipe. */
export function resolvedYaml(recipe: Recipe): string {
  return stringify(recipe, { lineWidth: 110, aliasDuplicateObjects: false });
}

/** The keys that hold a path or a list of paths. */
const pathKeys: readonly (readonly string[])[] = [
  ["data", "folder"],
  ["data", "corpus"],
  ["data", "questions", "train"],
  ["data", "questions", "evaluation"],
  ["data", "questions", "validation"],
  ["model"],
  ["model", "source"],
  ["model", "file"],
  ["model", "tokenizer"],
  ["engine", "tokenizer"],
  ["generator"],
  ["generator", "model"],
  ["generator", "model", "source"],
  ["generator", "model", "file"],
  ["generator", "model", "tokenizer"],
  ["planner", "judge", "model"],
  ["planner", "judge", "model", "source"],
  ["planner", "judge", "model", "file"],
  ["planner", "judge", "model", "tokenizer"],
  ["evaluation", "judge", "model"],
  ["evaluation", "judge", "model", "source"],
  ["evaluation", "judge", "model", "file"],
  ["evaluation", "judge", "model", "tokenizer"],
  ["ranker", "model"],
  ["ranker", "model", "source"],
  ["ranker", "model", "file"],
  ["ranker", "model", "tokenizer"],
  ["ranker", "judge", "model"],
  ["ranker", "judge", "model", "source"],
  ["ranker", "judge", "model", "file"],
  ["ranker", "judge", "model", "tokenizer"],
  ["recordPolicy"],
  ["recordRetrieval"],
  ["retriever", "path"],
  ["retriever", "file"],
  ["retriever", "uri"],
  ["retriever", "model"],
  ["retriever", "encoder", "model"],
  ["retriever", "rerank", "model"],
];
/** Places that are no path: `s3://…`, `hf:…`. */
const elsewhere = /^([a-z][a-z0-9+.-]*:\/\/|hf:)/;

interface Bases {
  readonly folder: string;
  /** Base of the paths of corpus and questions. */
  readonly data: string;
}

/** The folder that `data.folder` names, by the recipe or by the last override of it; undefined where neither does. */
function dataFolder(
  recipe: unknown,
  overrides: readonly string[],
  { home, here }: { readonly home: string; readonly here: string },
): string | undefined {
  const { value, applied } = applyOverrides(recipe, overrides);
  const data = (value as { data?: { folder?: unknown } | null }).data;
  if (typeof data?.folder !== "string") return undefined;
  return resolve(overridePlace(applied, ["data", "folder"]) === undefined ? home : here, data.folder);
}

function withAbsolutePaths(recipe: unknown, bases: Bases): unknown {
  return pathKeys.reduce(
    (value, keys) => changeAt(value, keys, (path) => absolute(path, keys, bases)),
    recipe,
  );
}

function absolute(value: unknown, keys: readonly string[], bases: Bases): unknown {
  if (Array.isArray(value)) return value.map((entry) => absolute(entry, keys, bases));
  if (typeof value !== "string" || value === "" || isAbsolute(value) || elsewhere.test(value)) return value;
  if (keys[1] === "questions" && findBenchmark(value) !== undefined) return value;
  if (
    /^(model|engine|generator|planner|ranker|evaluation)$/.test(keys[0] as string) &&
    findKnownModel(value) !== undefined
  )
    return value;
  return resolve(keys[0] === "data" && keys[1] !== "folder" ? bases.data : bases.folder, value);
}

/** A copy of `value` with `change` applied at `keys`; the same value where there is nothing at `keys`. */
function changeAt(value: unknown, keys: readonly string[], change: (found: unknown) => unknown): unknown {
  const [key, ...rest] = keys;
  if (key === undefined) return change(value);
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return value;
  const mapping = value as Readonly<Record<string, unknown>>;
  return { ...mapping, [key]: changeAt(mapping[key], rest, change) };
}
