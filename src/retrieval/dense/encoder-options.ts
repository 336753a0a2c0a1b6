/** The options of an encoder, and what is known about a model from its name and the files of its folder. */
import { readFile } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import { z } from "zod";
import { ConfigError, FileError } from "../../errors.ts";
import { exists, fileError } from "../../shared/files.ts";
import { type EncoderRecipe, findKnownEncoder, type Pooling, poolingSchema } from "./encoder-models.ts";

export const encoderOptionsSchema = z.strictObject({
  pooling: poolingSchema
    .optional()
    .describe(
      "How token vectors become one: mean, cls (first), last, given (by the model). Default: as known for the model.",
    ),
  queryPrefix: z.string().optional().describe("Put before every query. Default: as known for the model."),
  passagePrefix: z.string().optional().describe("Put before every passage. Default: as known for the model."),
  normalize: z
    .boolean()
    .optional()
    .describe("Scale vectors to length 1. Default: as known for the model, else true."),
  maxTokens: z
    .int()
    .min(8)
    .max(65_536)
    .optional()
    .describe("Tokens of a text at most; the rest is cut. Default: as known for the model, else 512."),
  batchSize: z
    .int()
    .min(1)
    .max(1024)
    .optional()
    .describe(
      "Texts that the model sees at once. Default: 8; 1 where the model's vectors depend on batch mates.",
    ),
  file: z
    .string()
    .min(1)
    .optional()
    .describe("The .onnx file within the model folder. Default: model.onnx or onnx/model.onnx."),
});
/** Everything is optional for a known model. */
export type EncoderOptions = z.output<typeof encoderOptionsSchema>;

const modelFiles = ["model.onnx", "onnx/model.onnx", "model_quantized.onnx", "onnx/model_quantized.onnx"];

/** The path of the model file. Throws `FileError` when there is none. */
export async function findModelFile(folder: string, file: string | undefined): Promise<string> {
  const candidates = file === undefined ? modelFiles : [file];
  for (const candidate of candidates) {
    const path = resolve(folder, candidate);
    if (await exists(path)) return path;
  }
  throw new FileError(
    `${folder} holds no model: expected ${candidates.join(" or ")}; export the model to ONNX, or name the file with the option "file"`,
  );
}

/**
 * How the model of a folder is used: what is declared in `options`, else what the table of known models says of
 * `name`, else the sentence-transformers settings of the folder. Throws `ConfigError` when pooling stays unknown.
 */
export async function recipeOf(
  folder: string,
  name: string,
  options: EncoderOptions,
): Promise<EncoderRecipe & { readonly name: string }> {
  const known = findKnownEncoder(name);
  const settings = known ?? (await readSettings(folder));
  const pooling = options.pooling ?? settings.pooling;
  if (pooling === undefined)
    throw new ConfigError(
      `the encoder ${name} is not known to Forager and ${folder} has no 1_Pooling/config.json. Declare at least ` +
        `pooling (mean, cls, last or given), and queryPrefix and passagePrefix if the model's card names them`,
      { path: "pooling" },
    );
  return {
    name: known?.name ?? basename(name),
    pooling,
    queryPrefix: options.queryPrefix ?? settings.queryPrefix ?? "",
    passagePrefix: options.passagePrefix ?? settings.passagePrefix ?? "",
    normalize: options.normalize ?? settings.normalize ?? true,
    maxTokens: options.maxTokens ?? settings.maxTokens ?? 512,
  };
}

const poolingFile = z.looseObject({
  pooling_mode_cls_token: z.boolean().default(false),
  pooling_mode_mean_tokens: z.boolean().default(false),
  pooling_mode_lasttoken: z.boolean().default(false),
});
const lengthFile = z.looseObject({ max_seq_length: z.int().min(1).nullish() });
const modulesFile = z.array(z.looseObject({ type: z.string() }));
const promptsFile = z.looseObject({ prompts: z.record(z.string(), z.string()).nullish() });

async function readSettings(folder: string): Promise<Partial<EncoderRecipe>> {
  const pooling = await readJson(join(folder, "1_Pooling/config.json"), poolingFile);
  const modules = await readJson(join(folder, "modules.json"), modulesFile);
  const length = await readJson(join(folder, "sentence_bert_config.json"), lengthFile);
  const prompts = (await readJson(join(folder, "config_sentence_transformers.json"), promptsFile))?.prompts;
  const mode: Pooling | undefined = pooling && poolingOf(pooling);
  return {
    ...(mode && { pooling: mode }),
    ...(modules && { normalize: modules.some(({ type }) => type.endsWith("Normalize")) }),
    ...(length?.max_seq_length && { maxTokens: length.max_seq_length }),
    ...(prompts?.query !== undefined && { queryPrefix: prompts.query }),
    ...((prompts?.passage ?? prompts?.document) !== undefined && {
      passagePrefix: prompts?.passage ?? prompts?.document ?? "",
    }),
  };
}

function poolingOf(file: z.output<typeof poolingFile>): Pooling | undefined {
  if (file.pooling_mode_mean_tokens) return "mean";
  if (file.pooling_mode_cls_token) return "cls";
  return file.pooling_mode_lasttoken ? "last" : undefined;
}

async function readJson<T>(path: string, schema: z.ZodType<T>): Promise<T | undefined> {
  if (!(await exists(path))) return undefined;
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (cause) {
    throw fileError(`cannot read ${path}`, cause);
  }
  try {
    return schema.parse(JSON.parse(text));
  } catch (cause) {
    const what = cause instanceof z.ZodError ? z.prettifyError(cause) : (cause as Error).message;
    throw new FileError(`${path} is not the settings of a sentence-transformers model: ${what}`, { cause });
  }
}
