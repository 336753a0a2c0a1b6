/** `forager demonstrate`: plays what a recipe's teacher would show in its warm-up, counts what it cannot serve, and keeps all. */
import { loadRecipe } from "../../config/load-recipe.ts";
import { type Question, questionKey } from "../../corpus/question.ts";
import { UsageError } from "../../errors.ts";
import { appendJsonLines } from "../../reporting/json-lines.ts";
import { startProgress } from "../../reporting/progress.ts";
import { piecesOf, toStored } from "../../reporting/trajectory-record.ts";
import { renderTranscript } from "../../reporting/transcript.ts";
import { type Demonstrations, demonstrate, dropReasons } from "../../rollout/teacher.ts";
import type { Trajectory } from "../../rollout/trajectory.ts";
import { policyTokenCount, searchCount, tokenCount } from "../../rollout/trajectory-view.ts";
import { Closers } from "../../shared/closers.ts";
import { goldTitles } from "../../training/gold-titles.ts";
import { createEngine } from "../../training/open-engine.ts";
import { loadData } from "../../training/setup.ts";
import { processWorld } from "../../training/world.ts";
import { type CommandIo, defineCommand } from "../command.ts";
import { requireNewPath } from "../new-path.ts";
import { alignColumns } from "../result-text.ts";

export const demonstrateCommand = defineCommand({
  name: "demonstrate",
  summary: "Show what a recipe's teacher would demonstrate.",
  details:
    "Plays the training questions with the teacher of the first supervised stage, in the real environment, and counts\n" +
    "what it cannot serve and why. Training does the same step by step; nothing need be made before it.",
  args: [{ name: "RECIPE", doc: "a recipe file with a supervised stage" }],
  options: {
    n: { type: "integer", value: "N", least: 1, doc: "The first N training questions; default: all." },
    show: { type: "integer", value: "N", least: 0, doc: "Print so many demonstrations; default 2." },
    out: { type: "text", value: "FILE", doc: "New file for all demonstrations, as JSON lines." },
    set: { type: "list", value: "KEY=VALUE", doc: "Override of the recipe; repeatable." },
  },
  examples: ["demonstrate recipes/smollm2-135m.yaml --set data.folder=../data --n 100 --out shown.jsonl"],
  async run({ args, options: { n, show = 2, out, set } }, io) {
    const recipe = await loadRecipe(args[0] as string, { overrides: set });
    const stage = recipe.stages.find((each) => each.type === "supervised" && each.teacher.type !== "ranking");
    const teacher = stage?.type === "supervised" ? stage.teacher : undefined;
    if (stage === undefined || teacher === undefined || teacher.type === "ranking")
      throw new UsageError(`demonstrate: ${args[0]} has no supervised stage of the agent, and so no teacher`);
    if (out !== undefined) await requireNewPath(out, "choose another file with --out");
    const opened = new Closers();
    try {
      const { recordRetrieval: _, ...unrecorded } = recipe;
      const data = await loadData(unrecorded, processWorld(io));
      opened.defer(() => data.close());
      const engine = await createEngine(recipe, data, io);
      opened.defer(() => engine.close());
      const { tokenizer, contextLength } = engine;
      const { environment, seed } = recipe;
      const { retriever } = data;
      const titles = goldTitles(data);
      const setting = { retriever, environment, tokenizer, contextLength, titles, signal: io.signal };
      const tally = new Tally();
      await overBatches(data.train.slice(0, n), io, async (questions) => {
        const requests = questions.map((question) => requestFor(question, seed));
        const shown = await demonstrate(requests, setting, teacher);
        for (const trajectory of shown.trajectories.slice(0, Math.max(0, show - tally.served)))
          io.print(`\n${renderTranscript(trajectory, { color: io.color })}`);
        tally.add(shown);
        if (out === undefined) return;
        const records = shown.trajectories.map((trajectory) =>
          toStored({ stage: stage.name, step: 0, trajectory, pieces: piecesOf(trajectory, tokenizer) }),
        );
        await appendJsonLines(out, records);
      });
      io.print(tally.text());
      if (out !== undefined) io.print(`\nwritten to ${out}`);
      return { json: { ...tally.json(), file: out ?? null } };
    } finally {
      await opened.close();
    }
  },
});

const batchSize = 64;

function requestFor(question: Question, seed: number) {
  return { question, group: questionKey(question), sample: 0, seed };
}

async function overBatches(
  questions: readonly Question[],
  io: CommandIo,
  work: (batch: readonly Question[]) => Promise<void>,
): Promise<void> {
  const total = questions.length;
  const progress = startProgress({ label: "demonstrating", total, unit: "questions" }, io.progress);
  for (let start = 0; start < total; start += batchSize) {
    await work(questions.slice(start, start + batchSize));
    progress.update(Math.min(total, start + batchSize));
  }
  progress.finish();
}

/** What was shown and what was not. */
class Tally {
  readonly #lengths: number[] = [];
  readonly #policyTokens: number[] = [];
  readonly #searches = new Map<number, number>();
  readonly #dropped = new Map(dropReasons.map((reason) => [reason, 0]));

  get served(): number {
    return this.#lengths.length;
  }

  add({ trajectories, dropped }: Demonstrations): void {
    for (const trajectory of trajectories) this.#count(trajectory);
    for (const { reason } of dropped) this.#dropped.set(reason, (this.#dropped.get(reason) as number) + 1);
  }

  #count(trajectory: Trajectory): void {
    this.#lengths.push(tokenCount(trajectory));
    this.#policyTokens.push(policyTokenCount(trajectory));
    const searches = searchCount(trajectory);
    this.#searches.set(searches, (this.#searches.get(searches) ?? 0) + 1);
  }

  json() {
    return {
      demonstrations: this.served,
      dropped: Object.fromEntries(this.#dropped),
      searches: Object.fromEntries([...this.#searches].sort(([a], [b]) => a - b)),
      tokens: { mean: mean(this.#lengths), longest: Math.max(0, ...this.#lengths) },
      policyTokens: { mean: mean(this.#policyTokens), longest: Math.max(0, ...this.#policyTokens) },
    };
  }

  text(): string {
    const { demonstrations, dropped, searches, tokens, policyTokens } = this.json();
    const list = (counts: Readonly<Record<string, number>>): string =>
      Object.entries(counts)
        .map(([name, count]) => `${name}: ${count}`)
        .join(", ");
    return alignColumns([
      ["demonstrations", String(demonstrations)],
      ["dropped", list(dropped)],
      ["searches", list(searches)],
      ["tokens", `${tokens.mean.toFixed(0)} on average, at most ${tokens.longest}`],
      ["of the policy", `${policyTokens.mean.toFixed(0)} on average, at most ${policyTokens.longest}`],
    ]);
  }
}

function mean(values: readonly number[]): number {
  return values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;
}
