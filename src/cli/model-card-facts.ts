/** Gathers what a model card says: of the run and its recipe, of the base model, of the prompts. */
import { readFile } from "node:fs/promises";
import { basename, isAbsolute, join } from "node:path";
import { parse as parseYaml, stringify } from "yaml";
import { z } from "zod";
import { trainableModel } from "../config/model-source-options.ts";
import type { Recipe } from "../config/recipe.ts";
import type { ModelFiles } from "../engine/model-files.ts";
import { findCodec } from "../environment/codecs.ts";
import { openingText } from "../environment/opening.ts";
import { findPassageTemplate } from "../environment/passage-template.ts";
import type { CardBase, CardEvaluation, CardRun } from "../reporting/model-card-parts.ts";
import { exists } from "../shared/files.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import { stepsBefore, totalSteps } from "../training/position.ts";
import type { ExportedRun, ExportSource } from "./export-source.ts";

const questionsSchema = z.object({ n: z.number(), hash: z.string(), split: z.string().optional() });

/** The parts of `contract.json` that a card tells; each may be missing in a run of another version. */
const contractSchema = z.object({
  retriever: z.object({ method: z.string(), corpusHash: z.string(), indexHash: z.string() }).optional(),
  trainQuestions: questionsSchema.optional(),
  evaluationQuestions: questionsSchema.optional(),
  model: z
    .object({
      type: z.string(),
      source: z.string().optional(),
      hub: z.string().optional(),
      commit: z.string().optional(),
      hash: z.string().optional(),
    })
    .optional(),
  seed: z.number().optional(),
  codeVersion: z.string().optional(),
});
type Contract = z.infer<typeof contractSchema>;

/** Reads the run's files. Throws `DataFormatError` for a damaged one. */
export async function cardRun(run: ExportedRun, tokenizer: Tokenizer): Promise<CardRun> {
  const { folder, recipe, step } = run;
  const contract = contractSchema.parse(await folder.readContract());
  return {
    recipeName: recipe.name,
    recipeYaml: stringify(withoutFolders(parseYaml(await folder.readRecipe())), { lineWidth: 110 }),
    step,
    totalSteps: totalSteps(recipe),
    stages: recipe.stages.map(({ name, type, steps }) => `${name}: ${steps} steps, ${type}`),
    data: dataFacts(recipe, contract),
    evaluations: await evaluations(run),
    prompt: await promptFacts(recipe, tokenizer),
  };
}

/** Names of files without the folders of the machine they lie on, and addresses without who logs in there. */
function withoutFolders(value: unknown): unknown {
  if (typeof value === "string")
    return isAbsolute(value) ? basename(value) : value.replace(/\/\/[^/@\s]*@/, "//");
  if (Array.isArray(value)) return value.map(withoutFolders);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, withoutFolders(inner)]));
}

function dataFacts({ data }: Recipe, contract: Contract): (readonly [string, string])[] {
  const { retriever, trainQuestions: train, evaluationQuestions: asked, seed, codeVersion } = contract;
  const files = (paths: string | readonly string[] | undefined): string =>
    [paths ?? []]
      .flat()
      .map((path) => basename(path))
      .join(", ");
  const questions = (facts: NonNullable<typeof train>): string => `${facts.n}, SHA-256 ${facts.hash}`;
  const rows: (readonly [string, string | undefined])[] = [
    ["world", data.type === "world" ? `${data.world.name}, made by Forager` : undefined],
    ["corpus", data.type === "files" ? files(data.corpus) : undefined],
    ["corpus hash", retriever?.corpusHash],
    ["retriever", retriever?.method],
    [
      "files of questions to train on",
      data.type === "files" && data.questions.train !== undefined ? files(data.questions.train) : undefined,
    ],
    ["questions to train on", train && questions(train)],
    ["files of held-out questions", data.type === "files" ? files(data.questions.evaluation) : undefined],
    ["held-out questions", asked && questions(asked)],
    ["split of the held-out questions", asked?.split],
    ["seed", seed?.toString()],
    ["version of Forager that trained", codeVersion],
  ];
  return rows.flatMap(([name, value]) => (value ? [[name, value] as const] : []));
}

