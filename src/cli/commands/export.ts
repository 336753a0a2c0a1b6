/** `forager export`: a trained model in the formats of other programs, with a card that says what it is. */
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import type { GgufWrittenType } from "../../engine/gguf-writer-blocks.ts";
import type { ModelFiles } from "../../engine/model-files.ts";
import type { FloatType } from "../../engine/tensor-encoding.ts";
import { isRemoteCheckpoint } from "../../engine/tinker/remote-checkpoint.ts";
import { UsageError } from "../../errors.ts";
import { formatMegabytes } from "../../reporting/megabytes.ts";
import { renderModelCard } from "../../reporting/model-card.ts";
import { type ExportTarget, exportTargets, type ModelCard } from "../../reporting/model-card-parts.ts";
import { createFolderAtomic, writeFileAtomic } from "../../shared/files.ts";
import { removeAbandoned } from "../../shared/partial-files.ts";
import { hubSettings } from "../../training/hub-settings.ts";
import { type CommandIo, defineCommand } from "../command.ts";
import { type ExportSource, findExportSource } from "../export-source.ts";
import { cardBase, cardRun, licenceOf } from "../model-card-facts.ts";
import { requireNewPath } from "../new-path.ts";
import { packageVersion } from "../package.ts";

const floats: readonly FloatType[] = ["F32", "F16", "BF16"];
const blocks: readonly GgufWrittenType[] = ["F32", "F16", "Q8_0", "Q4_0", "Q4_1"];

/** Types of weights that each format can hold; the first is the default. */
const typesOf: Readonly<Record<ExportTarget, readonly string[]>> = {
  hf: floats,
  merged: floats,
  peft: ["F32"],
  gguf: blocks,
};

export const exportCommand = defineCommand({
  name: "export",
  summary: "Hand a trained model on to transformers, vLLM, PEFT or llama.cpp.",
  details:
    "hf: all weights as transformers and vLLM load them. merged: the same of a model trained by adapters, which are added\n" +
    "to their base. peft: the adapters alone. gguf: one file for llama.cpp. A README.md in the folder says how the model was\n" +
    "trained, how it scored, and how to load it. Weights stay float32 unless --dtype says otherwise.",
  args: [{ name: "RUN", doc: "a run folder, one of its checkpoints, or any model as for forager models" }],
  options: {
    to: { type: "text", value: "FORMAT", doc: `${exportTargets.join(", ")}.`, isRequired: true },
    out: { type: "text", value: "FOLDER", doc: "New folder for the model.", isRequired: true },
    dtype: {
      type: "text",
      value: "TYPE",
      doc: "hf, merged: f32 (default), f16, bf16. gguf: f32 (default), f16, q8_0, q4_0, q4_1.",
    },
    checkpoint: {
      type: "text",
      value: "WHICH",
      doc: "Of a run: last (default), best (by reward), or the number of a step.",
    },
  },
  examples: [
    "export runs/quickstart --to hf --out models/agent",
    "export runs/quickstart --to gguf --dtype q8_0 --checkpoint best --out models/agent-gguf --json",
  ],
  async run({ args: [source = ""], options: { to, out, dtype, checkpoint } }, io) {
    const target = requireTarget(to as string);
    const type = requireType(target, dtype);
    const folder = out as string;
    await requireNewPath(folder, "choose another folder with --out");
    const hub = hubSettings(process.env, io);
    const found = await findExportSource(source, checkpoint, hub);
    if (target === "peft" && (await isRemoteCheckpoint(found.path)))
      return await exportRemote(found, folder, io);
    const { openModelFiles } = await import("../../engine/model-files.ts");
    const files = await openModelFiles(found.path, hub);
    try {
      requireSense(found, files, target);
      await removeAbandoned(folder);
      await createFolderAtomic(folder, (made) => fill(made, { found, files, target, type }, io));
      return await report(folder, { found, files, target, type }, io);
    } finally {
      await files.close();
    }
  },
});

/** Adapters that were trained elsewhere, whose base need not be here. */
async function exportRemote(found: ExportSource, folder: string, io: CommandIo) {
  const { exportRemoteAdapters } = await import("../export-remote.ts");
  await removeAbandoned(folder);
  await createFolderAtomic(folder, (made) => exportRemoteAdapters(found.path, made));
  const { names, bytes } = await contentOf(folder);
  io.print(`${folder}: ${names.join(", ")} (${formatMegabytes(bytes)})`);
  const checkpoint = found.run?.step ?? null;
  return { json: { out: folder, to: "peft", dtype: "F32", checkpoint, files: names, bytes } };
}

