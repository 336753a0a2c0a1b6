/** What an engine elsewhere had to ask for again, as metrics: in each row what came since the one before. */
import type { Engine, EngineCounts } from "../engine/engine.ts";
import type { MetricRow } from "../reporting/metric-row.ts";

export class EngineMetrics {
  readonly #engine: Pick<Engine, "counts">;
  #before: EngineCounts;

  constructor(engine: Pick<Engine, "counts">) {
    this.#engine = engine;
    this.#before = engine.counts ?? { retries: 0, polls: 0, resampled: 0 };
  }

  /** The counts since the last call; nothing for an engine in this process. */
  take(): Partial<MetricRow> {
    const now = this.#engine.counts;
    if (now === undefined) return {};
    const before = this.#before;
    this.#before = now;
    return {
      "engine/retries": now.retries - before.retries,
      "engine/polls": now.polls - before.polls,
      "engine/resampled": now.resampled - before.resampled,
    };
  }
}
