/**
 * The card of a model that is handed on, as `README.md`: what it is, its scores with intervals, how it was trained and on
 * what, the format of its prompts, and how to load it. The front matter is what the hub of Hugging Face reads
 * (https://huggingface.co/docs/hub/model-cards). Pure; the facts are gathered by `cli/model-card-facts.ts`.
 */
import { stringify } from "yaml";
import type { Breakdown } from "../evaluation/aggregate.ts";
import type { Estimate } from "../evaluation/bootstrap.ts";
import { codeBlock, markdownTable, markdownText } from "./markdown.ts";
import { loadingText } from "./model-card-loading.ts";
import type { CardBase, CardRun, ExportTarget, ModelCard } from "./model-card-parts.ts";
import type { StoredEvaluation } from "./run-folder.ts";

/** The whole file. */
export function renderModelCard(card: ModelCard): string {
  const { run } = card;
  return `${[
    frontMatter(card),
    `# ${markdownText(card.name)}`,
    introduction(card),
    ...(run ? [scores(run), training(run), data(run), promptFormat(run)] : []),
    loadingText(card),
  ].join("\n\n")}\n`;
}

const libraries: Readonly<Record<ExportTarget, string>> = {
  hf: "transformers",
  merged: "transformers",
  peft: "peft",
  gguf: "gguf",
};

/** What a model is to its base in the hub's words; a copy in another format is a `quantized` one. */
function relation({ run, target }: ModelCard): string {
  if (target === "peft") return "adapter";
  return run ? "finetune" : "quantized";
}

function frontMatter(card: ModelCard): string {
  const { licence, base, target, run } = card;
  const results = run?.evaluations.flatMap((one) => (one.isOfTheseWeights ? resultsOf(one) : [])) ?? [];
  const fields = {
    ...(licence !== undefined && { license: licence.toLowerCase() }),
    ...(base?.isOnHub && {
      base_model: base.name,
      base_model_relation: relation(card),
    }),
    library_name: libraries[target],
    pipeline_tag: "text-generation",
    tags: [
      "forager",
      ...(run ? ["search-agent", "question-answering"] : []),
      ...(target === "gguf" ? ["llama.cpp"] : []),
    ],
    ...(results.length > 0 && { "model-index": [{ name: card.name, results }] }),
  };
  return `---\n${stringify(fields)}---`;
}

function resultsOf({ name, result }: StoredEvaluation): object[] {
  const { overall } = result.summary;
  const metrics = [
    { type: "exact_match", estimate: overall.em },
    { type: "f1", estimate: overall.f1 },
  ].flatMap(({ type, estimate }) => (estimate ? [{ type, value: round(estimate.mean) }] : []));
  if (metrics.length === 0) return [];
  const { split, questionsHash } = result.contract;
  const dataset = { type: "custom", name: `${name}: ${overall.n} questions`, split, revision: questionsHash };
  return [{ task: { type: "question-answering" }, dataset, metrics }];
}

function round(value: number): number {
  return Number(value.toFixed(4));
}

function introduction({ run, base, family, parameters, context, type, licence, version }: ModelCard): string {
  const what = run
    ? `A search agent: a language model that decides when to search, reads what comes back, and answers. It was trained with Forager by the recipe ${markdownText(run.recipeName)}; version ${version} wrote this folder.`
    : `A language model, converted by Forager ${version}.`;
  const shape = `Family ${family}, ${parameters.toLocaleString("en-US")} parameters, context of ${context.toLocaleString("en-US")} tokens, weights ${type}.`;
  const origin = base
    ? `${run ? "It started from" : "It is"} ${baseText(base)}; licence of that model: ${licence === undefined ? "not known here, look it up before you pass this on" : markdownText(licence)}.`
    : "It was trained from nothing and has no licence yet: whoever passes it on chooses one.";
  return `${what}\n\n${shape}\n\n${origin}`;
}

function baseText({ name, revision, hash }: CardBase): string {
  const shown = markdownText(name);
  const which = [
    ...(revision === undefined ? [] : [`revision ${markdownText(revision)}`]),
    ...(hash === undefined ? [] : [`SHA-256 of its files ${hash}`]),
  ].join(", ");
  return which === "" ? shown : `${shown} (${which})`;
}

function scores({ evaluations }: CardRun): string {
  if (evaluations.length === 0) return "## Scores\n\nThe run holds no evaluation.";
  const head = [
    "evaluation",
    "these weights",
    "data set",
    "questions",
    "exact match",
    "F1",
    "cover exact match",
    "searches",
  ];
  const rows = evaluations.flatMap(({ name, isOfTheseWeights, result }) => {
    const { overall, byDataset } = result.summary;
    const sets = Object.entries(byDataset);
    const parts: (readonly [string, Breakdown])[] = [["all", overall], ...(sets.length > 1 ? sets : [])];
    return parts.map(([set, numbers]) => [
      markdownText(name),
      isOfTheseWeights ? "yes" : "no",
      markdownText(set),
      String(numbers.n) + (numbers.failed > 0 ? ` (${numbers.failed} failed)` : ""),
      ...[numbers.em, numbers.f1, numbers.coverEm].map(percent),
      numbers.searches ? numbers.searches.mean.toFixed(2) : "",
    ]);
  });
  const note =
    "Percent with the 95 % interval of a bootstrap over questions, on questions held out from the training. Rows that are not of these weights belong to other steps of the same run.";
  return `## Scores\n\n${markdownTable(head, rows)}\n\n${note}`;
}

function percent(estimate: Estimate | undefined): string {
  if (!estimate) return "";
  const [mean, low, high] = [estimate.mean, ...estimate.ci].map((value) =>
    (100 * (value as number)).toFixed(1),
  );
  return `${mean} (${low} to ${high})`;
}

function training({ recipeYaml, step, totalSteps, stages }: CardRun): string {
  const list = stages.map((stage) => `- ${markdownText(stage)}`).join("\n");
  return `## Training\n\nThese weights are those after ${step} of ${totalSteps} steps.\n\n${list}\n\nThe recipe, as Forager resolved it (paths without their folders):\n\n${codeBlock(recipeYaml, "yaml")}`;
}

function data({ data: facts }: CardRun): string {
  const rows = facts.map(([name, value]) => [markdownText(name), markdownText(value)]);
  return `## Data\n\n${markdownTable(["what", "which"], rows)}`;
}

function promptFormat({ prompt: { opening, stopStrings, example } }: CardRun): string {
  const stops = stopStrings.map((stop) => codeSpan(stop)).join(" or ");
  return `## Prompt format\n\nAn episode opens with this text, the question in place of \`{question}\`:\n\n${codeBlock(opening)}\n\nThe model writes until ${stops}. After a search its passages are appended and the model goes on; after an answer the episode is over:\n\n${codeBlock(example)}`;
}

function codeSpan(text: string): string {
  return `\`${text.replaceAll("`", "'")}\``;
}
