/** `forager models`: which models there are by name, what a model on disk is, and fetching one from a hub. */
import { copyFile, link, readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type KnownModel, knownModels } from "../../engine/known-models.ts";
import { samplingBytes, trainingMemory } from "../../engine/memory-estimate.ts";
import type { ModelFiles } from "../../engine/model-files.ts";
import { parameterCount } from "../../engine/model-options.ts";
import { CheckpointError, FileError, ForagerError, UsageError } from "../../errors.ts";
import { formatMegabytes } from "../../reporting/megabytes.ts";
import { createFolderAtomic, makeFolder } from "../../shared/files.ts";
import type { HubOptions } from "../../shared/hub.ts";
import { hubSettings } from "../../training/hub-settings.ts";
import { checkpointOf } from "../../training/model-shape.ts";
import { type CommandIo, type CommandResult, defineCommand } from "../command.ts";
import { requireNewPath } from "../new-path.ts";
import { alignColumns } from "../result-text.ts";

const actions = ["list", "info", "pull"] as const;

export const modelsCommand = defineCommand({
  name: "models",
  summary: "List models, describe one, or fetch one from a hub.",
  details:
    "list: models with a short name; memory is estimated for sequences of 1,024 tokens: eight sampled at once, or one\n" +
    "trained with all weights. info MODEL: what a folder, a run or a .gguf file holds. pull MODEL: fetch\n" +
    "smollm2-135m, hf:owner/name or hf:owner/name@revision; what broke off goes on. HF_ENDPOINT names another hub,\n" +
    "HF_TOKEN opens gated models, FORAGER_CACHE says where models are kept.",
  args: [
    { name: "ACTION", doc: actions.join(", ") },
    {
      name: "MODEL",
      doc: "a short name, hf:owner/name[@revision], a folder, a run or a .gguf file",
      isOptional: true,
    },
  ],
  options: {
    to: { type: "text", value: "FOLDER", doc: "With pull: put the files into this new folder." },
  },
  examples: [
    "models list",
    "models info models/smollm2 --json",
    "models pull smollm2-135m --to models/smollm2",
  ],
  async run({ args: [action, model], options: { to } }, io) {
    if (to !== undefined && action !== "pull") throw new UsageError(`models ${action}: --to is for pull`);
    if (action === "list") {
      if (model !== undefined) throw new UsageError("models list takes no model; ask models info MODEL");
      return listModels(io);
    }
    if (action !== "info" && action !== "pull")
      throw new UsageError(`models: ${JSON.stringify(action)} is none of ${actions.join(", ")}`);
    if (model === undefined) throw new UsageError(`models ${action}: name a model`);
    return action === "info" ? await showModel(model, io) : await pullModel(model, to, io);
  },
});

const tokens = 1024;

function needs({ model }: Pick<KnownModel, "model">): { sampling: number; training: number } {
  const parameters = parameterCount(model);
  return {
    sampling: samplingBytes(model, { slots: 8, tokens }),
    training: trainingMemory(
      { model, parameters, trained: parameters },
      { tokens, time: tokens, keptLayers: model.layers },
    ).peak,
  };
}

function listModels(io: CommandIo): CommandResult {
  const rows = knownModels.map((known) => {
    const { sampling, training } = needs(known);
    const gated = known.isGated ? " (gated)" : "";
    return [
      known.name,
      millions(parameterCount(known.model)),
      formatMegabytes(known.downloadBytes),
      formatMegabytes(sampling),
      formatMegabytes(training),
      known.licence + gated,
    ];
  });
  io.print(alignColumns([["name", "parameters", "download", "to sample", "to train", "licence"], ...rows]));
  return {
    json: {
      models: knownModels.map((known) => ({
        name: known.name,
        repository: known.repository,
        family: known.model.family ?? "llama",
        parameters: parameterCount(known.model),
        context: known.model.contextLength,
        bytes: known.downloadBytes,
        licence: known.licence,
        gated: known.isGated,
        samplingBytes: needs(known).sampling,
        trainingBytes: needs(known).training,
      })),
    },
  };
}