async function evaluations({ folder, recipe, step }: ExportedRun): Promise<CardEvaluation[]> {
  return (await folder.readEvaluations()).map((evaluation) => {
    const stage = recipe.stages.findIndex(({ name }) => name === evaluation.stage);
    const count = stage === -1 ? undefined : stepsBefore(recipe, { stage, step: evaluation.step });
    return { ...evaluation, isOfTheseWeights: count === step };
  });
}

async function promptFacts({ environment }: Recipe, tokenizer: Tokenizer): Promise<CardRun["prompt"]> {
  const codec = findCodec(environment.codec);
  const template = findPassageTemplate(environment.passageTemplate);
  const placeholders = { question: "{question}", information: "{information}" };
  const passage = template.render({ id: "1", title: "A title", text: "The text of a passage." }, 1);
  const search = codec.render({ type: "search", query: "a query" }) + codec.renderObservation(passage);
  const ending = codec.render(
    environment.mode === "planner" ? { type: "callGenerator" } : { type: "answer", answer: "the answer" },
  );
  return {
    opening: await openingText(environment, placeholders, tokenizer),
    stopStrings: codec.stopStrings,
    example: (/^(search|planner)$/.test(environment.mode) ? search : "") + ending,
  };
}

/** The model that a run or a conversion started from; undefined for one trained from nothing. */
export async function cardBase(
  { run, source }: ExportSource,
  files: ModelFiles,
): Promise<CardBase | undefined> {
  if (run) {
    const { model } = contractSchema.parse(await run.folder.readContract());
    const base = trainableModel(run.recipe.model);
    if (base.type === "fresh") return undefined;
    const { hub, commit, hash } = model ?? {};
    const named = hub === undefined ? localBase(base.source) : await hubBase(`hf:${hub}`);
    return {
      ...named,
      ...(commit !== undefined && { revision: commit }),
      ...(hash !== undefined && { hash }),
    };
  }
  const location = files.adapters?.config.location;
  if (location === undefined) return await hubBase(source);
  const { base_model_name_or_path: name, revision } = location;
  if (isAbsolute(name)) return localBase(name);
  return { name, isOnHub: true, ...(revision !== null && { revision }) };
}

function localBase(path: string): CardBase {
  return { name: basename(path), isOnHub: false };
}

/** A source of any form: a path is told by its last part alone. */
async function hubBase(source: string): Promise<CardBase> {
  const { parseModelSource } = await import("../engine/model-source.ts");
  const parsed = (await exists(source)) ? undefined : parseModelSource(source);
  if (parsed?.type !== "hub") return localBase(source);
  const { repository, revision } = parsed.reference;
  return { name: repository, isOnHub: true, ...(revision !== "main" && { revision }) };
}

/**
 * The licence of the base, by SPDX: of a model that Forager knows, or as the model's own files say (a GGUF file's
 * metadata, a card's front matter). Undefined where nothing says it: the card then says so.
 */
export async function licenceOf(
  base: CardBase | undefined,
  path: string | undefined,
): Promise<string | undefined> {
  const { knownModels } = await import("../engine/known-models.ts");
  const known = knownModels.find(({ repository }) => repository === base?.name);
  if (known) return known.licence;
  if (path === undefined || !(await exists(path))) return undefined;
  if (path.endsWith(".gguf")) return await ggufLicence(path);
  const card = join(path, "README.md");
  if (!(await exists(card))) return undefined;
  const [, front = ""] = /^---\n([\s\S]*?)\n---/.exec(await readFile(card, "utf8")) ?? [];
  return /^license: *([\w.-]+) *$/m.exec(front)?.[1];
}

async function ggufLicence(path: string): Promise<string | undefined> {
  const { GgufFile } = await import("../engine/gguf.ts");
  const file = await GgufFile.open(path);
  try {
    const licence = file.metadata.get("general.license");
    return typeof licence === "string" ? licence : undefined;
  } finally {
    await file.close();
  }
}
