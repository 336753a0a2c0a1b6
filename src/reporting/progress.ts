/**
 * Progress of long work, for standard error: what is done, how fast, how long it still takes, and a live score.
 * A terminal gets one line that is rewritten; a pipe or a log file gets a line every ten seconds.
 *
 * Formatting is pure; the clock and the output are passed in.
 */

export interface ProgressState {
  /** What is being done, such as the stage. */
  readonly label: string;
  readonly done: number;
  readonly total: number;
  /** What of `done` was done before the clock started; it counts for no rate. Default 0. */
  readonly before?: number;
  /** What is counted, in the plural, such as `steps`. */
  readonly unit: string;
  readonly elapsedMs: number;
  /** Live scores and the like, such as `reward 0.61`. */
  readonly note?: string;
}

export interface ProgressOutput {
  readonly write: (text: string) => void;
  /** Milliseconds from any fixed start. */
  readonly now: () => number;
  readonly isTerminal: boolean;
  /** Columns of the terminal; longer lines are cut so that rewriting works. Default 80. */
  readonly columns?: number;
}

export interface Progress {
  /** Says that `done` of the total is done; what is shown may lag behind by a moment. */
  update(done: number, note?: string): void;
  /** Prints text of its own lines between two progress lines. */
  print(text: string): void;
  /** Shows the last state and ends the line. */
  finish(note?: string): void;
}

const terminalIntervalMs = 100;
const pipeIntervalMs = 10_000;
const clearLine = "\r\u001b[K";

/** Starts to show progress; nothing is written before the first update. */
export function startProgress(
  task: Pick<ProgressState, "label" | "total" | "unit" | "before">,
  output: ProgressOutput,
): Progress {
  const { write, now, isTerminal } = output;
  const startedAt = now();
  let state: ProgressState = { ...task, done: task.before ?? 0, elapsedMs: 0 };
  let shownAt = isTerminal ? Number.NEGATIVE_INFINITY : startedAt;
  let isShown = false;
  const show = (): void => {
    shownAt = now();
    isShown = true;
    const line = formatProgress(state);
    write(isTerminal ? `${clearLine}${cutLine(line, (output.columns ?? 80) - 1)}` : `${line}\n`);
  };
  const advance = (done: number, note: string | undefined): void => {
    state = { ...task, done, elapsedMs: now() - startedAt, ...(note !== undefined && { note }) };
  };
  return {
    update(done, note) {
      advance(done, note ?? state.note);
      if (now() - shownAt >= (isTerminal ? terminalIntervalMs : pipeIntervalMs)) show();
    },
    print(text) {
      const block = text.endsWith("\n") ? text : `${text}\n`;
      write(isTerminal && isShown ? `${clearLine}${block}` : block);
      if (isTerminal && isShown) show();
    },
    finish(note) {
      advance(state.done, note ?? state.note);
      show();
      if (isTerminal) write("\n");
    },
  };
}

/** One line: `grpo ━━━━━━──── 12/20 steps · 1.3/s · 0:06 left · reward 0.61`. */
export function formatProgress(state: ProgressState): string {
  const { label, done, total, before = 0, unit, elapsedMs, note } = state;
  const parts = [`${label} ${formatBar(total > 0 ? done / total : 0)} ${done}/${total} ${unit}`];
  const counted = done - before;
  if (counted > 0 && elapsedMs > 0) {
    parts.push(formatRate(counted / (elapsedMs / 1000), unit));
    parts.push(
      done < total
        ? `${formatDuration((elapsedMs / counted) * (total - done))} left`
        : formatDuration(elapsedMs),
    );
  }
  if (note) parts.push(note);
  return parts.join(" · ");
}

/** `1.3 steps/s`, or for slow work the time of one, `4.2 s each`; a unit of measure such as MB has no one. */
export function formatRate(perSecond: number, unit: string): string {
  if (perSecond >= 1 || unit === "MB") return `${formatNumber(perSecond)} ${unit}/s`;
  return `${formatNumber(1 / perSecond)} s each`;
}

/** `0:07`, `12:34`, `3:04:05`. */
export function formatDuration(ms: number): string {
  const seconds = Math.round(ms / 1000);
  const clock = [Math.floor(seconds / 60) % 60, seconds % 60];
  const hours = Math.floor(seconds / 3600);
  const [first, ...rest] = hours > 0 ? [hours, ...clock] : clock;
  return [first, ...rest.map((part) => String(part).padStart(2, "0"))].join(":");
}

function formatBar(share: number): string {
  const cells = 16;
  const full = Math.round(Math.min(1, Math.max(0, share)) * cells);
  return "━".repeat(full) + "─".repeat(cells - full);
}

function formatNumber(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toPrecision(2).replace(/e\+?(-?\d+)$/, "e$1");
}

function cutLine(line: string, columns: number): string {
  const characters = [...line];
  return characters.length <= columns ? line : `${characters.slice(0, columns - 1).join("")}…`;
}
