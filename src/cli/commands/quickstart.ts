/** `forager quickstart`: a search agent from nothing, trained before your eyes, and what it has learned. */
import { join, relative } from "node:path";
import { loadRecipe } from "../../config/load-recipe.ts";
import { type Question, questionKey } from "../../corpus/question.ts";
import { RunFolder } from "../../reporting/run-folder.ts";
import type { TrajectoryRecord } from "../../reporting/trajectory-record.ts";
import { renderTranscript } from "../../reporting/transcript.ts";
import { commandLine } from "../../shared/shell-word.ts";
import { type CommandIo, defineCommand } from "../command.ts";
import { newRunFolder, trainWithView } from "../new-run.ts";
import { packagePath } from "../package.ts";
import { costSince, summaryJson, summaryText } from "../training-summary.ts";

export const quickstartCommand = defineCommand({
  name: "quickstart",
  summary: "Train a small search agent from nothing, in minutes, and show what it learned.",
  details:
    "Trains recipes/quickstart.yaml: real facts about countries and airports, two CPU cores, no downloads.",
  args: [],
  options: {
    seed: { type: "integer", value: "N", doc: "Seed of everything random; default 1." },
    out: { type: "text", value: "RUN", doc: "New folder of the run; default: runs/quickstart-DATE-TIME." },
    set: { type: "list", value: "KEY=VALUE", doc: "Override of the recipe; repeatable." },
  },
  examples: ["quickstart", "quickstart --seed 2 --json", "quickstart --set stages.grpo.steps=10"],
  async run({ options: { seed, out, set } }, io) {
    const overrides = [...(seed === undefined ? [] : [`seed=${seed}`]), ...set];
    const recipe = await loadRecipe(packagePath("recipes", "quickstart.yaml"), { overrides });
    const folder = await newRunFolder(recipe.name, out, io.now());
    const started = io.progress.now();
    const summary = await trainWithView({ recipe, folder, resume: false }, io);
    const cost = costSince(started, io.progress.now());
    io.print(`\n${summaryText(summary, cost)}\n`);
    io.print(nextSteps(folder, await printExample(folder, io)));
    return { json: summaryJson(summary, cost) };
  },
});

/** Shows one question before and after the training, one that was learned where there is one, and returns it. */
async function printExample(folder: string, io: CommandIo): Promise<Question | undefined> {
  const run = await RunFolder.open(folder);
  const [before, after] = [await recordsOf(run, "before"), await recordsOf(run, "after")];
  const pairs = [...after.values()].flatMap((record) => {
    const earlier = before.get(questionKey(record.trajectory.question));
    return earlier === undefined ? [] : [{ earlier, record }];
  });
  const learned = pairs.filter(({ earlier, record }) => !isRight(earlier) && isRight(record));
  const chosen =
    learned.find(({ record }) => (record.trajectory.question.hops ?? 1) > 1) ?? learned[0] ?? pairs[0];
  if (chosen === undefined) return undefined;
  const show = (title: string, { trajectory }: TrajectoryRecord): void =>
    io.print(`${title}\n${renderTranscript(trajectory, { color: io.color, hidePrompt: true })}`);
  show("before the training", chosen.earlier);
  show("after", chosen.record);
  return chosen.record.trajectory.question;
}

async function recordsOf(run: RunFolder, name: string): Promise<ReadonlyMap<string, TrajectoryRecord>> {
  const records = (await run.trajectoryNames()).includes(name) ? await run.readTrajectories(name) : [];
  return new Map(records.map((record) => [questionKey(record.trajectory.question), record]));
}

function isRight({ scores }: TrajectoryRecord): boolean {
  return scores?.em === 1;
}

function nextSteps(folder: string, question: Question | undefined): string {
  const { text = "In which country is Heathrow?", plan = ["Heathrow"] } = question ?? {};
  const lab = relative(process.cwd(), packagePath("recipes", "lab.yaml"));
  return [
    `report: ${join(folder, "report.html")} (open it in a browser)`,
    "next:",
    `  ${commandLine("ask", folder, text)}`,
    `  ${commandLine("search", join(folder, "index"), plan[0] ?? text)}`,
    `  ${commandLine("eval", folder)}`,
    `  ${commandLine("train", lab, "--out", "runs/lab")}`,
  ].join("\n");
}
