/**
 * What a person sees while a training runs: one progress line for each stage and evaluation, results as they come,
 * and a sample trajectory now and then. Goes to standard error; the run folder holds the same for programs.
 */
import type { EvaluationResult } from "../evaluation/result.ts";
import type { MetricRow } from "../reporting/metric-row.ts";
import { type Progress, type ProgressState, startProgress } from "../reporting/progress.ts";
import { renderTranscript } from "../reporting/transcript.ts";
import type { TrainingReporter } from "../training/reporter.ts";
import type { CommandIo } from "./command.ts";

/** Least time between two sample trajectories, so that a fast stage is not drowned in them. */
const sampleIntervalMs = 20_000;

/** A reporter that draws on `io`; call `end` when the training is over, however it ended. */
export function liveView(
  io: Pick<CommandIo, "note" | "noteColor" | "progress">,
): TrainingReporter & { end(): void } {
  const line = new CurrentLine(io);
  let stage = { name: "", steps: 0 };
  let sampledAt = Number.NEGATIVE_INFINITY;
  return {
    end: () => line.end(),
    message: (text) => line.print(text),
    stageStarted: ({ name, steps, done }) => {
      line.end();
      stage = { name, steps };
      line.start({ label: name, total: steps, unit: "steps" }, done);
    },
    // An evaluation may have come in between; the stage's line then begins anew.
    stepDone: (row) =>
      line.update({ label: stage.name, total: stage.steps, unit: "steps" }, row.step, stepNote(row)),
    sample: (trajectory, reward) => {
      const now = io.progress.now();
      if (now - sampledAt < sampleIntervalMs) return;
      sampledAt = now;
      line.print(`\n${renderTranscript(trajectory, { color: io.noteColor, reward, hidePrompt: true })}`);
    },
    evaluationProgress: ({ name, done, total }) =>
      line.update({ label: `evaluating ${name}`, total, unit: "questions" }, done),
    evaluationDone: ({ name, result }) => {
      line.end();
      io.note(`${name}: ${resultNote(result)}`);
    },
  };
}

type Task = Pick<ProgressState, "label" | "total" | "unit">;

/** The one progress line that is being shown. What was done before it began does not count for its rate. */
class CurrentLine {
  readonly #io: Pick<CommandIo, "note" | "progress">;
  #progress: Progress | undefined;
  #label = "";

  constructor(io: Pick<CommandIo, "note" | "progress">) {
    this.#io = io;
  }

  /** Begins a line for `task`, of which `before` is done already. */
  start(task: Task, before: number): void {
    this.end();
    this.#progress = startProgress({ ...task, before }, this.#io.progress);
    this.#label = task.label;
  }

  /** Shows that `done` of `task` is done, on a new line, whose clock starts now, when another task was shown. */
  update(task: Task, done: number, note?: string): void {
    if (this.#progress === undefined || this.#label !== task.label) this.start(task, done);
    this.#progress?.update(done, note);
  }

  print(text: string): void {
    if (this.#progress === undefined) this.#io.note(text);
    else this.#progress.print(text);
  }

  end(): void {
    this.#progress?.finish();
    this.#progress = undefined;
  }
}

/** The live score of a step: the reward where there is one, else the loss. */
function stepNote(row: MetricRow): string {
  const reward = row["reward/mean"];
  if (reward === undefined) return `loss ${(row["loss/value"] ?? Number.NaN).toFixed(3)}`;
  return `reward ${reward.toFixed(3)} · ${(row["search/count"] ?? 0).toFixed(2)} searches a question`;
}

/** One line: exact match with interval, n, searches. */
export function resultNote({ summary: { overall } }: EvaluationResult): string {
  const { em, searches, n, failed } = overall;
  if (em === undefined) return `no question was scored, ${failed} failed`;
  const [low, high] = em.ci;
  const rest = failed === 0 ? "" : `, ${failed} failed`;
  return `exact match ${em.mean.toFixed(3)} (95 % interval ${low.toFixed(3)} to ${high.toFixed(3)}, n = ${n}${rest}), ${(searches?.mean ?? 0).toFixed(2)} searches a question`;
}