function millions(count: number): string {
  return count < 1e9 ? `${(count / 1e6).toFixed(0)} M` : `${(count / 1e9).toFixed(2)} B`;
}

async function showModel(source: string, io: CommandIo): Promise<CommandResult> {
  const [{ locateModel }, { openModelFiles }] = await Promise.all([
    import("../../engine/model-source.ts"),
    import("../../engine/model-files.ts"),
  ]);
  const hub = { ...hubSettings(process.env, io), offline: true };
  const files = await openModelFiles(await locateModel(await checkpointOf(source), hub), hub);
  try {
    const { model, dtype, bytes, format } = files;
    const { sampling, training } = needs({ model });
    const info = {
      family: model.family ?? "llama",
      parameters: parameterCount(model),
      vocabulary: model.vocabularySize,
      context: model.contextLength,
      dtype,
      tokenizer: await tokenizerKind(files, io),
      bytes,
    };
    io.print(
      alignColumns([
        ["family", info.family],
        ["parameters", info.parameters.toLocaleString("en-US")],
        ["vocabulary", info.vocabulary.toLocaleString("en-US")],
        ["context", `${info.context.toLocaleString("en-US")} tokens`],
        ["weights", `${dtype} (${format}), ${formatMegabytes(bytes)}`],
        ["tokenizer", info.tokenizer ?? "none"],
        ["to sample", `about ${formatMegabytes(sampling)}`],
        ["to train", `about ${formatMegabytes(training)}`],
      ]),
    );
    return { json: info };
  } finally {
    await files.close();
  }
}

/** The kind of the model's tokenizer, such as BPE; null with a note where it has none. */
async function tokenizerKind(files: ModelFiles, io: CommandIo): Promise<string | null> {
  try {
    const tokenizer = await files.readTokenizer();
    const { model } = ("files" in tokenizer ? tokenizer.files.model : {}) as { model?: { type?: string } };
    return model?.type ?? "BPE";
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
    io.note(error.message);
    return null;
  }
}

async function pullModel(source: string, to: string | undefined, io: CommandIo): Promise<CommandResult> {
  const { locateModel, parseModelSource } = await import("../../engine/model-source.ts");
  if (parseModelSource(source).type === "path")
    throw new UsageError(
      `models pull: ${source} is no model of a hub; name one as hf:owner/name, or one of ${knownModels.map(({ name }) => name).join(", ")}`,
    );
  if (to !== undefined) await requireNewPath(to, "choose another folder with --to");
  const hub: HubOptions = hubSettings(process.env, io);
  const cached = await locateModel(source, hub);
  await requireUsable(source, cached);
  const path = to ?? cached;
  if (to !== undefined) await createFolderAtomic(to, (folder) => linkFiles(cached, folder));
  io.print(path);
  return { json: { model: source, path } };
}

/** Opens what came: a hub that tells no hash may have sent anything, such as a page that asks to log in. */
async function requireUsable(source: string, folder: string): Promise<void> {
  const { openModelFiles } = await import("../../engine/model-files.ts");
  try {
    const files = await openModelFiles(folder);
    await files.readTokenizer().finally(() => files.close());
  } catch (cause) {
    if (!(cause instanceof ForagerError)) throw cause;
    throw new CheckpointError(
      `what came as ${source} cannot be used: ${cause.message}\nTo fetch it again, remove ${folder} first`,
      { cause },
    );
  }
}

/** The same files in another folder: hard links where the file system has them, else copies. */
async function linkFiles(from: string, to: string): Promise<void> {
  for (const entry of await readdir(from, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || entry.name === "download.json" || entry.name.includes(".partial")) continue;
    const source = join(entry.parentPath, entry.name);
    const target = join(to, source.slice(from.length));
    await makeFolder(dirname(target));
    await link(source, target).catch(() => copyFile(source, target));
  }
}
