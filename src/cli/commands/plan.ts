/** `forager plan`: what an index or a training would take, before anything is built. */
import { newCorpusReport } from "../../corpus/corpus-report.ts";
import { readCorpora } from "../../corpus/read-corpora.ts";
import { readingOptions } from "../../corpus/reading-options.ts";
import { UsageError } from "../../errors.ts";
import { formatMegabytes } from "../../reporting/megabytes.ts";
import { formatDuration } from "../../reporting/progress.ts";
import type { Encoder } from "../../retrieval/dense/encoder.ts";
import { openEncoderReference } from "../../retrieval/encoder-reference.ts";
import { type IndexPlan, planIndex } from "../../retrieval/plan-index.ts";
import { processWorld } from "../../training/world.ts";
import { type CommandIo, defineCommand } from "../command.ts";
import { countTokensBy, tokenizerFlag } from "../count-tokens.ts";
import { indexSettings } from "../index-settings.ts";
import { isRecipePath, planRecipe } from "../plan-recipe.ts";

export const planCommand = defineCommand({
  name: "plan",
  summary: "Estimate time, memory and disk of an index or of a training before it starts.",
  details:
    "Of a corpus, the first passages are read and indexed for real, into a temporary folder, and scaled to the whole;\n" +
    "takes the options of forager index. Of a recipe (.yaml), memory follows from the shape of the model and time from\n" +
    "a second of matrix products; nothing is downloaded or allocated. Exits with 1 where the training does not fit.\n" +
    "Of a recipe with an engine elsewhere, GPUs, hours and money are scaled from what others measured, which is printed.",
  args: [
    {
      name: "CORPUS",
      doc: "files or folders, as for forager index; or one recipe",
      isRepeated: true,
    },
  ],
  options: {
    dense: { type: "text", value: "MODEL", doc: "Plan vectors by this encoder too." },
    format: { type: "text", value: "NAME", doc: "Format of the files; default: by name and content." },
    encoding: { type: "text", value: "NAME", doc: "Encoding of texts; default UTF-8." },
    tokenizer: tokenizerFlag,
    memory: { type: "integer", value: "MIB", least: 16, doc: "As for forager index; default 256." },
    set: { type: "list", value: "KEY=VALUE", doc: "As for forager index, or forager train; repeatable." },
    gpus: {
      type: "integer",
      value: "N",
      least: 1,
      doc: "Recipe with an engine elsewhere: GPUs that it has.",
    },
    "gpu-price": {
      type: "text",
      value: "DOLLARS",
      doc: "Recipe with an engine elsewhere: dollars for one GPU and hour.",
    },
  },
  examples: [
    "plan passages.jsonl.gz",
    "plan wiki-18.jsonl --dense models/e5-base-v2 --json",
    "plan recipes/lab.yaml --json",
    "plan recipes/cluster/search-r1-grpo-7b-skyrl.yaml --gpus 8 --gpu-price 2.50",
  ],
  async run({ args, options }, io) {
    if (args.some(isRecipePath)) {
      const { set, gpus, "gpu-price": gpuPrice, ...others } = options;
      if (args.length > 1 || Object.values(others).some((value) => value !== undefined))
        throw new UsageError(
          "plan: a recipe is planned alone, with --set, --gpus and --gpu-price as its options",
        );
      return await planRecipe(args[0] as string, { overrides: set, gpus, gpuPrice }, io);
    }
    if (options.gpus !== undefined || options["gpu-price"] !== undefined)
      throw new UsageError("plan: --gpus and --gpu-price are for a recipe with an engine elsewhere");
    const settings = indexSettings({ ...options, strict: false });
    let share = 0;
    const passages = readCorpora(args, {
      ...readingOptions(settings.corpus),
      ...(await countTokensBy(options.tokenizer)),
      report: newCorpusReport(),
      onProgress: (read, total) => {
        share = total === 0 ? 1 : read / total;
      },
    });
    const encoder =
      options.dense === undefined
        ? undefined
        : await openEncoderReference({ ...settings.encoder, model: options.dense }, processWorld(io));
    try {
      const plan = await planIndex({
        passages,
        shareRead: () => share,
        options: settings.lexical,
        memoryBytes: (options.memory ?? 256) * 2 ** 20,
        now: io.progress.now,
        signal: io.signal,
        ...(encoder && { dense: { encoder, dtype: settings.dense.dtype } }),
      });
      printPlan(plan, encoder, io);
      return { json: { ...plan } };
    } finally {
      await encoder?.close();
    }
  },
});

function printPlan(plan: IndexPlan, encoder: Encoder | undefined, io: CommandIo): void {
  const { passages, seconds, peakBytes, bytes, peakDiskBytes, basis, dense } = plan;
  io.print(`passages   about ${passages}`);
  io.print(`time       ${formatDuration(1000 * seconds)}`);
  io.print(`memory     ${formatMegabytes(peakBytes)}`);
  io.print(`disk       ${formatMegabytes(bytes)}, while it is built ${formatMegabytes(peakDiskBytes)}`);
  if (dense)
    io.print(
      `vectors    ${formatDuration(1000 * dense.seconds)} at ${dense.rate.toFixed(0)} passages/s, ${formatMegabytes(dense.bytes)} (${encoder?.identity.name})`,
    );
  const measured = `${basis.passages} passages in ${basis.seconds.toFixed(1)} s, ${(100 * basis.share).toFixed(1)} % of the corpus`;
  io.print(`measured on ${measured}; give or take a fifth`);
}