async function contentOf(folder: string) {
  const names = (await readdir(folder)).sort();
  const sizes = await Promise.all(names.map(async (name) => (await stat(join(folder, name))).size));
  return { names, bytes: sizes.reduce((sum, size) => sum + size, 0) };
}

function requireTarget(text: string): ExportTarget {
  const target = exportTargets.find((name) => name === text);
  if (target) return target;
  throw new UsageError(
    `export: --to is ${JSON.stringify(text)}; one of ${exportTargets.join(", ")} was expected`,
  );
}

function requireType(target: ExportTarget, text: string | undefined): string {
  const types = typesOf[target];
  if (text === undefined) return types[0] as string;
  const type = types.find((name) => name.toLowerCase() === text.toLowerCase());
  if (type) return type;
  throw new UsageError(
    `export: --dtype is ${JSON.stringify(text)}; with --to ${target} one of ${types.join(", ").toLowerCase()} was expected`,
  );
}

/** Adapters are handed on alone or merged, a whole model as it is. */
function requireSense({ source }: ExportSource, files: ModelFiles, target: ExportTarget): void {
  if (files.adapters === undefined && (target === "peft" || target === "merged"))
    throw new UsageError(
      `export: ${source} holds all weights of a model and no adapters, there is nothing for --to ${target}; use --to hf or --to gguf`,
    );
  if (files.adapters !== undefined && target === "hf")
    throw new UsageError(
      `export: ${source} holds adapters; use --to merged for the whole model, --to peft for the adapters alone, or --to gguf`,
    );
}

interface Work {
  readonly found: ExportSource;
  readonly files: ModelFiles;
  readonly target: ExportTarget;
  readonly type: string;
}

async function fill(folder: string, work: Work, io: CommandIo): Promise<void> {
  const { found, files, target, type } = work;
  const tokenizer = await files.readTokenizer();
  const card = await describe(work, tokenizer);
  const { exportAdapters, exportGguf, exportHuggingFace } = await import("../../engine/export-model.ts");
  const { model } = files;
  if (target === "peft" && files.adapters) {
    const { config } = files.adapters;
    await exportAdapters(folder, { config, tokenizer, adapters: await files.adapters.readAdapters() });
  } else if (target === "gguf") {
    const names = { name: found.name, ...(card.licence !== undefined && { licence: card.licence }) };
    const exported = { model, tokenizer, parameters: await files.readParameters(), names };
    const options = { type: type as GgufWrittenType, signal: io.signal };
    const others = await exportGguf(join(folder, card.file), exported, options);
    if (others.length > 0)
      io.note(
        `${others.length} tensors are stored as ${[...new Set(others.map((one) => one.type))].join(", ")}`,
      );
  } else {
    const exported = { model, tokenizer, parameters: await files.readParameters() };
    await exportHuggingFace(folder, exported, { type: type as FloatType, signal: io.signal });
  }
  await writeFileAtomic(join(folder, "README.md"), renderModelCard(card));
}

type Tokenizer = Awaited<ReturnType<ModelFiles["readTokenizer"]>>;

async function describe({ found, files, target, type }: Work, tokenizer: Tokenizer): Promise<ModelCard> {
  const { model } = files;
  const base = await cardBase(found, files);
  const { run, name, path } = found;
  const basePath = run?.recipe.model.type === "pretrained" ? run.recipe.model.source : undefined;
  const licence = base && (await licenceOf(base, run ? basePath : path));
  const { parameterCount } = await import("../../engine/model-options.ts");
  const weights = target === "peft" ? "adapter_model.safetensors" : "model.safetensors";
  return {
    name,
    target,
    type,
    file: target === "gguf" ? `${name.replace(/[^\w.-]+/g, "-")}-${type}.gguf` : weights,
    family: model.family ?? "llama",
    parameters: parameterCount(model),
    context: model.contextLength,
    version: packageVersion(),
    ...(base && { base }),
    ...(licence !== undefined && { licence }),
    ...(run && { run: await cardRun(run, tokenizer) }),
  };
}

async function report(folder: string, { found, files, target, type }: Work, io: CommandIo) {
  const { names, bytes } = await contentOf(folder);
  io.print(`${folder}: ${names.join(", ")} (${formatMegabytes(bytes)})`);
  const location = files.adapters?.config.location;
  if (target === "peft" && location?.base_model_name_or_path.startsWith("/"))
    io.note(
      "adapter_config.json names the base by its folder on this machine; before you pass the adapters on, write its name on a hub there",
    );
  const step = found.run?.step ?? null;
  return { json: { out: folder, to: target, dtype: type, checkpoint: step, files: names, bytes } };
}
