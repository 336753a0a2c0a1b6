/**
 * What a person sees while a training runs: one progress line for each stage and evaluation, results as they come,
 * and a sample trajectory now and then. Goes to standard error; the run folder holds the same for programs.
 */
import type { EvaluationResult } from "../evaluation/result.ts";
import type { MetricRow } from "../reporting/metric-row.ts";
import { type Progress, startProgress } from "../reporting/progress.ts";
import { renderTranscript } from "../reporting/transcript.ts";
import type { TrainingReporter } from "../training/reporter.ts";
import type { CommandIo } from "./command.ts";

/** A reporter that draws on `io`; call `end` when the training is over, however it ended. */
export function liveView(io: CommandIo): TrainingReporter & { end(): void } {
  let progress: Progress | undefined;
  let evaluation: string | undefined;
  let skipped = 0;
  const end = (): void => {
    progress?.finish();
    progress = undefined;
    evaluation = undefined;
  };
  return {
    end,
    message: (text) => {
      end();
      io.note(text);
    },
    stageStarted: ({ name, steps, done }) => {
      end();
      skipped = done;
      const label = done === 0 ? name : `${name} (from step ${done})`;
      progress = startProgress({ label, total: steps - done, unit: "steps" }, io.progress);
    },
    stepDone: (row) => progress?.update(row.step - skipped, stepNote(row)),
    sample: (trajectory, reward) => {
      const text = renderTranscript(trajectory, { color: io.noteColor, reward, hidePrompt: true });
      if (progress === undefined) io.note(text);
      else progress.print(`\n${text}`);
    },
    evaluationProgress: ({ name, done, total }) => {
      if (evaluation !== name) {
        end();
        evaluation = name;
        progress = startProgress({ label: `evaluating ${name}`, total, unit: "questions" }, io.progress);
      }
      progress?.update(done);
    },
    evaluationDone: ({ name, result }) => {
      end();
      io.note(`${name}: ${resultNote(result)}`);
    },
  };
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
