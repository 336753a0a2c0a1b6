/** Gathers what the updates of one step measured into metrics. */
import type { Datum } from "../algorithm/datum.ts";
import { maxLogprobDifference, policyDiagnostics, referenceKlDivergence } from "../algorithm/diagnostics.ts";
import type { KlTerm, Loss } from "../algorithm/loss.ts";
import type { Minibatch } from "../algorithm/minibatch.ts";
import type { LossReport } from "../engine/engine.ts";
import { assert } from "../errors.ts";
import type { MetricRow } from "../reporting/metric-row.ts";

/** Sampler and trainer may differ by rounding only; more means that something else was trained on than was sampled. */
const samplerTolerance = 1e-3;

export class UpdateMetrics {
  readonly #setting: { readonly loss: Loss; readonly learningRate: number; readonly kl: KlTerm | undefined };
  readonly #sums = new Map<string, number>();
  #updates = 0;
  #tokens = 0;
  #trainedTokens = 0;
  #ratioMax = 1;
  #samplerDifference: number | undefined;

  constructor(setting: {
    readonly loss: Loss;
    readonly learningRate: number;
    readonly kl: KlTerm | undefined;
  }) {
    this.#setting = setting;
  }

  /** Asserts, before the first update, that the trainer computes what the sampler reported. */
  checkSampler(batch: Minibatch, report: LossReport): void {
    if (this.#samplerDifference !== undefined) return;
    const difference = maxLogprobDifference(batch.data, report.logprobs);
    assert(
      difference <= samplerTolerance || !Number.isFinite(report.loss),
      `log-probabilities at sampling and in training differ by ${difference}, more than ${samplerTolerance}`,
    );
    this.#samplerDifference = difference;
  }

  add(batch: Minibatch, report: LossReport, gradientNorm: number): void {
    const { loss, kl } = this.#setting;
    const diagnostics = policyDiagnostics(batch.data, report.logprobs, loss);
    this.#updates++;
    this.#tokens += batch.tokens;
    this.#trainedTokens += batch.trainedTokens;
    this.#ratioMax = Math.max(this.#ratioMax, diagnostics.ratioMax);
    this.#addMean("loss/value", report.loss);
    this.#addMean("gradient/norm", gradientNorm);
    this.#addMean("kl/sampling", diagnostics.klDivergence);
    this.#addMean("clip/fraction", diagnostics.clipFraction);
    this.#addMean("ratio/mean", diagnostics.ratioMean);
    this.#addMean("entropy/sampled", diagnostics.entropy);
    if (kl)
      this.#addMean(
        "kl/reference",
        referenceKlDivergence(batch.data as Datum[], report.logprobs, kl.estimator),
      );
  }

  /** The metrics of a step whose updates took `seconds`. */
  row(seconds: number): Partial<MetricRow> {
    const counts = {
      "optimizer/updates": this.#updates,
      "optimizer/learningRate": this.#setting.learningRate,
      "loss/tokens": this.#trainedTokens,
    };
    if (this.#updates === 0) return counts;
    const means = Object.fromEntries([...this.#sums].map(([key, sum]) => [key, sum / this.#updates]));
    return {
      ...counts,
      ...means,
      "ratio/max": this.#ratioMax,
      "rate/tokens": this.#tokens / seconds,
      ...(this.#samplerDifference !== undefined && {
        "parity/maxLogprobDifference": this.#samplerDifference,
      }),
    };
  }

  #addMean(key: string, value: number): void {
    this.#sums.set(key, (this.#sums.get(key) ?? 0) + value);
  }
}
