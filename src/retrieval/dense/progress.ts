/** How long work on vectors takes: what is reported while they are built, and the clock and signal it is done with. */

export interface DenseProgress {
  /** Encoding passages, linking the graph, measuring its recall. */
  readonly stage: "encode" | "graph" | "recall";
  /** Passages; may be a fraction. */
  readonly done: number;
  readonly total: number;
  /** Passages a second since this call began its stage. */
  readonly rate: number;
  /** Infinite while nothing is done. */
  readonly remainingSeconds: number;
}

export interface WorkOptions {
  readonly threads: number;
  /** Milliseconds from any origin. */
  readonly now: () => number;
  readonly onProgress?: ((progress: DenseProgress) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** A function that reports how far a stage is, given how much of it is done; `first` was done before. */
export function progressOf(
  stage: DenseProgress["stage"],
  { first, total }: { readonly first: number; readonly total: number },
  { now, onProgress }: Pick<WorkOptions, "now" | "onProgress">,
): (done: number) => void {
  const start = now();
  return (done) => {
    const seconds = (now() - start) / 1000;
    const rate = seconds > 0 ? (done - first) / seconds : 0;
    const remainingSeconds = rate > 0 ? (total - done) / rate : Number.POSITIVE_INFINITY;
    onProgress?.({ stage, done, total, rate, remainingSeconds });
  };
}
